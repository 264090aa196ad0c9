"""The cache of batches that repeat in every epoch changes no result."""

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import GCN, H2GCN, Graph, Training
from unalike.samplers.clusters import ClusterSampler
from unalike.training import minibatch

EPOCHS, PARTS = 4, 6


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Partitions are kept away from real data."""
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))


@pytest.fixture
def cuts(monkeypatch):
    """The nodes of each subgraph that is built."""
    made = []
    induced = Graph.subgraph

    def noted(graph, ids, part=None):
        made.append(ids)
        return induced(graph, ids, part)

    monkeypatch.setattr(Graph, "subgraph", noted)
    return made


def solved(kind, at_once=1):
    batching = ClusterSampler(parts=PARTS, at_once=at_once)
    method = kind(hidden=8, batching=batching, training=Training(epochs=EPOCHS))
    (task,) = tasks_of(suiting(), 1)
    return method.solve(task)


@pytest.mark.parametrize("kind", [GCN, H2GCN])
@pytest.mark.parametrize(
    ("share", "number"), [("MAX_GRAPH_SHARE", 0.0), ("MIN_FREE_SHARE", 9.0)]
)
@pytest.mark.long
def test_without_memory_for_the_cache_batches_are_built_in_every_epoch(
    kind, share, number, cuts, monkeypatch
):
    found = solved(kind)
    assert len(cuts) == PARTS
    monkeypatch.setattr(minibatch, share, number)
    wanted = solved(kind)
    assert len(cuts) == PARTS + PARTS * EPOCHS
    assert found.curve.losses == wanted.curve.losses
    assert torch.equal(found.scores, wanted.scores)


def test_groups_of_clusters_are_built_in_every_epoch(cuts):
    solved(GCN, at_once=2)
    assert len(cuts) == EPOCHS * PARTS / 2
    assert len({tuple(ids.tolist()) for ids in cuts}) > PARTS / 2


def test_every_epoch_has_its_own_order(cuts, monkeypatch):
    monkeypatch.setattr(minibatch, "MAX_GRAPH_SHARE", 0.0)
    solved(GCN)
    orders = {
        tuple(int(ids[0]) for ids in cuts[begin : begin + PARTS])
        for begin in range(0, len(cuts), PARTS)
    }
    assert len(orders) > 1
    assert len({frozenset(order) for order in orders}) == 1
