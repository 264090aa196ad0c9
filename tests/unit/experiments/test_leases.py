"""A run is leased by one worker at a time, as long as that worker lives."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from forked_processes import child

from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import Leases, WorkerId, count_active


@pytest.fixture
def shared(shared_url):
    database = ResultsDatabase.open(shared_url)
    yield database
    database.close()


def test_a_lease_excludes_others_until_it_is_released(shared):
    own = Leases(shared.engine, 60.0)
    other = Leases(shared.engine, 60.0, WorkerId("elsewhere", 1, "x"))
    assert own.acquire(["run"])
    assert not other.acquire(["run"])
    other.release()
    assert not other.acquire(["run"])
    own.release()
    assert other.acquire(["run"])
    assert count_active(shared.engine) == 1


def test_runs_are_leased_together_or_not_at_all(shared):
    own = Leases(shared.engine, 60.0)
    other = Leases(shared.engine, 60.0, WorkerId("elsewhere", 1, "x"))
    assert own.acquire(["first", "second"])
    assert not other.acquire(["second", "third"])
    assert other.held_by_others() == {"first", "second"}
    assert other.acquire(["third"])
    assert count_active(shared.engine) == 3
    own.release()
    assert own.held_by_others() == {"third"}


def test_one_of_many_concurrent_workers_gets_the_runs(shared):
    asking = [
        Leases(shared.engine, 60.0, WorkerId("elsewhere", i, "x")) for i in range(4)
    ]
    ready = Barrier(len(asking))

    def ask(leases):
        ready.wait()
        return leases.acquire(["first", "second"])

    with ThreadPoolExecutor(len(asking)) as pool:
        for _ in range(10):
            assert sum(pool.map(ask, asking)) == 1
            for leases in asking:
                leases.release()


def test_a_lease_without_heartbeat_expires(shared):
    silent = Leases(shared.engine, 0.05, WorkerId("elsewhere", 1, "x"))
    own = Leases(shared.engine, 60.0)
    assert silent.acquire(["run"])
    time.sleep(0.1)
    assert own.acquire(["run"])
    silent.renew()
    silent.release()
    assert count_active(shared.engine) == 1


def test_a_heartbeat_renews_a_lease(results):
    alive = Leases(results.engine, 0.3, WorkerId("elsewhere", 1, "x"))
    own = Leases(results.engine, 60.0)
    assert alive.acquire(["run"])
    with alive.heartbeat():
        time.sleep(1.0)
        assert not own.acquire(["run"])
    time.sleep(0.4)
    assert own.acquire(["run"])


def nothing():
    """The work of a process that ends at once."""


def test_the_lease_of_a_dead_process_is_free_at_once(results):
    process = child(nothing)
    process.join()
    host = WorkerId.current().host
    dead = Leases(results.engine, 600.0, WorkerId(host, process.pid, "x"))
    assert dead.acquire(["run"])
    assert Leases(results.engine, 60.0).acquire(["run"])
