"""What tests of sweeps and results share: a small agenda, and where results go."""

import pytest
from postgres import serving
from sweeps import small_agenda, stored

from unalike.experiments.database import ResultsDatabase


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture
def results(url):
    kept = ResultsDatabase.open(url)
    yield kept
    kept.close()


@pytest.fixture
def agenda(tmp_path):
    return small_agenda(stored(tmp_path))


@pytest.fixture(scope="session")
def postgres():
    with serving() as one:
        yield one.url


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
