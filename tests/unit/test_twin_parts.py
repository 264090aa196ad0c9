"""The parts a twin is made of: rounding, tails, tables, decks, rows and features."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import unalike
from unalike.data.csr import blocks_of_nnz
from unalike.data.numba_utils import build_alias_table
from unalike.data.store import atomic_graph_writer, open_graph
from unalike.datasets.twins import generator as twin_edges
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
def test_an_alias_table_draws_in_proportion(weights):
    weights = np.array(weights)
    ids = np.arange(len(weights))[::-1].copy()
    keep, other = np.empty(len(ids)), np.empty(len(ids), np.int64)
    build_alias_table(weights, ids, keep, other)
    drawn = np.zeros(len(ids))
    np.add.at(drawn, ids, keep / len(ids))
    np.add.at(drawn, other, (1 - keep) / len(ids))
    np.testing.assert_allclose(drawn[ids], weights / weights.sum(), atol=1e-9)


@given(st.floats(1.5, 6), st.floats(0, 2), st.integers(0, 5))
def test_a_tail_adds_up_within_its_limit(exponent, spread, seed):
    random = np.random.default_rng(seed)
    amounts = DegreeDistribution(exponent, spread).draw(random, 500, 4_000, limit=30)
    assert amounts.sum() == pytest.approx(4_000)
    assert amounts.min() >= 0
    assert amounts.max() <= 30 + 1e-9


def test_too_many_edges_are_refused():
    with pytest.raises(UserError, match="900 edges are too many for 10 nodes"):
        DegreeDistribution(2.5).draw(np.random.default_rng(0), 10, 900, limit=100)


def society(seed: int = 0, edges=((900, 2_100), (1_500, 2_500))) -> NodeParameters:
    return sample_nodes(
        np.array([300, 500]),
        np.array(edges),
        leaving=DegreeDistribution(2.5),
        arriving=DegreeDistribution(2.5),
        monophily=0.3,
        random=np.random.default_rng(seed),
    )


@given(st.integers(0, 20), st.lists(st.integers(0, 3_000), min_size=4, max_size=4))
def test_a_deck_comes_out_even(seed, numbers):
    edges = np.reshape(numbers, (2, 2))
    nodes = society(seed, edges)
    counts = sample_target_classes(nodes, edges, seed)
    np.testing.assert_array_equal(counts.sum(1), nodes.degrees)
    dealt = [counts[nodes.members(group)].sum(0) for group in range(2)]
    np.testing.assert_array_equal(dealt, edges)


def drawn(nodes: NodeParameters, edges, **options) -> tuple[np.ndarray, np.ndarray]:
    counts = sample_target_classes(nodes, np.array(edges), 0)
    columns = np.zeros(np.sum(edges), np.int32)
    starts = sample_edges(
        nodes, counts, columns, seed=1, progress=NO_PROGRESS, **options
    )
    return starts, columns


def test_rows_do_not_depend_on_threads_and_ranges(monkeypatch):
    edges = ((900, 2_100), (1_500, 2_500))
    _, once = drawn(society(), edges, pairs=False)
    monkeypatch.setattr(twin_edges, "_EDGES_AT_ONCE", 100)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    _, again = drawn(society(), edges, pairs=False)
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("pairs", [False, True])
def test_a_crowded_graph_still_has_distinct_targets(pairs):
    edges = ((5_000, 8_000), (8_000, 15_000))
    starts, columns = drawn(society(0, edges), edges, pairs=pairs)
    rows = np.repeat(np.arange(800), np.diff(starts))
    ends = [rows, columns]
    if pairs:
        ends = [np.minimum(rows, columns), np.maximum(rows, columns)]
    assert len(np.unique(ends, axis=1).T) == 36_000
    assert (rows != columns).all()
    assert (np.diff(columns)[np.diff(rows) == 0] > 0).all()


@given(st.lists(st.integers(0, 5_000_000), min_size=1, max_size=40))
def test_ranges_cover_every_row_with_edges_once(degrees):
    starts = np.concatenate([[0], np.cumsum(degrees)])
    ranges = blocks_of_nnz(starts, 2_000_000)
    covered = [row for first, last in ranges for row in range(first, last)]
    assert covered == sorted(set(covered))
    assert set(np.flatnonzero(degrees)) <= set(covered)


@pytest.mark.parametrize("informativeness", [0.0, 0.3, 0.8])
def test_gaussian_features_tell_two_classes_apart_as_often_as_said(
    tmp_path, informativeness
):
    classes = np.arange(40_000) % 3
    given = Gaussian(8, informativeness)
    features = written(tmp_path, given, classes)
    means = given.means(3, seed=0)
    ours = features[classes < 2]
    nearer = (ours @ (means[1] - means[0]) > 0).astype(int)
    right = (nearer == classes[classes < 2]).mean()
    assert right == pytest.approx((1 + informativeness) / 2, abs=0.01)


@pytest.mark.parametrize("informativeness", [0.0, 0.5, 1.0])
def test_attributes_differ_between_classes_as_much_as_said(tmp_path, informativeness):
    classes = np.arange(60_000) % 2
    given = OneHot((4, 9), informativeness, telling=1)
    features = written(tmp_path, given, classes)
    assert (features[:, :4].sum(1) == 1).all()
    assert (features[:, 4:].sum(1) == 1).all()
    shares = [features[classes == kind].mean(0) for kind in (0, 1)]
    apart = np.abs(shares[0] - shares[1]) / 2
    assert apart[:4].sum() == pytest.approx(0, abs=0.02)
    assert apart[4:].sum() == pytest.approx(informativeness, abs=0.02)


def written(folder, given, classes) -> np.ndarray:
    nodes = {"num_nodes": len(classes), "num_features": given.width}
    with atomic_graph_writer(folder / "drawn") as draft:
        given.write(draft, classes, 0, NO_PROGRESS)
        draft.add("starts", np.zeros(len(classes) + 1, np.int64))
        draft.add("columns", np.zeros(0, np.int32))
        draft.add("labels", classes)
        draft.commit({**nodes, "num_classes": 3, "directed": True})
    return open_graph(folder / "drawn").graph.features.to_dense().numpy()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"monophily": 1.0}, "its monophily 1.0 is not from 0 up to 1"),
        ({"seed": -1}, "its seed -1 is negative"),
        ({"informativeness": 2.0}, "2.0 is not in 0 to 1"),
    ],
)
def test_an_impossible_twin_is_refused(changes, told):
    with pytest.raises(UserError, match=told):
        unalike.twin("pokec", **changes)


def test_a_twin_too_small_for_its_edges_is_refused(tmp_path):
    with pytest.raises(UserError, match="edges are too many"):
        unalike.twin("wiki", num_nodes=500).at(tmp_path).load()
    assert not list(tmp_path.rglob("graph.json"))


def test_an_unknown_twin_gets_a_suggestion():
    with pytest.raises(UserError, match="Did you mean 'pokec-twin'"):
        unalike.twin("poke")
