"""`unalike bench layers` on a stored graph and on random ones."""

import json

import pyg_models as pyg
import pytest
from graphs import suiting

from unalike import save_graph
from unalike.bench import layers
from unalike.cli.main import main

assert pyg.Data  # imported with its warnings silenced

QUICK = ["--device", "cpu", "--repeats", "1", "--hidden", "8"]
FORMS = ["PyG on edge_index", "PyG on CSR", "PyG on EdgeIndex", "unalike on edge_index"]


@pytest.fixture
def stored(tmp_path):
    return str(save_graph(tmp_path / "likes", suiting(nodes=40)).folder)


def timed(capsys, *words):
    assert main(["bench", "layers", *words, *QUICK, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.parametrize("layer", layers.LAYERS)
def test_every_layer_is_timed_next_to_the_forms_of_pyg(layer, stored, capsys):
    output = timed(capsys, "--graph", stored, "--only", layer)
    rows = output["layers"]
    assert [row["what"] for row in rows] == FORMS
    assert [row["ours"] for row in rows] == [False, False, False, True]
    *theirs, ours = rows
    for row in rows:
        assert (row["layer"], row["graph"], row["hidden"]) == (layer, "likes", 8)
        assert row["nodes"] == 40 and not row["compiled"] and "failed" not in row
        assert row["forward_ms"] > 0 and row["step_ms"] > 0 and row["gib"] > 0
    step = min(theirs, key=lambda row: row["step_ms"])
    assert ours["times_step"] == pytest.approx(step["step_ms"] / ours["step_ms"])
    assert ours["share_of_memory"] == pytest.approx(ours["gib"] / step["gib"])
    forward = min(row["forward_ms"] for row in theirs)
    assert ours["times_forward"] == pytest.approx(forward / ours["forward_ms"])
    assert output["device"] and output["versions"]["torch"]


@pytest.mark.long
def test_a_table_and_a_plot_are_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setitem(layers.SIZES, "cora", {"nodes": 30, "pairs": 60})
    plot = tmp_path / "layers.svg"
    words = ["--sizes", "cora", "--only", "GCNConv", "LINKX", "--plot", str(plot)]
    assert main(["bench", "layers", *words, *QUICK]) == 0
    output = capsys.readouterr().out
    lines = output.splitlines()
    assert all(len(line) <= 80 for line in lines)
    for name in ("forward ms", "step ms", "of its memory", *FORMS):
        assert name in output
    assert "…" not in output
    assert "cora: 30 nodes" in plot.read_text("utf-8")


@pytest.mark.slow
def test_compiled_networks_are_compared_with_compiled_ones(stored, capsys):
    output = timed(capsys, "--graph", stored, "--only", "GCNConv", "--compiled")
    rows = output["layers"]
    assert [row["compiled"] for row in rows] == [False] * 4 + [True] * 4
    ours = rows[-1]
    assert ours["ours"] and ours["step_ms"] > 0
    theirs = [row["step_ms"] for row in rows[4:7] if row["step_ms"]]
    assert ours["times_step"] == pytest.approx(min(theirs) / ours["step_ms"])


def refused(library, graph, hidden):
    if library.__name__ == layers.PYG:
        raise NotImplementedError("no such layer\nand more")
    return layers.appnp(library, graph, hidden)


@pytest.mark.long
def test_what_pyg_refuses_is_named(stored, capsys, monkeypatch):
    monkeypatch.setitem(layers.LAYERS, "APPNP", refused)
    words = ["bench", "layers", "--graph", stored, "--only", "APPNP", *QUICK]
    assert main(words) == 0
    output = capsys.readouterr().out
    reason = "APPNP, PyG on CSR: NotImplementedError: no such layer"
    assert reason in output.splitlines()
    assert "failed" in output


@pytest.mark.parametrize(
    ("words", "nearest"),
    [(["--only", "MixHop"], "MixHopConv"), (["--sizes", "corra"], "cora")],
)
def test_unknown_names_suggest_the_nearest(capsys, words, nearest):
    assert main(["bench", "layers", *words, *QUICK]) == 1
    assert f"Did you mean '{nearest}'?" in capsys.readouterr().err
