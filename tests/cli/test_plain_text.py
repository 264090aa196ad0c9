"""Names, paths and errors are printed as they are: brackets are no markup."""

import json
import re

import pytest
from graphs import suiting

from unalike import random_splits, save_graph
from unalike.cli import console
from unalike.cli.console import PlainConsole, progress_bar
from unalike.cli.main import main

NAMES = ["[old]", "x[/x]:smile:y"]
OBEYED = "a\x1b]0;title\x07\x1b[2Jb\x9b1m"
SHOWN = r"a\x1b]0;title\x07\x1b[2Jb\x9b1m"


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


@pytest.fixture
def stored(tmp_path, name) -> str:
    graph = suiting(nodes=60)
    splits = random_splits(graph.labels, count=2)
    folder = tmp_path / f"a{name}b"
    written = save_graph(tmp_path / "plain", graph, splits=splits, about={"name": name})
    folder.parent.mkdir(parents=True, exist_ok=True)
    return str(written.folder.rename(folder))


@pytest.mark.parametrize(
    "words",
    [
        ["train", "GRAPH", "linkx", "--epochs", "2"],
        ["measure", "GRAPH"],
        ["advise", "GRAPH", "--seconds", "3"],
        [
            "tune",
            "GRAPH",
            "--trials",
            "1",
            "correct-and-smooth",
            "mlp",
            "--epochs",
            "2",
        ],
        ["import", "--verify", "GRAPH"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.long
def test_the_name_of_a_graph_is_printed_as_it_is(stored, name, words, capsys):
    assert main([stored if word == "GRAPH" else word for word in words]) == 0
    printed = "".join(capsys.readouterr())
    assert name in printed


def test_an_error_is_printed_as_it_is(tmp_path, name, capsys):
    assert main(["measure", str(tmp_path / name / "graph")]) == 1
    assert f"{name}/graph is not a stored graph" in capsys.readouterr().err


def test_progress_is_printed_as_it_is(monkeypatch, name, capsys):
    terminal = PlainConsole(stderr=True, force_terminal=True, width=100)
    monkeypatch.setattr(console, "ERR", terminal)
    with progress_bar() as bar:
        bar.stage(f"Reading {name}", 3, "rows")
        bar.advance(3, f"of {name}")
    printed = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert f"Reading {name}" in printed
    assert f"3 rows of {name}" in printed


def test_terminals_obey_no_name(tmp_path, capsys):
    graph = suiting(nodes=20)
    splits = random_splits(graph.labels, count=1)
    save_graph(tmp_path / OBEYED, graph, splits=splits)
    assert main(["measure", str(tmp_path / OBEYED), "--only", "edge_homophily"]) == 0
    assert main(["measure", str(tmp_path / f"no {OBEYED}")]) == 1
    for text in capsys.readouterr():
        assert SHOWN in text.replace("\n", "")
        assert "\x1b" not in text


def test_a_path_that_is_not_utf8_is_in_the_json_document(tmp_path, capsys):
    graph = suiting(nodes=20)
    folder = tmp_path / "gr\udcff"
    save_graph(folder, graph, splits=random_splits(graph.labels, count=1))
    assert main(["import", "--verify", str(folder), "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out)["folder"] == str(folder)
