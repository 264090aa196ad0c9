"""Odd flags of every command end in a result or in an error of one line."""

import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from io import StringIO

import pytest
from damage import run_command
from fake_wiki import FakeWiki
from graphs import suiting
from wiki_proxy import fronting

from unalike import random_splits, save_graph
from unalike.cli.main import COMMANDS, main
from unalike.experiments.database import ResultsDatabase
from unalike.http_server import Server

VALUES = ["nan", "inf", "-1", "0", "1e999", "9" * 30, "", "x", "[/x]", "-", "../.."]
VALUES += ["1.5", "\udcff", "graph", "/dev/null", "a\nb"]
TRAIN = ["train", "graph", "--device", "cpu", "--splits", "0"]
SEARCH = ["tune", "graph", "--device", "cpu", "--trials", "1"]
SAVED = ["model", "--edges", "edges.csv", "--nodes", "nodes.csv"]
SHORT = ["linkx", "--hidden", "4", "--epochs", "1"]
BENCH = ["--graph", "graph", "--repeats", "1", "--hidden", "4", "--device", "cpu"]
WORDS = {
    "list": ["list", "datasets"],
    "fetch": ["fetch", "nothing"],
    "import": ["import", "edges.csv", "--nodes", "nodes.csv", "--out", "out"],
    "crawl": ["crawl", "--start", "A", "--pages", "2", "--rate", "0", "--out", "out"],
    "advise": ["advise", "graph", "--seconds", "0.1", "--device", "cpu"],
    "shard": ["shard", "graph", "--parts", "2", "--out", "out"],
    "train": [*TRAIN, *SHORT],
    "train rows": [*TRAIN, *SHORT, "rows", "--size", "8"],
    "train gat": [*TRAIN, "gat", "--hidden", "4", "--epochs", "1"],
    "train views": [*TRAIN, "views", "--folds", "2", "--epochs", "1"],
    "train correct-and-smooth": [*TRAIN, "correct-and-smooth", "mlp", "--epochs", "1"],
    "predict": ["predict", *SAVED, "--device", "cpu", "--out", "out.csv"],
    "serve": ["serve", "model", "--port", "0"],
    "tune": [*SEARCH, *SHORT],
    "sweep": ["sweep", "full-batch/mlp", "--only", "dataset=graph", "--dry-run"],
    "results": ["results", "export", "out.jsonl"],
    "measure": ["measure", "graph"],
    "views": ["views", "graph", "--out", "out.csv", "--views", "labels"],
    "table": ["table", "full-batch"],
    "figure": ["figure", "degrees", "graph", "--out", "out.png"],
    "report": ["report", "--out", "out", "--no-measures"],
    "bench engine": ["bench", "engine", *BENCH, "--stacks"],
    "bench methods": ["bench", "methods", *BENCH, "--only", "gcn", "--stacks"],
    "bench layers": ["bench", "layers", *BENCH[2:], "--only", "GCNConv"],
    "demo": ["demo", "--out", "taken/demo", "--json"],
}
"""What a flag is added to; these commands take at most seconds."""
LONG = {
    "": {"--processes", "--jobs", "--compiled"},
    "advise": {"--seconds"},
    "demo": {"--out"},
    "tune": {"--trials"},
}
"""Flags with values that start processes or compute for minutes, by command."""


@cache
def flags(name: str) -> list[str]:
    """The flags in the help of a command."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as text:
        patch.setenv("COLUMNS", "300")
        main([*WORDS[name], "--help"])
    found = re.findall(r"(?m)^\W*(--[a-z][\w-]+)", text.getvalue())
    return sorted({*found} - LONG[""] - LONG.get(name, set()) - {"--help"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a graph, its model, tables of it and a database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(Server, "serve_forever", lambda *_, **__: None)
    monkeypatch.setattr("time.sleep", lambda _: None)
    graph = suiting(nodes=20)
    splits = random_splits(graph.labels, count=1)
    save_graph(tmp_path / "graph", graph, splits=splits)
    (tmp_path / "taken").touch()
    (tmp_path / "edges.csv").write_text("source,target\nnew,1\nnew,2\n")
    (tmp_path / "nodes.csv").write_text("id,0,1\nnew,0.5,1\n1,0,0\n2,1,1\n")
    assert main([*TRAIN, "--save", "model", *SHORT]) == 0
    ResultsDatabase.open("sqlite:///results.db").close()
    return tmp_path


def test_every_command_has_words():
    assert {words[0] for words in WORDS.values()} == COMMANDS.keys()


def test_odd_flags_end_in_a_result_or_an_error_of_one_line(folder, some, capsys):
    kept = {path: path.read_bytes() for path in folder.glob("*.csv")}
    with fronting(FakeWiki({"A": ["B"], "B": ["A"]})) as front:
        words = WORDS | {"crawl": [*WORDS["crawl"], "--api", front.address]}
        for rng in some:
            name = rng.choice(list(words))
            flag, value = rng.choice(flags(name)), rng.choice(VALUES)
            run_command([*words[name], flag, value], capsys)
            for path in folder.glob("out*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            assert {path: path.read_bytes() for path in kept} == kept


@pytest.mark.long
def test_layers_larger_than_the_memory_are_an_error_of_one_line(folder):
    words = [sys.executable, "-m", "unalike", *TRAIN, "mlp", "--hidden", "65536"]
    limited = f"ulimit -v 12000000; exec {shlex.join([*words, '--layers', '3'])}"
    ran = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.count("error: out of memory")) == (1, 1)
    assert "Traceback" not in ran.stderr


def test_a_name_that_is_not_unicode_is_an_error_of_one_line(folder, capsys):
    assert run_command([*WORDS["table"], "--on", "\udcff"], capsys)[0] == 1


def test_a_graph_may_have_a_name_like_markup(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    graph = suiting(nodes=20)
    name = "a[/x]b[bold]"
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    save_graph(tmp_path / name, graph, splits=random_splits(graph.labels, count=1))
    for words in (
        ["train", f"./{name}", "link", "--epochs", "2"],
        ["measure", f"./{name}"],
    ):
        status, out = run_command(words, capsys)
        assert status == 0
        assert "b[bold]" in out
