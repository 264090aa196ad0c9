"""A run is leased by one worker at a time, as long as that worker lives."""

import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from forked_processes import child

from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import Leases, WorkerId, count_active
from unalike.system import process_id_scope


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


def test_a_worker_on_another_machine_of_the_same_name_is_not_dead(results):
    process = child(nothing)
    process.join()
    other = WorkerId(f"{platform.node()} 00000000-pid:[1]", process.pid, "x")
    older = WorkerId(platform.node(), process.pid, "x")
    for run, worker in (("first", other), ("second", older)):
        assert Leases(results.engine, 600.0, worker).acquire([run])
        assert not Leases(results.engine, 60.0).acquire([run])


@pytest.mark.long
def test_containers_of_one_machine_have_process_ids_of_their_own():
    code = "from unalike.system import process_id_scope; print(process_id_scope())"
    words = [sys.executable, "-c", code]
    here = subprocess.run(words, capture_output=True, text=True, check=True)
    assert here.stdout.strip() == process_id_scope()
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    inside = subprocess.run([*unshare, *words], capture_output=True, text=True)
    if inside.returncode:
        pytest.skip(f"no namespaces here: {inside.stderr.strip()}")
    assert inside.stdout != here.stdout


def test_a_worker_id_survives_the_text_of_a_lease():
    worker = WorkerId.current()
    assert WorkerId.parse(str(worker)) == worker
