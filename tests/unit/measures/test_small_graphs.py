"""Conventions, edge statistics, bootstrap and sampling on small graphs."""

import math

import pytest
import torch

from unalike import Graph, UserError, measure, open_graph, save_graph
from unalike.measures import Convention, paper_conventions, two_hop
from unalike.measures.edge_statistics import UNDIRECTED, GraphView, degree_histogram
from unalike.measures.interpretation import interpret


def small(pairs, labels, *, directed=False):
    edge_index = torch.tensor(pairs).T
    return Graph.from_edges(
        *edge_index,
        num_nodes=len(labels),
        labels=torch.tensor(labels),
        directed=directed,
    )


def edge_homophily(graph, **convention):
    conventions = Convention(**convention)
    return measure(graph, only=["edge_homophily"], conventions=conventions)[
        "edge_homophily"
    ]


def test_the_convention_sets_the_weight_of_self_loops():
    graph = small([(0, 0), (0, 1), (1, 2)], [0, 0, 1])
    assert edge_homophily(graph) == 1 / 2
    assert edge_homophily(graph, loops=1) == 3 / 5
    assert edge_homophily(graph, loops=2) == 4 / 6


def test_unlabelled_nodes_are_excluded_or_one_more_class():
    graph = small([(0, 1), (1, 2), (2, 3)], [0, 0, -1, -1])
    assert edge_homophily(graph) == 1
    assert edge_homophily(graph, unlabelled=True) == 2 / 3


def test_a_graph_without_labels_is_displayed():
    graph = small([(0, 1), (1, 2)], [-1, -1, -1])
    result = measure(graph, conventions=Convention(unlabelled=True))
    assert result.summary().rows[0][1:] == ["1.000", "100% of edges join equal labels"]
    assert measure(graph).summary().rows[0][1] == "–"


def test_undirected_edges_have_no_duplicates():
    graph = small([(0, 1), (1, 0), (1, 2)], [0, 0, 1], directed=True)
    assert edge_homophily(graph) == 2 / 3
    assert edge_homophily(graph, both_ways=True) == 1 / 2


def test_node_homophily_excludes_nodes_without_valid_edges():
    graph = small([(0, 1), (0, 2), (3, 4)], [0, 0, 1, 0, -1, 1])
    result = measure(graph, only=["node_homophily"])
    assert result["node_homophily"] == pytest.approx((1 / 2 + 1 + 0) / 3)


def test_the_result_has_counts_of_the_graph():
    graph = small([(0, 0), (0, 1), (1, 2)], [0, 0, -1])
    result = measure(graph, only=["edge_homophily"])
    assert result == {
        "num_nodes": 3,
        "num_edges": 3,
        "num_features": 0,
        "num_classes": 1,
        "num_loops": 1,
        "num_unlabelled": 1,
        "directed": False,
        "edge_homophily": 1.0,
    }
    assert result["num_edges"] == graph.num_edges


def test_a_class_without_edges_has_a_nan_row():
    graph = small([(0, 1)], [0, 0, 1])
    matrix = measure(graph)["compatibility"]
    assert matrix[0] == [1, 0]
    assert all(map(math.isnan, matrix[1]))


def test_two_hop_neighbours_are_exactly_two_steps_away():
    triangle_and_tail = [(0, 1), (1, 2), (0, 2), (2, 3)]
    result = measure(small(triangle_and_tail, [0, 1, 1, 0]))
    assert result["two_hop_node_homophily"] == pytest.approx((1 + 0 + 1 / 2) / 3)
    assert result["two_hop_node_homophily_standard_error"] == 0


def test_large_graphs_are_sampled_with_a_standard_error(monkeypatch):
    monkeypatch.setattr(two_hop, "MAX_EXACT_NODES", 100)
    monkeypatch.setattr(two_hop, "SAMPLE_SIZE", 200)
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(400, (2, 1200), generator=generator)
    labels = torch.randint(2, (400,), generator=generator)
    graph = Graph.from_edges(*edge_index, num_nodes=400, labels=labels)
    sampled = measure(graph, only=["two_hop_node_homophily"])
    monkeypatch.setattr(two_hop, "MAX_EXACT_NODES", 1000)
    exact = measure(graph, only=["two_hop_node_homophily"])
    error = sampled["two_hop_node_homophily_standard_error"]
    assert 0 < error < 0.02
    assert sampled["two_hop_node_homophily"] == pytest.approx(
        exact["two_hop_node_homophily"], abs=3 * error
    )


def test_intervals_contain_the_value_and_depend_on_the_seed_only():
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(500, (2, 3000), generator=generator)
    labels = torch.randint(3, (500,), generator=generator)
    graph = Graph.from_edges(*edge_index, num_nodes=500, labels=labels, directed=True)
    result = measure(graph, bootstrap=200)
    low, high = result["intervals"]["edge_homophily"]
    assert low < result["edge_homophily"] < high
    expected = 2 * 1.96 * math.sqrt(2 / 9 / 3000)
    assert high - low == pytest.approx(expected, rel=0.35)
    again = measure(graph, bootstrap=200)["intervals"]
    assert repr(again) == repr(result["intervals"])
    assert measure(graph, bootstrap=200, seed=1)["intervals"] != again


def test_small_graphs_are_resampled_by_single_nodes():
    graph = small([(0, 1), (2, 3)], [0, 0, 0, 1])
    result = measure(graph, only=["edge_homophily"], bootstrap=400)
    assert result["intervals"]["edge_homophily"] == (0, 1)


def test_a_memory_mapped_graph_has_the_same_measures(tmp_path):
    graph = small([(0, 0), (0, 1), (1, 2), (3, 0)], [0, 1, -1, 0], directed=True)
    save_graph(tmp_path / "graph", graph)
    mapped = open_graph(tmp_path / "graph").load()
    assert repr(measure(mapped)) == repr(measure(graph))


def test_degree_histogram_of_an_undirected_view():
    graph = small([(0, 1), (0, 2)], [0, 0, 0, 0], directed=True)
    degrees, counts = degree_histogram(GraphView.of(graph, UNDIRECTED))
    assert degrees.tolist() == [0, 1, 2]
    assert counts.tolist() == [1, 2, 1]


def test_most_measures_of_the_paper_use_stored_edges():
    assert set(paper_conventions("nothing special")) == {
        "node_homophily",
        "two_hop_node_homophily",
    }
    assert paper_conventions("texas")["edge_homophily"].loops == 2


def test_an_unknown_measure_gets_a_suggestion():
    with pytest.raises(UserError, match="Did you mean 'edge_homophily'"):
        measure(small([(0, 1)], [0, 1]), only=["edge_homophly"])


def test_a_batch_of_rows_is_an_error():
    batch = small([(0, 1), (1, 2)], [0, 1, 0]).select_rows(torch.tensor([0, 1]))
    with pytest.raises(UserError, match="2 of 3 rows"):
        measure(batch)


def test_a_graph_of_self_loops_is_told_that_no_edge_joins_two_nodes():
    result = measure(small([(0, 0), (1, 1), (2, 2)], [0, 1, 0]))
    for name in ("generalised_edge_homophily", "unbiased_homophily"):
        assert interpret(name, result) == "no edge joins two labelled nodes"


@pytest.mark.parametrize("count", [-1, 10**12])
def test_an_impossible_number_of_bootstrap_samples_is_refused(count):
    with pytest.raises(UserError, match="give 0 to 100000"):
        measure(small([(0, 1)], [0, 1]), bootstrap=count)
