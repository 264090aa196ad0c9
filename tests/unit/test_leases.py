"""A run is held by one worker at a time, for as long as that one lives."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from children import child

from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import Leases, WorkerId, count_active


@pytest.fixture
def shared(shared_url):
    kept = ResultsDatabase.open(shared_url)
    yield kept
    kept.close()


def test_a_lease_is_held_by_one_until_it_ends(shared):
    ours = Leases(shared.engine, 60.0)
    theirs = Leases(shared.engine, 60.0, WorkerId("elsewhere", 1, "x"))
    assert ours.take(["run"])
    assert not theirs.take(["run"])
    theirs.release()
    assert not theirs.take(["run"])
    ours.release()
    assert theirs.take(["run"])
    assert count_active(shared.engine) == 1


def test_runs_are_taken_together_or_not_at_all(shared):
    ours = Leases(shared.engine, 60.0)
    theirs = Leases(shared.engine, 60.0, WorkerId("elsewhere", 1, "x"))
    assert ours.take(["first", "second"])
    assert not theirs.take(["second", "third"])
    assert theirs.held_by_others() == {"first", "second"}
    assert theirs.take(["third"])
    assert count_active(shared.engine) == 3
    ours.release()
    assert ours.held_by_others() == {"third"}


def test_of_many_who_ask_at_once_one_gets_the_runs(shared):
    asking = [
        Leases(shared.engine, 60.0, WorkerId("elsewhere", i, "x")) for i in range(4)
    ]
    ready = Barrier(len(asking))

    def ask(leases):
        ready.wait()
        return leases.take(["first", "second"])

    with ThreadPoolExecutor(len(asking)) as pool:
        for _ in range(10):
            assert sum(pool.map(ask, asking)) == 1
            for leases in asking:
                leases.release()


def test_a_lease_that_nobody_renews_runs_out(shared):
    silent = Leases(shared.engine, 0.05, WorkerId("elsewhere", 1, "x"))
    ours = Leases(shared.engine, 60.0)
    assert silent.take(["run"])
    time.sleep(0.1)
    assert ours.take(["run"])
    silent.renew()
    silent.release()
    assert count_active(shared.engine) == 1


def test_a_lease_is_renewed_while_its_holder_lives(results):
    alive = Leases(results.engine, 0.3, WorkerId("elsewhere", 1, "x"))
    ours = Leases(results.engine, 60.0)
    assert alive.take(["run"])
    with alive.kept():
        time.sleep(1.0)
        assert not ours.take(["run"])
    time.sleep(0.4)
    assert ours.take(["run"])


def nothing():
    """What a process does that is soon gone."""


def test_the_lease_of_a_process_that_is_gone_is_free_at_once(results):
    gone = child(nothing)
    gone.join()
    here = WorkerId.current()
    dead = Leases(results.engine, 600.0, WorkerId(here.host, gone.pid, "x"))
    assert dead.take(["run"])
    assert Leases(results.engine, 60.0).take(["run"])
