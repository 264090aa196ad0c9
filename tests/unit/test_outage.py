"""A database that goes away: workers wait for it, and nothing is lost."""

import pytest
from postgres import serving
from sweeps import outcome, small_agenda, stored, swept

from unalike import UserError
from unalike.experiments import database
from unalike.experiments import worker as workers
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import Leases, WorkerId, count_active
from unalike.experiments.sweep import sweep


@pytest.fixture(scope="module")
def server():
    with serving() as one:
        yield one


def test_a_sweep_waits_for_a_server_that_went_away(server, tmp_path, monkeypatch):
    agenda = small_agenda(stored(tmp_path))
    expected = f"sqlite:///{tmp_path / 'expected.db'}"
    swept(agenda, expected)
    run_together, said = workers.run_stack, []

    def then_gone(*told, **how):
        found = run_together(*told, **how)
        if not said:
            server.stop()
        return found

    def back(what):
        said.append(what)
        server.start()

    monkeypatch.setattr(workers, "run_stack", then_gone)
    told = sweep(agenda, server.url, remark=back)
    assert (told["done"], told["failed"]) == (len(agenda.keys), 0)
    assert outcome(server.url) == outcome(expected)
    (line,) = said
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


def test_a_lease_whose_taking_was_not_confirmed_is_still_ours(leases):
    assert leases.take(["run"])
    assert leases.take(["run"])
    assert not Leases(leases.engine, holder=WorkerId("far", 1, "away")).take(["run"])
    assert count_active(leases.engine) == 1


def test_a_server_that_stays_away_is_given_up_in_one_line(server, leases, monkeypatch):
    monkeypatch.setattr(database, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(database, "RETRY_INTERVAL", 0.0)
    server.stop()
    try:
        with pytest.raises(UserError, match="The database is still away") as caught:
            leases.take(["run"])
        assert "\n" not in str(caught.value)
    finally:
        server.start()
    assert leases.take(["run"])


def test_who_is_stopped_does_not_wait_for_a_server(server, leases):
    leases.take(["run"])
    server.stop()
    try:
        leases.release_quietly()
    finally:
        server.start()
    assert count_active(leases.engine) == 1
    leases.release_quietly()
    assert count_active(leases.engine) == 0


def test_a_mistake_is_no_outage(server):
    with pytest.raises(UserError, match="cannot be opened"):
        ResultsDatabase.open(server.url.replace("/postgres?", "/no-such-database?"))
