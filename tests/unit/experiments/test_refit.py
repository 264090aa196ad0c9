"""Saved models are trained again on all labelled nodes."""

import json

import pytest
import torch
from graphs import suiting

from unalike import (
    GCN,
    LINKX,
    RunOptions,
    Task,
    Training,
    load_model,
    random_splits,
    run,
    save_graph,
)
from unalike.cli.main import main
from unalike.data.metrics import ACCURACY


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=80)
    return save_graph(
        tmp_path / "g", graph, splits=random_splits(graph.labels, count=3)
    )


def method(kind=LINKX, epochs=12):
    return kind(hidden=4, training=Training(epochs=epochs, lr=0.05))


@pytest.mark.parametrize("kind", [LINKX, GCN])
def test_the_saved_model_learns_from_all_labels_for_the_median_epochs(
    stored, tmp_path, kind
):
    path, graph = tmp_path / "m.safetensors", stored.graph
    results = run(stored, method(kind), options=RunOptions(model=path))
    best = max(results, key=lambda result: result.valid)
    epochs = sorted(result.best_epoch for result in results)[1]
    labelled = (graph.labels >= 0).nonzero()[:, 0]
    task = Task(graph, labelled, labelled, ACCURACY, best.split, use_last=True)
    expected = method(kind, epochs).solve(task).scores
    assert torch.allclose(load_model(path).scores(graph), expected, atol=1e-4)


def test_the_last_epoch_is_used_though_an_earlier_one_is_better(stored):
    graph = stored.graph
    valid = stored.splits()[0].valid
    train = stored.splits()[0].train
    tasks = [
        Task(graph, train, valid, ACCURACY, use_last=use_last)
        for use_last in (False, True)
    ]
    best, last = (method(epochs=40).solve(task).curve for task in tasks)
    assert best.valid_scores == last.valid_scores
    assert last.best_epoch == 40 > best.best_epoch


def test_a_split_can_be_saved_as_it_is(stored, tmp_path, capsys):
    words = ["train", str(stored.folder), "--splits", "0", "--device", "cpu"]
    options = ["linkx", "--hidden", "4", "--epochs", "5"]
    found = {}
    for name, flags in (("refit", []), ("split", ["--no-refit"])):
        file = str(tmp_path / name)
        assert main([*words, *flags, "--json", "--save", file, *options]) == 0
        found[name] = json.loads(capsys.readouterr().out)["model"]
    labelled = int((stored.graph.labels >= 0).sum())
    assert found["refit"]["refit"]["nodes"] == labelled
    assert "refit" not in found["split"]
    scores = [load_model(tmp_path / name).scores(stored.graph) for name in found]
    assert not torch.equal(*scores)
    assert main([*words, "--save", str(tmp_path / "x"), *options]) == 0
    assert f"a model of all {labelled} labelled nodes" in capsys.readouterr().out
