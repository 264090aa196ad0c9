"""Neighbours: no more than asked for, no repeats, all alike."""

from collections import Counter
from itertools import chain
from math import comb

import pytest
import torch
from graphs import drawn, suiting
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unalike import Adjacency, Graph
from unalike.samplers.neighbours import NeighbourSampler


def sampled(batching, graph, train=None, seed=0):
    train = torch.arange(graph.num_nodes) if train is None else torch.tensor(train)
    return list(batching.epoch(graph, train, torch.Generator().manual_seed(seed)))


def layers(batch):
    """How many steps before the train nodes each node is found, against the edges."""
    dense = batch.graph.adjacency.to_dense() > 0
    depth = torch.where(batch.loss_weight > 0, 0, -1)
    for layer in range(len(depth)):
        sources = dense[:, depth == layer].any(1)
        depth[sources & (depth < 0)] = layer + 1
    return depth


@given(
    st.booleans(),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.integers(1, 30),
    st.integers(0, 2**20),
)
@pytest.mark.long
def test_fan_out_is_kept_at_every_layer(directed, fan_out, size, seed):
    graph = suiting(nodes=30, directed=directed)
    dense = graph.adjacency.to_dense()
    batching = NeighbourSampler(size=size, fan_out=tuple(fan_out))
    # A remainder of one node is merged with the batch before it.
    largest = size + 1 if size > 1 and 30 % size == 1 else size
    for batch in sampled(batching, graph, seed=seed):
        ids, depth = batch.graph.ids, layers(batch)
        found, whole = batch.graph.adjacency.to_dense(), dense[:, ids].sum(0)
        assert int(batch.loss_weight.sum()) <= largest
        assert (found <= dense[ids][:, ids]).all()
        assert int(depth.min()) >= 0
        assert int(depth.max()) <= len(fan_out)
        for layer, count in enumerate([*fan_out, 0]):
            nodes = depth == layer
            wanted = whole[nodes].clamp(max=count)
            assert torch.equal(found[:, nodes].sum(0), wanted)


def test_edges_are_followed_against_their_direction():
    graph = drawn([(0, 1), (1, 2), (3, 2), (2, 4)], 5, directed=True)
    [batch] = sampled(NeighbourSampler(fan_out=(9, 9)), graph, [2])
    assert sorted(batch.graph.ids.tolist()) == [0, 1, 2, 3]
    [batch] = sampled(NeighbourSampler(fan_out=(9,)), graph, [2])
    assert sorted(batch.graph.ids.tolist()) == [1, 2, 3]
    assert batch.graph.ids[batch.loss_weight > 0].tolist() == [2]


def test_all_neighbours_are_kept_where_they_are_few():
    graph = suiting(nodes=40)
    [batch] = sampled(NeighbourSampler(fan_out=(40,)), graph)
    ids = batch.graph.ids
    dense = graph.adjacency.to_dense()
    assert torch.equal(batch.graph.adjacency.to_dense(), dense[ids][:, ids])


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_every_set_of_neighbours_is_as_likely(count):
    stars = 5000
    hubs = 8 * torch.arange(stars)
    leaves = hubs[:, None] + torch.arange(1, 8)
    graph = Graph.from_edges(
        leaves.flatten(), hubs.repeat_interleave(7), num_nodes=8 * stars, directed=True
    )
    [batch] = sampled(
        NeighbourSampler(size=stars, fan_out=(count,)), graph, hubs.tolist()
    )
    ids = batch.graph.ids
    reached = ids[batch.loss_weight == 0].sort().values.view(stars, count)
    seen = Counter(tuple(some) for some in (reached % 8).tolist())
    assert len(seen) == comb(7, count)
    assert stats.chisquare(list(seen.values())).pvalue > 0.001


def test_lonely_nodes_are_learned_from_alone():
    [batch] = sampled(NeighbourSampler(), drawn([(0, 1)], 4), [2, 3])
    assert sorted(batch.graph.ids.tolist()) == [2, 3]
    assert batch.graph.adjacency.nnz == 0


def test_edges_keep_their_weights():
    values = torch.tensor([2.0, 3.0, 5.0])
    rows = Adjacency.from_edges(
        torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0]), shape=(3, 3), values=values
    )
    graph = Graph.build(rows, directed=True)
    [batch] = sampled(NeighbourSampler(), graph)
    ids = batch.graph.ids
    found = batch.graph.adjacency.to_dense()
    assert torch.equal(found, rows.to_dense()[ids][:, ids])


def test_seeds_fill_batches_in_a_new_order():
    graph = suiting(nodes=50)
    train = list(range(10, 45))
    batches = sampled(NeighbourSampler(size=8), graph, train)
    seeds = [batch.graph.ids[batch.loss_weight > 0].tolist() for batch in batches]
    assert [len(some) for some in seeds] == [8, 8, 8, 8, 3]
    assert list(chain(*seeds)) != train
    assert sorted(chain(*seeds)) == train
