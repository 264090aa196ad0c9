"""Views of large graphs: files, blocks and sampled rows give the same columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from unalike import Adjacency, Graph
from unalike.data.equal_rows import equal_dense_rows, equal_rows
from unalike.data.metrics import ACCURACY
from unalike.data.task import Task
from unalike.views import blocks, graph_views, heads, walks
from unalike.views.folds import Folds
from unalike.views.graph_views import _normalised, truncated_svd
from unalike.views.heads import Examples, fit_trees
from unalike.views.mlp_head import fit_mlp
from unalike.views.table import SharedViews, ViewTable

GROUPS = ("structure", "features", "labels", "duplicates")


def random_graph(directed: bool, features: torch.Tensor) -> Graph:
    """A graph with self-loops."""
    rng = np.random.default_rng(0)
    nodes = len(features)
    return Graph.from_edges(
        *torch.from_numpy(rng.integers(0, nodes, (2, 8 * nodes))),
        num_nodes=nodes,
        features=features,
        labels=torch.from_numpy(rng.integers(0, 3, nodes)),
        num_classes=3,
        directed=directed,
    )


def table_of(graph: Graph, groups: tuple[str, ...] = GROUPS) -> ViewTable:
    task = Task(graph, torch.arange(0, graph.num_nodes, 2), torch.arange(0), ACCURACY)
    shared = SharedViews.of(graph, groups, 2)
    return ViewTable.of(shared, task, Folds.draw(graph.num_nodes, 2, 0))


def is_in_file(x: torch.Tensor) -> bool:
    return x.untyped_storage().filename is not None


@pytest.mark.parametrize("directed", [False, True])
def test_columns_in_files_and_blocks_have_the_same_bits(
    directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(directed, torch.randn(500, 7))
    everyone = torch.arange(500)
    expected = table_of(graph).rows(everyone)
    monkeypatch.setattr(blocks, "MIN_FILE_BYTES", 1)
    monkeypatch.setattr(blocks, "MAX_MEMORY_SHARE", 0.0)
    monkeypatch.setattr(walks, "MAX_NNZ_AT_ONCE", 300)
    monkeypatch.setattr("unalike.views.table.CHUNK", 64)
    table = table_of(graph)
    assert all(
        is_in_file(block.values)
        for name, block in table.blocks.items()
        if name != "features"
    )
    assert torch.equal(table.rows(everyone), expected)


@pytest.mark.parametrize("directed", [False, True])
def test_weights_of_returns_are_the_same_by_compiled_loops(
    directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(directed, torch.randn(400, 3))
    expected = walks.Walks.of(graph, 2).returning
    monkeypatch.setattr(walks, "SMALL_NNZ", 0)
    actual = walks.Walks.of(graph, 2).returning
    assert all(torch.equal(actual[walk], expected[walk]) for walk in expected)


def test_singular_vectors_by_gram_matrices_span_the_same_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = random_graph(True, torch.randn(300, 3))
    matrix = walks.without_loops(graph.adjacency)
    dense = _normalised(matrix, matrix.T)
    assert isinstance(dense, Adjacency)
    monkeypatch.setattr(graph_views, "MANY_ROWS", 1)
    scaled = _normalised(matrix, matrix.T)
    left, values, right = truncated_svd(scaled, 20)
    torch.testing.assert_close(left.T @ left, torch.eye(20), atol=1e-4, rtol=0)
    torch.testing.assert_close(right.T @ right, torch.eye(20), atol=1e-4, rtol=0)
    exact = dense.to_dense()
    torch.testing.assert_close(left.T @ exact @ right, values.diag(), atol=1e-4, rtol=0)
    best = torch.linalg.svdvals(exact)[:20]
    assert float(values.sum()) > 0.98 * float(best.sum())
    assert float(values[0]) == pytest.approx(float(best[0]), rel=1e-3)


def test_wide_features_by_gram_matrices_span_the_same_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    low_rank = torch.randn(400, 5) @ torch.randn(5, 320)
    graph = random_graph(False, low_rank)
    expected = table_of(graph, ("features",)).blocks["features"].values
    monkeypatch.setattr(graph_views, "MANY_ROWS", 1)
    actual = table_of(graph, ("features",)).blocks["features"].values
    torch.testing.assert_close(
        actual[:, :5] @ actual[:, :5].T,
        expected[:, :5] @ expected[:, :5].T,
        rtol=1e-2,
        atol=0.05,
    )


def test_triangles_by_degree_order_are_the_closed_triples() -> None:
    graph = random_graph(False, torch.randn(200, 3))
    matrix = walks.without_loops(graph.adjacency)
    dense = matrix.to_dense()
    expected = (dense @ dense * dense).sum(1)
    assert expected.any()
    assert torch.equal(walks.closed_triples(matrix), expected)


def test_dense_rows_are_grouped_like_sparse_ones() -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.integers(-1, 2, (600, 5))).float()
    x[:7] = 0
    sparse = Adjacency.from_edges(*x.nonzero().T, shape=(600, 5), values=x[x != 0])
    assert torch.equal(
        equal_dense_rows(x).unique(return_inverse=True)[1],
        equal_rows(sparse).unique(return_inverse=True)[1],
    )


def test_too_many_entries_of_features_are_no_walk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = random_graph(False, torch.ones(50, 40))
    names = [walk.name for walk in walks.Walks.of(graph, 2).walks]
    assert "xy/mean" in names
    monkeypatch.setattr(walks, "MAX_SHARED_ENTRIES", 1999)
    names = [walk.name for walk in walks.Walks.of(graph, 2).walks]
    assert "xy/mean" not in names


def examples() -> Examples:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 6, generator=generator)
    y = (x[:, 0] > 0).long()
    return Examples(x[:200], y[:200], x[200:], y[200:], [4, 2], 2, ACCURACY, 0)


def test_trees_are_fitted_on_a_sample_of_many_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = examples()
    small = rows.sample(50)
    assert len(small.y) == len(small.x) == len(small.y_stop) == 50
    assert torch.equal(small.y, (small.x[:, 0] > 0).long())
    monkeypatch.setattr(heads, "MAX_TREE_ROWS", 50)
    sampled, direct = fit_trees(rows), fit_trees(small)
    assert torch.equal(sampled(rows.x), direct(rows.x))


def test_the_mlp_reads_rows_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = examples()
    expected = fit_mlp(rows)(rows.x)
    monkeypatch.setattr(blocks, "MIN_FILE_BYTES", 1)
    monkeypatch.setattr(blocks, "MAX_MEMORY_SHARE", 0.0)
    in_file = replace(rows, x=blocks.store_columns(rows.x))
    assert is_in_file(in_file.x)
    assert torch.equal(fit_mlp(in_file)(rows.x), expected)
