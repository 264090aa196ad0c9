"""Fixtures of sweeps and results: a small plan and databases."""

import pytest
from postgres import serving
from sweep_fixtures import small_plan, stored

from unalike.experiments.database import ResultsDatabase


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture
def results(url):
    database = ResultsDatabase.open(url)
    yield database
    database.close()


@pytest.fixture
def plan(tmp_path):
    return small_plan(stored(tmp_path))


@pytest.fixture(scope="session")
def postgres():
    with serving() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgres"])
def shared_url(request, url):
    """A database that is empty, of either kind."""
    if request.param == "sqlite":
        return url
    address = request.getfixturevalue("postgres")
    results = ResultsDatabase.open(address)
    with results.engine.begin() as connection:
        for table in ("runs", "curves", "failures", "run_leases"):
            connection.exec_driver_sql(f"delete from {table}")
    results.close()
    return address
