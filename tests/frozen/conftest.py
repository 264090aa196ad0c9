"""What the tests of frozen files share."""

import json
import subprocess
import sys

import commands
import pytest
from filelock import FileLock


@pytest.fixture(scope="session")
def no_data(tmp_path_factory):
    """A data folder without any file."""
    return tmp_path_factory.mktemp("no_data")


@pytest.fixture(scope="session")
def stored_folder(tmp_path_factory, no_data, worker_id):
    """A folder with a database of results/runs.jsonl.gz, and its tables.

    A process of its own is several times faster, as nothing checks types there; workers
    of one test session share it.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "stored_runs"
    path, texts = folder / "results.db", folder / "tables.json"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not texts.exists():
            words = [commands.__file__, path, no_data, texts]
            subprocess.run([sys.executable, *map(str, words)], check=True)
    return folder


@pytest.fixture(scope="session")
def stored_runs(stored_folder):
    """The database file."""
    return stored_folder / "results.db"


@pytest.fixture(scope="session")
def table_texts(stored_folder):
    """The tables by their words and format."""
    return json.loads((stored_folder / "tables.json").read_text("utf-8"))


@pytest.fixture
def real_graphs(data, monkeypatch):
    """The folder of real graphs as the default one of commands."""
    monkeypatch.setenv("UNALIKE_DATA", str(data))
    return data
