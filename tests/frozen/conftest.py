"""What the tests of frozen files share."""

import pytest
from commands import STORED_RUNS, call, database


@pytest.fixture(scope="session")
def stored_runs(tmp_path_factory):
    """A database file with all runs of results/runs.jsonl.gz."""
    path = tmp_path_factory.mktemp("stored_runs") / "results.db"
    call("results", "import", STORED_RUNS, "--results", database(path))
    return path


@pytest.fixture(scope="session")
def no_data(tmp_path_factory):
    """A data folder without any file."""
    return tmp_path_factory.mktemp("no_data")


@pytest.fixture
def real_graphs(data, monkeypatch):
    """The folder of real graphs as the default one of commands."""
    monkeypatch.setenv("UNALIKE_DATA", str(data))
    return data
