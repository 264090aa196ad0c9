"""Targets that cannot be written: one line, nothing half-written, before the work."""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from graphs import suiting

from unalike import random_splits, save_graph
from unalike.cli.main import main
from unalike.experiments.database import ResultsDatabase

TINY = 64
"""Bytes of the largest file on a disk that is as good as full."""


@pytest.fixture
def graph(tmp_path, monkeypatch) -> Path:
    """A stored graph in the working folder, which holds a file `taken` too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "taken").write_text("a file, not a folder")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    nodes = suiting(nodes=20)
    save_graph(tmp_path / "graph", nodes, splits=random_splits(nodes.labels, count=1))
    ResultsDatabase.open("sqlite:///results.db").close()
    return tmp_path


@contextmanager
def full_disk():
    """Let no file grow beyond a few bytes, as root or not.

    Python would cut its files of bytecode without an error, and fail on them later.
    """
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        resource.setrlimit(resource.RLIMIT_FSIZE, (TINY, old[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)


def files_of(folder: Path) -> set[Path]:
    """Files of a folder, without caches and without those of SQLite."""
    paths = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    own = {"cache", "results.db-wal", "results.db-shm"}
    return {path for path in paths if path.parts[0] not in own}


def errors(text: str) -> list[str]:
    """Lines of standard error but for the notice that numba compiles."""
    return [line for line in text.splitlines() if "compiling once" not in line]


TRAIN = ["train", "graph", "link", "--epochs", "2", "--device", "cpu"]
WRITERS = {
    "results": ["results", "export", "{}/out.jsonl.gz"],
    "figure": ["figure", "linkx", "--out", "{}/figure.png"],
    "figures": [*TRAIN, "--figures", "{}/figures"],
    "save": [*TRAIN, "--save", "{}/model.safetensors"],
    "checkpoint": [*TRAIN, "--checkpoint", "{}/state"],
    "predict": [
        "predict",
        "model.safetensors",
        "--graph",
        "graph",
        "--out",
        "{}/s.csv",
    ],
    "demo": ["demo", "--out", "{}/demo"],
    "shard": ["shard", "graph", "--parts", "2", "--out", "{}/shards"],
    "views": ["views", "graph", "--out", "{}/views.csv"],
    "import": ["import", "edges.csv", "--out", "{}/imported"],
    "report": ["report", "--no-measures", "--out", "{}/site"],
}


def words_of(name: str, folder: str) -> list[str]:
    return [word.replace("{}", folder) for word in WRITERS[name]]


def save_model() -> None:
    assert main([*TRAIN, "--save", "model.safetensors"]) == 0


@pytest.mark.parametrize("name", WRITERS)
def test_a_path_under_a_file_is_an_error_of_one_line(graph, name, capsys):
    if name == "predict":
        save_model()
    before = files_of(graph)
    capsys.readouterr()
    assert main(words_of(name, "taken")) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    assert "taken" in err
    assert files_of(graph) == before


def test_the_target_is_tried_before_training(graph, monkeypatch, capsys):
    def train(*_, **__):
        raise AssertionError("the training has begun")

    monkeypatch.setattr("unalike.experiments.run.solve_mixed", train)
    assert main(words_of("figures", "taken")) == 1
    assert main(words_of("save", "taken")) == 1
    assert capsys.readouterr().err.count("taken") == 2


def test_a_checkpoint_goes_on_when_the_disk_has_space_again(graph, capsys):
    words = words_of("checkpoint", ".")
    with full_disk():
        assert main(words) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert main(words) == 0


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - {"checkpoint"}))
def test_a_full_disk_is_an_error_of_one_line(graph, name, capsys):
    if name == "predict":
        save_model()
    before = files_of(graph)
    capsys.readouterr()
    with full_disk():
        status = main(words_of(name, "."))
    err = capsys.readouterr().err
    assert (status, len(errors(err))) == (1, 1), err
    assert files_of(graph) == before


@pytest.mark.long
def test_a_full_disk_for_the_cache_of_numba_is_no_error_of_its_own(graph):
    words = [sys.executable, "-m", "unalike", *words_of("views", ".")]
    numba_cache = {"NUMBA_CACHE_DIR": str(graph / "cache" / "numba")}
    with full_disk():
        environment = os.environ | numba_cache
        ran = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert (ran.returncode, len(errors(ran.stderr))) == (1, 1), ran.stderr
    assert "views.csv" in ran.stderr
