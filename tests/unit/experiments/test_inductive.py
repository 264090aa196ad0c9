"""Inductive evaluation: test nodes and their edges are not there in training."""

from dataclasses import replace

import pytest
import torch
from graphs import suiting

from unalike import (
    Adjacency,
    Graph,
    LabelPropagation,
    Training,
    UserError,
    open_graph,
    random_splits,
    run,
    save_graph,
)
from unalike.cli.main import main
from unalike.experiments.config import DatasetOptions
from unalike.experiments.run import RunOptions, train_splits
from unalike.methods import METHODS

SHORT = Training(epochs=8, lr=0.05)
INDUCTIVE = DatasetOptions(inductive=True)


def stored(tmp_path, graph, name="g"):
    splits = random_splits(graph.labels, count=1)
    save_graph(tmp_path / name, graph, splits=splits)
    return open_graph(tmp_path / name)


def solved(graph, method):
    output = train_splits(INDUCTIVE.apply(graph), method)
    (split,) = graph.splits()
    return output.solutions[0].scores, split


def without_edges_of(graph, nodes):
    rows = graph.adjacency.to_scipy().tolil()
    rows[nodes, :] = 0
    rows[:, nodes] = 0
    return rows


def rewired(graph, split):
    """Other edges and features of the test nodes, to nodes of any part."""
    test = split.test.numpy().copy()
    others = split.train[: len(test)].numpy().copy()
    rows = without_edges_of(graph, test)
    rows[test, others] = rows[others, test] = 1
    features = graph.features.clone()
    features[test] += 3
    adjacency = Adjacency.from_scipy(rows.tocsr())
    return replace(graph, adjacency=adjacency, features=features)


@pytest.mark.parametrize("name", ["mlp", "link", "linkx", "gcn", "sgc", "fsgnn"])
def test_training_does_not_see_test_nodes(tmp_path, name):
    method = METHODS[name](training=SHORT)
    graph = stored(tmp_path, suiting(nodes=120))
    (split,) = graph.splits()
    other = stored(tmp_path, rewired(graph.graph, split), "other")
    curves = [
        train_splits(INDUCTIVE.apply(one), method).solutions[0].curve
        for one in (graph, other)
    ]
    assert curves[0].losses == curves[1].losses
    assert curves[0].valid_scores == curves[1].valid_scores


@pytest.mark.parametrize("directed", [False, True])
def test_row_wise_methods_score_test_nodes_as_new_ones(tmp_path, directed):
    graph = stored(tmp_path, suiting(nodes=120, directed=directed))
    method = METHODS["linkx"](training=SHORT, directions="both")
    scores, split = solved(graph, method)
    # An edge between two test nodes changes nothing.
    first, second = split.test[:2].tolist()
    rows = graph.graph.adjacency.to_scipy().tolil()
    rows[first, second] = rows[second, first] = 1 - rows[first, second]
    adjacency = Adjacency.from_scipy(rows.tocsr())
    changed = replace(graph.graph, adjacency=adjacency)
    again, _ = solved(stored(tmp_path, changed, "other"), method)
    assert torch.equal(scores, again)


def test_message_passing_scores_test_nodes_by_all_their_edges(tmp_path):
    graph = stored(tmp_path, suiting(nodes=120))
    scores, split = solved(graph, METHODS["sgc"](training=SHORT))
    without = without_edges_of(graph.graph, split.test.numpy())
    alone = replace(graph.graph, adjacency=Adjacency.from_scipy(without.tocsr()))
    other, _ = solved(stored(tmp_path, alone, "other"), METHODS["sgc"](training=SHORT))
    assert not torch.allclose(scores[split.test], other[split.test])


def test_inductive_scores_are_stored_with_their_option(tmp_path):
    graph = stored(tmp_path, suiting(nodes=120))
    (result,) = run(INDUCTIVE.apply(graph), METHODS["linkx"](training=SHORT))
    assert result.view == {"inductive": True}
    assert "--inductive" in result.command


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (LabelPropagation(), "it has no model apart from the graph"),
        (METHODS["glognn"](training=SHORT), "it has a weight for each node"),
        (METHODS["a2dug"](training=SHORT), "it has a weight for each node"),
    ],
)
def test_methods_that_cannot_score_new_nodes_are_refused(tmp_path, method, message):
    graph = stored(tmp_path, suiting(nodes=120))
    with pytest.raises(UserError, match=message):
        run(INDUCTIVE.apply(graph), method)


def test_options_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(UserError, match="exclude each other"):
        DatasetOptions(inductive=True, label_inputs=True)
    graph = stored(tmp_path, suiting(nodes=120))
    options = RunOptions(model=tmp_path / "m.safetensors", refit=False)
    with pytest.raises(UserError, match="leave out --no-refit"):
        run(INDUCTIVE.apply(graph), METHODS["link"](training=SHORT), options=options)


def test_the_command_takes_the_option(tmp_path, capsys):
    graph = stored(tmp_path, suiting(nodes=120))
    assert isinstance(graph.graph, Graph)
    command = ["train", str(graph.folder), "linkx", "--epochs", "5", "--inductive"]
    assert main(command) == 0
    assert "linkx: accuracy" in capsys.readouterr().out
