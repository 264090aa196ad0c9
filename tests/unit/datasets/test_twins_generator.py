"""Parts of twins: rounding, degrees, alias tables, class counts, edges, features."""

from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import unalike
from unalike.data.csr import row_blocks
from unalike.data.numba_utils import build_alias_table
from unalike.data.store import atomic_graph_writer, open_graph
from unalike.datasets.twins import generator
from unalike.datasets.twins.features import Gaussian, OneHot
from unalike.datasets.twins.generator import (
    DegreeDistribution,
    NodeParameters,
    apportion,
    sample_edges,
    sample_nodes,
    sample_target_classes,
)
from unalike.errors import UserError
from unalike.progress import NO_PROGRESS

WEIGHTS = st.lists(st.floats(0, 100), min_size=1, max_size=30).filter(
    lambda weights: sum(weights) > 1e-6
)


@given(WEIGHTS, st.integers(0, 10_000))
def test_apportioned_numbers_add_up_and_are_rounded(weights, total):
    amounts = np.array(weights)
    numbers = apportion(amounts, total)
    assert numbers.sum() == total
    assert (np.abs(numbers - amounts / amounts.sum() * total) < 1 + 1e-6).all()


@given(WEIGHTS)
def test_an_alias_table_has_the_given_probabilities(weights):
    weights = np.array(weights)
    ids = np.arange(len(weights))[::-1].copy()
    keep, other = np.empty(len(ids)), np.empty(len(ids), np.int64)
    build_alias_table(weights, ids, keep, other)
    probabilities = np.zeros(len(ids))
    np.add.at(probabilities, ids, keep / len(ids))
    np.add.at(probabilities, other, (1 - keep) / len(ids))
    np.testing.assert_allclose(probabilities[ids], weights / weights.sum(), atol=1e-9)


@given(st.floats(1.5, 6), st.floats(0, 2), st.integers(0, 5))
def test_sampled_degrees_have_the_given_sum_and_limit(exponent, spread, seed):
    rng = np.random.default_rng(seed)
    degrees = DegreeDistribution(exponent, spread).sample(rng, 500, 4_000, limit=30)
    assert degrees.sum() == pytest.approx(4_000)
    assert degrees.min() >= 0
    assert degrees.max() <= 30 + 1e-9


def test_too_many_edges_are_an_error():
    with pytest.raises(UserError, match="900 edges are too many for 10 nodes"):
        DegreeDistribution(2.5).sample(np.random.default_rng(0), 10, 900, limit=100)


def random_nodes(seed: int = 0, edges=((900, 2_100), (1_500, 2_500))) -> NodeParameters:
    return sample_nodes(
        np.array([300, 500]),
        np.array(edges),
        out_degrees=DegreeDistribution(2.5),
        in_degrees=DegreeDistribution(2.5),
        monophily=0.3,
        rng=np.random.default_rng(seed),
    )


@given(st.integers(0, 20), st.lists(st.integers(0, 3_000), min_size=4, max_size=4))
def test_class_counts_have_exact_sums(seed, numbers):
    edges = np.reshape(numbers, (2, 2))
    nodes = random_nodes(seed, edges)
    counts = sample_target_classes(nodes, edges, seed)
    np.testing.assert_array_equal(counts.sum(1), nodes.degrees)
    totals = [counts[nodes.members(label)].sum(0) for label in range(2)]
    np.testing.assert_array_equal(totals, edges)


def sampled_csr(
    nodes: NodeParameters, edges, *, undirected: bool
) -> tuple[np.ndarray, np.ndarray]:
    counts = sample_target_classes(nodes, np.array(edges), 0)
    indices = np.zeros(np.sum(edges), np.int32)
    indptr = sample_edges(
        nodes, counts, indices, undirected=undirected, seed=1, progress=NO_PROGRESS
    )
    return indptr, indices


def test_edges_do_not_depend_on_threads_and_blocks(monkeypatch):
    edges = ((900, 2_100), (1_500, 2_500))
    _, once = sampled_csr(random_nodes(), edges, undirected=False)
    monkeypatch.setattr(generator, "BLOCK_EDGES", 100)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    _, again = sampled_csr(random_nodes(), edges, undirected=False)
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("undirected", [False, True])
def test_a_dense_graph_has_distinct_edges(undirected):
    edges = ((5_000, 8_000), (8_000, 15_000))
    indptr, indices = sampled_csr(random_nodes(0, edges), edges, undirected=undirected)
    rows = np.repeat(np.arange(800), np.diff(indptr))
    pairs = [rows, indices]
    if undirected:
        pairs = [np.minimum(rows, indices), np.maximum(rows, indices)]
    assert len(np.unique(pairs, axis=1).T) == 36_000
    assert (rows != indices).all()
    assert (np.diff(indices)[np.diff(rows) == 0] > 0).all()


@given(st.lists(st.integers(0, 5_000_000), min_size=1, max_size=40))
def test_blocks_of_rows_cover_every_row_once_and_are_bounded(degrees):
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    blocks = list(row_blocks(indptr, 2_000_000))
    covered = [row for first, last in blocks for row in range(first, last)]
    assert covered == list(range(len(degrees)))
    for first, last in blocks:
        assert last == first + 1 or indptr[last] - indptr[first] <= 2_000_000


@pytest.mark.parametrize("informativeness", [0.0, 0.3, 0.8])
def test_gaussian_features_have_the_given_informativeness(tmp_path, informativeness):
    classes = np.arange(40_000) % 3
    gaussian = Gaussian(8, informativeness)
    features = written(tmp_path, gaussian, classes)
    means = gaussian.means(3, seed=0)
    features = features[classes < 2]
    predictions = (features @ (means[1] - means[0]) > 0).astype(int)
    accuracy = (predictions == classes[classes < 2]).mean()
    assert accuracy == pytest.approx((1 + informativeness) / 2, abs=0.01)


@pytest.mark.parametrize("informativeness", [0.0, 0.5, 1.0])
def test_one_hot_features_have_the_given_informativeness(tmp_path, informativeness):
    classes = np.arange(60_000) % 2
    one_hot = OneHot((4, 9), informativeness, telling=1)
    features = written(tmp_path, one_hot, classes)
    assert (features[:, :4].sum(1) == 1).all()
    assert (features[:, 4:].sum(1) == 1).all()
    means = [features[classes == label].mean(0) for label in (0, 1)]
    distance = np.abs(means[0] - means[1]) / 2
    assert distance[:4].sum() == pytest.approx(0, abs=0.02)
    assert distance[4:].sum() == pytest.approx(informativeness, abs=0.02)


def test_a_field_with_fewer_values_than_classes_cannot_depend_on_them(tmp_path):
    classes = np.arange(300) % 5
    with pytest.raises(UserError, match="3 values cannot depend on 5 classes"):
        written(tmp_path, OneHot((9, 3), 0.5, telling=1), classes)
    features = written(tmp_path, OneHot((9, 3), 0.5, telling=0), classes)
    assert (features.sum(1) == 2).all()


def written(folder, config, classes) -> np.ndarray:
    counts = {"num_nodes": len(classes), "num_edges": 0, "num_features": config.width}
    with atomic_graph_writer(folder / "graph") as writer:
        config.write(writer, classes, 0, NO_PROGRESS)
        writer.add("starts", np.zeros(len(classes) + 1, np.int64))
        writer.add("columns", np.zeros(0, np.int32))
        writer.add("labels", classes)
        about = {"num_classes": int(classes.max()) + 1, "metric": "accuracy"}
        writer.commit({**counts, **about, "directed": True})
    return open_graph(folder / "graph").graph.features.to_dense().numpy()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"monophily": 1.0}, "its monophily 1.0 is not from 0 up to 1"),
        ({"seed": -1}, "its seed -1 is negative"),
        ({"informativeness": 2.0}, "2.0 is not in 0 to 1"),
    ],
)
def test_an_invalid_twin_is_an_error(changes, message):
    with pytest.raises(UserError, match=message):
        unalike.twin("pokec", **changes)


def test_a_twin_with_too_many_edges_is_an_error(tmp_path):
    with pytest.raises(UserError, match="edges are too many"):
        unalike.twin("wiki", num_nodes=500).with_root(tmp_path).load()
    assert not list(tmp_path.rglob("graph.json"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["cora", "pokec", "chameleon"])
def test_a_twin_of_few_nodes_is_a_graph_or_an_error(tmp_path, name):
    sizes = (-1, 0, 1, 2, 5, 10, 20, 80, 1000)
    nodes = {}
    for size in sizes:
        with suppress(UserError):
            twin = unalike.twin(name, num_nodes=size)
            nodes[size] = twin.save(tmp_path / str(size)).graph.num_nodes
    assert 1000 in nodes
    assert nodes == {size: size for size in nodes}
    with pytest.raises(UserError, match="0 nodes are too few for a node of each class"):
        unalike.twin(name, num_nodes=0)


def test_an_unknown_twin_gets_a_suggestion():
    with pytest.raises(UserError, match="Did you mean 'pokec-twin'"):
        unalike.twin("poke")
