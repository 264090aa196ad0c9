"""Duplicates: nodes with equal neighbour sets, compared with a dense matrix."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import Graph, measure
from unalike.cli.main import main
from unalike.data.adjacency import Adjacency
from unalike.data.equal_rows import equal_rows
from unalike.data.split import Split, random_splits
from unalike.data.store import save_graph
from unalike.measures import Convention
from unalike.measures.interpretation import interpret

NAMES = ["duplicate_nodes", "duplicate_label_agreement", "duplicate_test_nodes"]


@st.composite
def graphs(draw):
    """Small graphs with loops, isolated nodes, unlabelled nodes and equal rows."""
    nodes = draw(st.integers(1, 9))
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    edges = draw(st.lists(pairs, max_size=3 * nodes))
    source, target = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    labels = draw(st.lists(st.integers(-1, 2), min_size=nodes, max_size=nodes))
    return Graph.from_edges(
        source,
        target,
        num_nodes=nodes,
        labels=torch.tensor(labels),
        num_classes=3,
        directed=draw(st.booleans()),
    )


def dense_duplicates(graph, *, loops):
    """Whether node v has the neighbour set of node u, by comparing dense rows."""
    rows = graph.adjacency.to_dense().numpy() != 0
    if not loops:
        np.fill_diagonal(rows, False)
    equal = (rows[:, None] == rows[None]).all(2) & rows.any(1)[:, None]
    np.fill_diagonal(equal, False)
    return equal


@settings(deadline=None)
@given(graphs(), st.integers(0, 2), st.integers(0, 2**16))
def test_values_equal_those_of_dense_rows(graph, loops, seed):
    splits = random_splits(torch.zeros(graph.num_nodes).long(), count=2, seed=seed)
    result = measure(
        graph, only=NAMES, conventions=Convention(loops=loops), splits=splits
    )
    equal = dense_duplicates(graph, loops=loops > 0)
    labels = graph.labels.numpy()
    assert result["duplicate_nodes"] == pytest.approx(equal.any(1).mean())
    agreement = [
        (labels[others] == labels[node]).mean()
        for node in np.flatnonzero(labels >= 0)
        if len(others := np.flatnonzero(equal[node] & (labels >= 0)))
    ]
    expected = np.mean(agreement) if agreement else math.nan
    assert result["duplicate_label_agreement"] == pytest.approx(expected, nan_ok=True)
    found = [
        equal[np.ix_(split.test, split.train)].any(1).mean()
        for split in splits
        if len(split.test)
    ]
    expected = np.mean(found) if found else math.nan
    assert result["duplicate_test_nodes"] == pytest.approx(expected, nan_ok=True)


@settings(deadline=None)
@given(graphs(), st.booleans())
def test_groups_of_weighted_rows_have_equal_values(graph, loops):
    weights = torch.arange(graph.adjacency.nnz) % 2 + 1.0
    matrix = Adjacency(
        graph.adjacency.indptr, graph.adjacency.indices, graph.num_nodes, weights
    )
    rows = matrix.to_dense().numpy().copy()
    if not loops:
        np.fill_diagonal(rows, 0)
    equal = (rows[:, None] == rows[None]).all(2) & rows.any(1)[:, None]
    np.fill_diagonal(equal, True)
    group = equal_rows(matrix, loops=loops).numpy()
    np.testing.assert_array_equal(group[:, None] == group[None], equal)


def test_isolated_nodes_and_nodes_with_only_a_loop_are_never_duplicates():
    loops = torch.tensor([0, 1])
    graph = Graph.from_edges(loops, loops, num_nodes=4, directed=True)
    assert measure(graph, only=NAMES)["duplicate_nodes"] == 0


def twins(labels):
    """Nodes 2k and 2k + 1 lead to node k and to no other."""
    source = torch.arange(len(labels))
    return Graph.from_edges(
        source,
        source // 2,
        num_nodes=len(labels),
        labels=torch.tensor(labels),
        directed=True,
    )


def looked_up():
    half = torch.arange(2, 20)
    return Split(half[::2], torch.arange(2), half[1::2])


def test_the_text_says_whether_test_labels_can_be_looked_up():
    pairs = [node // 2 % 2 for node in range(20)]
    result = measure(twins(pairs), splits=[looked_up()])
    assert result["duplicate_test_nodes"] == 1
    text = "100% of test nodes can be looked up in train: filter them"
    assert interpret("duplicate_test_nodes", result) == text
    result = measure(twins([node % 2 for node in range(20)]), splits=[looked_up()])
    text = "100% of test nodes have the neighbours of a train node"
    assert interpret("duplicate_test_nodes", result) == text
    without = measure(twins(pairs))
    assert interpret("duplicate_test_nodes", without) == "there are no splits"


def test_the_command_names_the_filtered_graph(tmp_path, capsys):
    graph = twins([node // 2 % 2 for node in range(20)])
    save_graph(tmp_path / "squirrel", graph, splits=[looked_up()])
    assert main(["measure", str(tmp_path / "squirrel"), "--only", *NAMES]) == 0
    err = " ".join(capsys.readouterr().err.split())
    assert "100% of the test nodes of squirrel can be looked up in train" in err
    assert "use squirrel-filtered" in err
