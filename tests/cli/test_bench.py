"""`unalike bench` on a stored graph."""

import json

import pyg_models as pyg
import pytest
import torch
from graphs import suiting

from unalike import random_splits, save_graph
from unalike.bench.epochs import BenchmarkCase, EpochBenchmark
from unalike.cli import bench as command
from unalike.cli.main import main

assert pyg.Data  # imported with its warnings silenced


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=80)
    splits = random_splits(graph.labels, count=1)
    return str(save_graph(tmp_path / "likes", graph, splits=splits).folder)


ONCE = ["--device", "cpu", "--repeats", "1"]
QUICK = [*ONCE, "--stacks"]


def timed(capsys, *words):
    assert main(["bench", *words, *QUICK, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_methods_are_timed_beside_baselines(stored, capsys):
    words = ["methods", "--graph", stored, "--hidden", "8", "--only", "gcn", "appnp"]
    output = timed(capsys, *words)
    rows = output["epochs"]
    assert [(row["method"], row["ours"]) for row in rows] == [
        (name, ours) for name in ("gcn", "appnp") for ours in (False, False, True)
    ]
    assert all(row["ms"] > 0 and row["hidden"] == 8 for row in rows)
    for method in ("gcn", "appnp"):
        *theirs, ours = (row for row in rows if row["method"] == method)
        fastest = min(row["ms"] for row in theirs)
        assert ours["times_fastest_peer"] == pytest.approx(fastest / ours["ms"])
        assert max(row["times_fastest_peer"] for row in theirs) == 1


@pytest.mark.long
def test_the_engine_is_timed_and_plotted(stored, capsys, tmp_path):
    plot = tmp_path / "speed.svg"
    words = ["engine", "--graph", stored, "--hidden", "8", "--plot", str(plot)]
    assert main(["bench", *words, *QUICK]) == 0
    output = capsys.readouterr().out
    assert "× peer" in output
    assert "unalike float32" in output
    assert "an epoch of linkx, hidden 8" in plot.read_text()


@pytest.mark.long
def test_stacks_of_runs_are_timed(stored, capsys):
    words = ["--graph", stored, "--hidden", "8", "--stacked-graph", stored]
    assert main(["bench", "engine", *words, *ONCE, "--stacks", "1", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["stacks"]
    assert [row["runs"] for row in rows] == [1, 2]
    for row in rows:
        rate = 1000 * row["runs"] / row["ms"]
        assert row["model_epochs_per_second"] == pytest.approx(rate)
    assert main(["bench", "engine", *words, *ONCE, "--stacks", "2"]) == 0
    assert "model-epochs a second" in capsys.readouterr().out


def test_unknown_devices_are_refused(stored, capsys):
    words = ["--graph", stored, "--device", "cuda:99", "--repeats", "1"]
    assert main(["bench", "engine", *words]) == 1
    assert "No device 'cuda:99'" in capsys.readouterr().err


class Greedy(EpochBenchmark):
    """Two cases, one of which runs out of memory."""

    default_hidden = 1

    def cases(self, graph, split, hidden):
        def too_large():
            raise torch.OutOfMemoryError

        def quick():
            return lambda: None

        return [
            BenchmarkCase("gcn", hidden, "theirs", too_large, ours=False),
            BenchmarkCase("gcn", hidden, "mine", quick, ours=True),
        ]


@pytest.mark.long
def test_cases_that_run_out_of_memory_are_named(stored, capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(command.BENCHES, "methods", Greedy)
    plot = tmp_path / "speed.svg"
    words = ["bench", "methods", "--graph", stored, "--plot", str(plot), *QUICK]
    assert main(words) == 0
    theirs, mine = capsys.readouterr().out.splitlines()[1:]
    assert "out of memory" in theirs and "out of memory" not in mine
    assert "out of memory" in plot.read_text()


@pytest.mark.parametrize(
    ("words", "nearest"),
    [(["methods", "--only", "gnc"], "gcn"), (["method"], "methods")],
)
def test_unknown_names_suggest_the_nearest(stored, capsys, words, nearest):
    assert main(["bench", *words, "--graph", stored, *QUICK]) == 1
    assert nearest in capsys.readouterr().err
