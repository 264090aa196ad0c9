"""Workers wait for a database server that is unreachable, and lose no result."""

import pytest
from postgres import serving
from sweep_fixtures import outcome, small_plan, stored, swept

from unalike import UserError
from unalike.experiments import database_connection
from unalike.experiments import worker as workers
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import Leases, WorkerId, count_active
from unalike.experiments.sweep import sweep


@pytest.fixture(scope="module")
def server():
    with serving() as one:
        yield one


@pytest.mark.long
def test_a_sweep_waits_for_an_unreachable_server(server, tmp_path, monkeypatch):
    plan = small_plan(stored(tmp_path))
    expected = f"sqlite:///{tmp_path / 'expected.db'}"
    swept(plan, expected)
    run_stack, messages = workers.run_stack, []

    def then_stop(*args, **kwargs):
        results = run_stack(*args, **kwargs)
        if not messages:
            server.stop()
        return results

    def restart(message):
        messages.append(message)
        server.start()

    monkeypatch.setattr(workers, "run_stack", then_stop)
    counts = sweep(plan, server.url, on_message=restart)
    assert (counts["done"], counts["failed"]) == (len(plan.keys), 0)
    assert outcome(server.url) == outcome(expected)
    (line,) = messages
    assert line.startswith("The database is away (")
    assert line.endswith("); trying again for 10 minutes.")
    assert "\n" not in line


@pytest.fixture
def leases(server):
    """Leases of an empty database."""
    with ResultsDatabase.open(server.url) as results:
        with results.engine.begin() as connection:
            connection.exec_driver_sql("delete from run_leases")
        yield Leases(results.engine)


def test_a_worker_may_acquire_its_own_lease_again(leases):
    assert leases.acquire(["run"])
    assert leases.acquire(["run"])
    assert not Leases(leases.engine, worker=WorkerId("far", 1, "away")).acquire(["run"])
    assert count_active(leases.engine) == 1


def test_a_server_that_stays_unreachable_is_an_error_of_one_line(
    server, leases, monkeypatch
):
    monkeypatch.setattr(database_connection, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(database_connection, "RETRY_INTERVAL", 0.0)
    server.stop()
    try:
        with pytest.raises(UserError, match="The database is still away") as caught:
            leases.acquire(["run"])
        assert "\n" not in str(caught.value)
    finally:
        server.start()
    assert leases.acquire(["run"])


def test_a_stopped_worker_does_not_wait_for_a_server(server, leases):
    leases.acquire(["run"])
    server.stop()
    try:
        leases.release_quietly()
    finally:
        server.start()
    assert count_active(leases.engine) == 1
    leases.release_quietly()
    assert count_active(leases.engine) == 0


def test_a_wrong_database_name_is_not_retried(server):
    with pytest.raises(UserError, match="cannot be opened"):
        ResultsDatabase.open(server.url.replace("/postgres?", "/no-such-database?"))
