"""Contracts of all measures."""

import math

import numpy as np
import pytest
import torch

from unalike import MEASURES, Adjacency, Graph, measure
from unalike.measures import Convention, edge_statistics
from unalike.measures.interpretation import INTERPRETATIONS, interpret
from unalike.measures.registry import ONE_PASS_MEASURES, OWN_PASS_MEASURES
from unalike.reports.paper_figures import simulate_imbalance

SCALARS = [*ONE_PASS_MEASURES, *OWN_PASS_MEASURES]
LOWEST = {
    "adjusted_homophily": -1,
    "unbiased_homophily": -1,
    "generalised_edge_homophily": -1,
    "monophily": -math.inf,
}
HIGHEST = {"node_label_informativeness": math.inf, "monophily": math.inf}


def random_graph(seed, *, nodes=60, directed=False, classes=3):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(nodes, (2, 200), generator=generator)
    return Graph.from_edges(
        *edge_index,
        num_nodes=nodes,
        labels=torch.randint(-1, classes, (nodes,), generator=generator),
        num_classes=classes,
        features=torch.randn(nodes, 4, generator=generator),
        directed=directed,
    )


def renumbered(graph, order):
    """The same graph with its nodes in another order."""
    position = torch.empty_like(order)
    position[order] = torch.arange(len(order))
    return Graph.from_edges(
        position[graph.adjacency.row_indices],
        position[graph.adjacency.indices.long()],
        num_nodes=graph.num_nodes,
        labels=graph.labels[order],
        num_classes=graph.num_classes,
        features=graph.features[order],
        directed=graph.directed,
    )


def close(one, other):
    for name in SCALARS:
        assert one[name] == pytest.approx(other[name], nan_ok=True), name


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_values_lie_in_their_range(seed, directed):
    result = measure(random_graph(seed, directed=directed))
    for name in SCALARS:
        low, high = LOWEST.get(name, 0), HIGHEST.get(name, 1)
        assert math.isnan(result[name]) or low <= result[name] <= high, name


@pytest.mark.parametrize("directed", [False, True])
def test_the_order_of_nodes_does_not_matter(directed):
    graph = random_graph(1, directed=directed)
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(3))
    close(measure(graph), measure(renumbered(graph, order)))


@pytest.mark.parametrize("directed", [False, True])
def test_the_names_of_classes_do_not_matter(directed):
    graph = random_graph(2, directed=directed)
    names = torch.tensor([2, 0, 1, -1])
    other = Graph.build(
        graph.adjacency,
        labels=names[graph.labels],
        num_classes=3,
        features=graph.features,
        directed=directed,
    )
    close(measure(graph), measure(other))


def test_a_class_that_no_node_has_does_not_matter():
    graph = random_graph(4)
    more = Graph.build(
        graph.adjacency, labels=graph.labels, num_classes=7, features=graph.features
    )
    close(measure(graph), measure(more))


def test_the_number_of_threads_does_not_matter(monkeypatch):
    monkeypatch.setattr(edge_statistics, "BLOCK_EDGES", 20)
    graph = random_graph(5, directed=True)
    single = measure(graph)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert repr(measure(graph)) == repr(single)


def test_sparse_and_dense_features_give_the_same_value():
    dense = random_graph(6)
    positive = dense.features * (dense.features > 0)
    rows, columns = positive.nonzero().T
    sparse = Adjacency.from_edges(
        rows, columns, shape=tuple(positive.shape), values=positive[rows, columns]
    )
    one, other = (
        measure(
            Graph.build(dense.adjacency, labels=dense.labels, features=features),
            only=["generalised_edge_homophily"],
        )["generalised_edge_homophily"]
        for features in (positive, sparse)
    )
    assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges(*torch.zeros(2, 0).long(), num_nodes=0),
        Graph.from_edges(*torch.zeros(2, 0).long(), num_nodes=3),
        Graph.from_edges(*torch.tensor([[0], [1]]), num_nodes=3),
        Graph.from_edges(*torch.tensor([[0], [0]]), num_nodes=1, directed=True),
        Graph.from_edges(
            *torch.tensor([[0], [1]]), num_nodes=3, labels=torch.tensor([0, 0, -1])
        ),
    ],
    ids=["no nodes", "no edges", "no labels", "only a loop", "one class"],
)
@pytest.mark.parametrize("unlabelled", [False, True])
def test_degenerate_graphs_give_nan(graph, unlabelled):
    result = measure(graph, conventions=Convention(unlabelled=unlabelled), bootstrap=3)
    assert math.isnan(result["adjusted_homophily"])
    assert math.isnan(result["label_informativeness"])
    assert math.isnan(result["class_homophily"]) or unlabelled


@pytest.mark.parametrize("name", SCALARS)
def test_every_measure_cites_a_paper_and_has_an_interpretation(name):
    assert "arXiv:" in (MEASURES[name].__doc__ or "")
    for value in (-1.0, 0.0, 0.01, 0.1, 0.4, 1.0, math.nan):
        result = {name: value, "node_homophily": 0.3, "num_classes": 3} | {name: value}
        assert 10 < len(interpret(name, result)) < 70
    assert name in INTERPRETATIONS


def test_two_cliques_are_perfectly_homophilous():
    block = torch.block_diag(torch.ones(4, 4), torch.ones(4, 4)).fill_diagonal_(0)
    rows, columns = block.nonzero().T
    labels = torch.tensor([0] * 4 + [1] * 4)
    result = measure(Graph.from_edges(rows, columns, num_nodes=8, labels=labels))
    for name in list(ONE_PASS_MEASURES)[:7]:
        assert result[name] == pytest.approx(1), name
    assert result["compatibility"] == [[1, 0], [0, 1]]


@pytest.mark.long
def test_random_edges_have_no_class_homophily_for_imbalanced_classes():
    result = simulate_imbalance()
    sizes = np.array([50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 99])
    expected = (sizes * (sizes - 1) + (100 - sizes) * (99 - sizes)) / 9900
    np.testing.assert_allclose(result["edge_homophily"].mean(1), expected, atol=0.006)
    assert (result["class_homophily"].mean(1) < 0.015).all()
