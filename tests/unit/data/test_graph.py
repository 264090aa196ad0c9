"""Graphs: what they count, how they are cut, and the ways in and out."""

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from graphs import EDGES, HAND_DRAWN, drawn, suiting
from hypothesis import given
from hypothesis import strategies as st
from pyg_models import Data

from unalike import Adjacency, Graph, UserError


def assert_same(found, wanted):
    for part in ("indptr", "indices", "values"):
        one, other = getattr(found.adjacency, part), getattr(wanted.adjacency, part)
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other)
    assert torch.equal(found.features.to_dense(), wanted.features.to_dense())
    assert torch.equal(found.labels, wanted.labels)
    assert found.num_classes == wanted.num_classes
    assert found.directed == wanted.directed


@pytest.mark.parametrize("name", HAND_DRAWN)
def test_edges_are_counted_as_people_do(name):
    assert HAND_DRAWN[name].num_edges == EDGES[name]


def test_loops_and_rows_of_a_drawing():
    graph = HAND_DRAWN["loops"]
    assert graph.num_loops == 2
    assert graph.adjacency.to_dense().tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert HAND_DRAWN["directed"].adjacency.to_dense().tolist() == [
        [0, 1, 0, 1],
        [0, 0, 1, 0],
        [1, 0, 0, 0],
        [0, 0, 0, 0],
    ]


def test_repeated_and_mirrored_pairs_are_one_edge():
    graph = drawn([(0, 1), (1, 0), (0, 1)], 2)
    assert graph.num_edges == 1
    assert drawn([(0, 1), (1, 0), (0, 1)], 2, directed=True).num_edges == 2


def test_weights_of_repeated_and_mirrored_pairs_are_added():
    ends = [0, 1, 0, 2], [1, 0, 1, 2]
    graph = Graph.from_edges(*ends, weights=[0.5, 2, 1, 3])
    assert graph.adjacency.to_dense().tolist() == [[0, 3.5, 0], [3.5, 0, 0], [0, 0, 3]]
    directed = Graph.from_edges(*ends, weights=np.array([0.5, 2, 1, 3]), directed=True)
    assert directed.adjacency.to_dense().tolist() == [[0, 1.5, 0], [2, 0, 0], [0, 0, 3]]
    text = networkx.Graph([(0, 1, {"km": 3.5}), (1, 2)])
    found = Graph.from_networkx(text, weight="km")
    assert found.adjacency.to_dense().tolist() == [[0, 3.5, 0], [3.5, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1], "2 edges need 2 weights"),
        ([1, 0], "numbers above 0"),
        ([1, float("nan")], "numbers above 0"),
        ([1, "a"], "Edge weights are numbers"),
    ],
)
def test_weights_that_are_refused(weights, message):
    with pytest.raises(UserError, match=message):
        Graph.from_edges([0, 1], [1, 2], weights=weights)


def test_what_is_not_given_is_empty_or_unknown():
    graph = Graph.from_edges(torch.tensor([0]), torch.tensor([1]), num_nodes=3)
    assert graph.labels.tolist() == [-1, -1, -1]
    assert (graph.num_classes, graph.features.shape) == (0, (3, 0))
    assert not graph.directed


def test_labels_beyond_the_classes():
    edges = torch.tensor([0, 1]), torch.tensor([1, 2])
    labels = torch.tensor([0, 2, -1])
    with pytest.raises(UserError, match="label 2 is not one of 2 classes"):
        Graph.from_edges(*edges, num_nodes=3, labels=labels, num_classes=2)


@pytest.mark.parametrize("name", HAND_DRAWN)
def test_pyg_and_back(name):
    graph = HAND_DRAWN[name]
    if not graph.directed:
        assert graph.to_pyg().is_undirected()
    assert_same(Graph.from_pyg(graph.to_pyg()), graph)


def test_pyg_keeps_weights_and_takes_labels_as_a_column():
    ends = torch.tensor([[0, 1, 2], [1, 0, 0]])
    weight = torch.tensor([0.5, 0.5, 3.0])
    graph = Graph.from_pyg(
        Data(
            edge_index=ends,
            edge_weight=weight,
            y=torch.tensor([[1], [-1], [0]]),
            num_nodes=3,
        )
    )
    assert graph.adjacency.to_dense().tolist() == [[0, 0.5, 0], [0.5, 0, 0], [3, 0, 0]]
    assert graph.labels.tolist() == [1, -1, 0]
    assert graph.directed
    again = graph.to_pyg()
    assert torch.equal(again.edge_index, ends)
    assert torch.equal(again.edge_weight, weight)
    assert_same(Graph.from_pyg(again), graph)


def test_sparse_features_are_dense_in_pyg():
    graph = suiting(nodes=30, features="sparse")
    assert_same(Graph.from_pyg(graph.to_pyg()), graph)


@pytest.mark.parametrize("name", HAND_DRAWN)
def test_scipy_and_back(name):
    graph = HAND_DRAWN[name]
    found = Graph.from_scipy(
        graph.adjacency.to_scipy(),
        features=graph.features.numpy(),
        labels=graph.labels.numpy(),
    )
    assert_same(found, graph)


def test_scipy_features_stay_sparse_and_integers_become_floats():
    edges = scipy.sparse.coo_array(([2.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
    sparse = scipy.sparse.csr_array([[0, 3], [1, 0]])
    graph = Graph.from_scipy(edges, features=sparse)
    assert isinstance(graph.features, Adjacency)
    assert graph.features.to_dense().tolist() == [[0, 3], [1, 0]]
    assert graph.adjacency.values.tolist() == [2, 2]
    dense = Graph.from_scipy(edges, features=np.array([[1], [2]]))
    assert dense.features.dtype == torch.float32


def test_networkx_labels_of_any_kind_and_none():
    text = networkx.Graph()
    text.add_node("b", kind="dog", size=1)
    text.add_node("a", kind="cat", size=2.5)
    text.add_node("c", size=0)
    text.add_edges_from([("a", "b"), ("b", "c"), ("c", "c")])
    graph = Graph.from_networkx(text, label="kind", features=["size"])
    assert graph.labels.tolist() == [1, 0, -1]
    assert graph.features.tolist() == [[1.0], [2.5], [0.0]]
    assert graph.adjacency.to_dense().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 1]]
    assert (graph.num_classes, graph.num_edges, graph.directed) == (2, 3, False)


@pytest.mark.parametrize("name", HAND_DRAWN)
def test_networkx_edges(name):
    graph = HAND_DRAWN[name]
    text = (networkx.DiGraph if graph.directed else networkx.Graph)()
    text.add_nodes_from(range(graph.num_nodes))
    text.add_edges_from(zip(*graph.adjacency.to_scipy().nonzero(), strict=True))
    found = Graph.from_networkx(text)
    assert torch.equal(found.adjacency.to_dense(), graph.adjacency.to_dense())
    assert found.num_edges == text.number_of_edges() == graph.num_edges
    assert found.directed == graph.directed


@pytest.mark.parametrize(
    ("features", "labels", "words"),
    [
        (2, 3, "3 adjacency rows, 2 feature rows, 3 labels"),
        (3, 4, "3 adjacency rows, 3 feature rows, 4 labels"),
    ],
)
def test_parts_of_different_sizes_are_refused(features, labels, words):
    none = torch.zeros(0, dtype=torch.int64)
    with pytest.raises(UserError, match=words):
        Graph.from_edges(
            none,
            none,
            num_nodes=3,
            features=Adjacency.from_edges(none, none, shape=(features, 1)),
            labels=torch.zeros(labels, dtype=torch.int64),
        )


def test_a_rectangle_is_no_adjacency():
    with pytest.raises(UserError, match=r"square; this one is \(2, 3\)"):
        Graph.from_scipy(scipy.sparse.csr_array((2, 3)))


@given(st.sampled_from(sorted(HAND_DRAWN)), st.data())
def test_cuts_know_where_they_came_from(name, data):
    graph = HAND_DRAWN[name]
    every = st.sampled_from(range(graph.num_nodes))
    ids = torch.tensor(data.draw(st.lists(every, unique=True)), dtype=torch.int64)
    dense = graph.adjacency.to_dense()
    rows, inside = graph.select_rows(ids), graph.subgraph(ids)
    assert torch.equal(rows.adjacency.to_dense(), dense[ids])
    assert torch.equal(inside.adjacency.to_dense(), dense[ids][:, ids])
    for cut in (rows, inside):
        assert torch.equal(cut.ids, ids)
        assert torch.equal(cut.labels, graph.labels[ids])
        assert torch.equal(cut.features, graph.features[ids])
        again = cut.select_rows(torch.arange(len(ids)).flip(0))
        assert torch.equal(again.ids, ids.flip(0))


@pytest.mark.parametrize("name", HAND_DRAWN)
def test_leading_and_trailing_nodes(name):
    graph = HAND_DRAWN[name]
    for count in range(graph.num_nodes + 1):
        ids = torch.arange(graph.num_nodes)
        for cut, wanted in (
            (graph.head(count), ids[:count]),
            (graph.tail(count), ids[graph.num_nodes - count :]),
        ):
            assert torch.equal(cut.ids, wanted)
            assert_same(cut, graph.select_rows(wanted))


@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_nbytes_is_the_memory_of_the_arrays(features):
    graph = suiting(nodes=30, features=features)
    arrays = [graph.adjacency.indptr, graph.adjacency.indices, graph.labels, graph.ids]
    if features == "dense":
        arrays.append(graph.features)
    else:
        rows = graph.features
        arrays += [rows.indptr, rows.indices, rows.values]
    assert graph.nbytes == sum(array.nbytes for array in arrays)


def test_to_undirected_makes_an_undirected_graph():
    graph = HAND_DRAWN["directed"].to_undirected()
    assert (graph.directed, graph.num_edges) == (False, 4)
    assert graph.adjacency.is_symmetric
    assert graph.to_undirected() is graph
