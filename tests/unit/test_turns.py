"""Processes that learn from a batch each: their steps are those of one process."""

from dataclasses import replace
from statistics import mean

import pytest
import torch
from graphs import suiting, tasks_of
from worlds import together

from unalike import Graph, Split, Task
from unalike.batchings import BATCHINGS
from unalike.batchings.clusters import Clusters
from unalike.batchings.full import Full
from unalike.batchings.neighbours import Neighbours
from unalike.batchings.random_parts import RandomParts
from unalike.batchings.saint_nodes import SaintNodes
from unalike.batchings.saint_walks import SaintWalks
from unalike.datasets import find
from unalike.experiments.run import run
from unalike.methods.gcn import GCN
from unalike.methods.gcn_jk import GCNJK
from unalike.metrics import ACCURACY
from unalike.training.settings import Training
from unalike.training.turns import own_batches
from unalike.training.world import World

SHORT = Training(epochs=4)
SUBGRAPHS = [
    Clusters(parts=5, at_once=1),
    RandomParts(parts=5),
    SaintNodes(budget=60, steps=5),
    SaintWalks(roots=40, steps=5),
    Neighbours(size=30, fan_out=(3, 3)),
]


@pytest.fixture(autouse=True)
def elsewhere(request, tmp_path, monkeypatch):
    """Partitions of small graphs are kept away from real data."""
    if "data" not in request.fixturenames:
        monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))


def islands(features):
    """Two graphs side by side, of which the second has few train nodes."""
    graph = suiting(nodes=200, features=features)
    ends = graph.adjacency.row_of_entry, graph.adjacency.columns.long()
    inside = (ends[0] < 100) == (ends[1] < 100)
    apart = Graph.from_edges(
        ends[0][inside],
        ends[1][inside],
        num_nodes=200,
        features=graph.features,
        labels=graph.labels,
    )
    known = (graph.labels >= 0).nonzero()[:, 0]
    train = torch.cat([known[known < 70], known[known >= 185]])
    others = known[~torch.isin(known, train)]
    return Task.hide(apart, Split(train, others[::2], others[1::2]), ACCURACY, 3)


def step_curves(batching):
    """Losses and grades of nets without chance, of dense and of sparse features."""
    torch.set_num_threads(1)
    settings = {"training": SHORT, "batching": batching, "hidden": 8, "dropout": 0.0}
    curves = [
        kind(batch_norm=False, **settings).solve(islands(features)).curve
        for kind in (GCN, GCNJK)
        for features in ("dense", "sparse")
    ]
    return [curve.losses + curve.grades for curve in curves]


@pytest.mark.parametrize("size", [2, 3])
def test_a_step_on_two_batches_is_a_step_on_both_at_once(size):
    whole = step_curves(Full())
    found = together(size, step_curves, Clusters(parts=2))
    for curves in found:
        assert curves == found[0]
        for curve, at_once in zip(curves, whole, strict=True):
            assert curve == pytest.approx(at_once, rel=1e-5)
    for curve, at_once in zip(step_curves(Clusters(parts=2)), whole, strict=True):
        assert curve != pytest.approx(at_once, rel=1e-3)


def seen(batch):
    """What tells a batch from others."""
    rows = batch.graph.adjacency
    return batch.graph.ids.tolist(), batch.weight.tolist(), rows.columns.tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("batching", SUBGRAPHS, ids=lambda one: type(one).__name__)
def test_processes_share_out_the_batches_of_one(batching, size):
    (task,) = tasks_of(suiting())

    def taken(rank):
        chance = torch.Generator().manual_seed(5)
        drawn = batching.drawn(task.graph, task.train, chance)
        return list(own_batches(drawn, World(rank, size)))

    chance = torch.Generator().manual_seed(5)
    alone = [seen(one) for one in batching.epoch(task.graph, task.train, chance)]
    shares = [taken(rank) for rank in range(size)]
    assert {len(share) for share in shares} == {-(-len(alone) // size)}
    dealt = [one for step in zip(*shares, strict=True) for one in step if one.counts]
    assert [seen(one) for one in dealt] == alone
    assert len({str(one) for one in alone}) == len(alone) > 3


def answers():
    """What nets with batch norm and dropout answer, and their weights."""
    torch.set_num_threads(1)
    found = [
        GCN(hidden=8, training=SHORT, batching=batching).solve(replace(task, keep=True))
        for features in ("dense", "sparse")
        for task in tasks_of(suiting(features=features))
        for batching in SUBGRAPHS
    ]
    return [
        (
            one.scores.tolist(),
            one.curve.losses,
            one.curve.grades,
            {name: weight.tolist() for name, weight in one.weights.items()},
        )
        for one in found
    ]


def test_all_processes_end_with_the_same_weights():
    first, second = together(2, answers)
    assert len(first) == 2 * len(SUBGRAPHS)
    assert first == second


@pytest.mark.parametrize("name", sorted(BATCHINGS))
def test_only_parts_of_a_graph_can_be_shared_out(name):
    if name != "rows":
        assert GCN(batching=BATCHINGS[name]()).takes_turns == (name != "full")


REAL = [
    Clusters(parts=20),
    SaintNodes(budget=4000, steps=10),
    Neighbours(size=1000, fan_out=(10, 5)),
]


def real_grades(data, batching):
    """Test accuracy of some splits of a real graph, in per cent."""
    torch.set_num_threads(1)
    method = GCNJK(training=Training(epochs=15), batching=batching)
    found = run(find("cornell5", data), method, splits=[0, 1])
    return [one.test for one in found]


@pytest.mark.slow
@pytest.mark.parametrize("batching", REAL, ids=lambda one: type(one).__name__)
def test_a_real_graph_is_learned_as_well_by_two_processes(data, batching):
    alone = real_grades(data, batching)
    first, second = together(2, real_grades, data, batching)
    assert first == second
    assert mean(first) == pytest.approx(mean(alone), abs=1.5)
