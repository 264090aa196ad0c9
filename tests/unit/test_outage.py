"""A database that goes away: workers wait for it, and nothing is lost."""

import threading

import pytest
from children import child
from postgres import serving, why_not
from sweeps import outcome, small_agenda, stored, swept

from unalike import UserError
from unalike.experiments import database
from unalike.experiments import worker as workers
from unalike.experiments.leases import Leases, num_held
from unalike.experiments.results import Results
from unalike.experiments.sweep import sweep

SECONDS = 120


@pytest.fixture(scope="module")
def server():
    if reason := why_not():
        pytest.skip(reason)
    with serving() as one:
        yield one


@pytest.fixture
def away(server):
    """A server that is not there now, but may come back."""
    with Results.open(server.url) as results, results.engine.begin() as connection:
        for table in ("runs", "curves", "failures", "leases"):
            connection.exec_driver_sql(f"delete from {table}")
    yield server
    server.start()


def test_a_sweep_waits_for_a_server_that_went_away(
    server, tmp_path, monkeypatch
):
    agenda = small_agenda(stored(tmp_path))
    expected = f"sqlite:///{tmp_path / 'expected.db'}"
    swept(agenda, expected)
    run_together, said = workers.run_together, []

    def then_gone(*told, **how):
        found = run_together(*told, **how)
        if not said:
            server.stop()
        return found

    def back(what):
        said.append(what)
        server.start()

    monkeypatch.setattr(workers, "run_together", then_gone)
    told = sweep(agenda, server.url, remark=back)
    assert (told["done"], told["failed"]) == (len(agenda.keys), 0)
    assert outcome(server.url) == outcome(expected)
    (line,) = said
    assert line.startswith("The database is away (")
    assert line.endswith("); trying again for 10 minutes.")
    assert "\n" not in line
