"""GraphSAINT: how often nodes are drawn, against what theory says."""

import numpy as np
import pytest
import torch
from graphs import drawn, suiting
from scipy import stats

from unalike import Adjacency, Graph
from unalike.samplers import graphsaint
from unalike.samplers.graphsaint import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
)

ROUNDS = 1200
DIRECTED = [(0, 1), (0, 2), (0, 3), (1, 2), (2, 0), (3, 0), (3, 3), (5, 1)]
GRAPHS = {
    "undirected": drawn([(0, 1), (0, 2), (0, 3), (1, 2), (4, 5)], 7),
    "directed": drawn(DIRECTED, 7, directed=True),
}


def sampled(batching, graph, seed=0):
    """The subgraphs of one long epoch, all nodes to learn from."""
    generator = torch.Generator().manual_seed(seed)
    return batching.epoch(graph, torch.arange(graph.num_nodes), generator)


def assert_frequencies(batching, graph, wanted):
    """Each node is in as many subgraphs as theory says, at a level of 0.001."""
    seen = torch.zeros(graph.num_nodes)
    for batch in sampled(batching, graph):
        seen[batch.graph.ids] += 1
    sure = (wanted < 1e-9) | (wanted > 1 - 1e-9)
    assert torch.equal(seen[sure], ROUNDS * wanted[sure].round().float())
    seen, wanted = seen[~sure].double().numpy(), wanted[~sure].numpy()
    for count, generator in zip(seen, wanted, strict=True):
        pair = ROUNDS * np.array([generator, 1 - generator])
        found = stats.chisquare([count, ROUNDS - count], pair)
        assert found.pvalue > 0.001 / len(seen)


def walks_from(step, root, length):
    """Every walk from a root, with its generator."""
    if not length:
        yield (root,), 1.0
        return
    for after in step[root].nonzero()[:, 0].tolist():
        for walk, generator in walks_from(step, after, length - 1):
            yield (root, *walk), float(step[root, after]) * generator


@pytest.mark.parametrize("budget", [1, 4, 50])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.long
def test_nodes_are_drawn_by_degree(kind, budget):
    graph = GRAPHS[kind]
    degrees = graph.adjacency.degrees.double()
    wanted = 1 - (1 - degrees / degrees.sum()) ** budget
    batching = GraphSAINTNodeSampler(budget=budget, steps=ROUNDS)
    assert_frequencies(batching, graph, wanted)


@pytest.mark.parametrize("budget", [1, 3])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.long
def test_edges_are_drawn_by_inverse_degrees(kind, budget):
    graph = GRAPHS[kind]
    dense = graph.adjacency.to_dense().double()
    leave, enter = dense.sum(1), dense.sum(0)
    generator = torch.zeros(7, 7, dtype=torch.float64)
    for u, v in dense.nonzero().tolist():
        generator[u, v] = 1 / leave[u] + 1 / enter[v]
    generator /= generator.sum()
    held = generator.sum(0) + generator.sum(1) - generator.diagonal()
    batching = GraphSAINTEdgeSampler(budget=budget, steps=ROUNDS)
    assert_frequencies(batching, graph, 1 - (1 - held) ** budget)


def test_an_edge_brings_both_its_ends():
    graph = GRAPHS["directed"]
    for batch in sampled(GraphSAINTEdgeSampler(budget=1, steps=50), graph):
        assert batch.graph.num_nodes in (1, 2)
        assert batch.graph.adjacency.nnz


@pytest.mark.parametrize(("roots", "length"), [(1, 1), (1, 3), (3, 2)])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.long
def test_walks_follow_edges_and_stay_where_none_leaves(kind, roots, length):
    graph = GRAPHS[kind]
    dense = graph.adjacency.to_dense().double()
    alone = dense.sum(1) == 0
    step = (dense + torch.diag(alone.double())) / dense.sum(1, True).clamp(min=1)
    visits = torch.zeros(7, dtype=torch.float64)
    for root in range(7):
        for walk, generator in walks_from(step, root, length):
            visits[sorted(set(walk))] += generator / 7
    batching = GraphSAINTRandomWalkSampler(roots=roots, length=length, steps=ROUNDS)
    assert_frequencies(batching, graph, 1 - (1 - visits) ** roots)


@pytest.mark.parametrize(
    "batching",
    [GraphSAINTNodeSampler(), GraphSAINTEdgeSampler(), GraphSAINTRandomWalkSampler()],
    ids=lambda one: str(one),
)
def test_a_budget_may_exceed_the_graph(batching):
    graph = suiting(nodes=50)
    reachable = graph.adjacency.degrees > 0
    reachable |= torch.tensor(isinstance(batching, GraphSAINTRandomWalkSampler))
    batches = list(sampled(batching, graph))
    assert len(batches) == 5
    for batch in batches:
        assert batch.graph.ids.tolist() == reachable.nonzero()[:, 0].tolist()


NORMALISED = [
    GraphSAINTNodeSampler(budget=4, steps=ROUNDS, normalised=True),
    GraphSAINTEdgeSampler(budget=2, steps=ROUNDS, normalised=True),
    GraphSAINTRandomWalkSampler(roots=2, steps=ROUNDS, normalised=True),
]


def weighted():
    """A graph whose edges have weights, and no lonely node."""
    draw = torch.Generator().manual_seed(3)
    dense = torch.rand(8, 8, generator=draw) * (torch.rand(8, 8, generator=draw) < 0.5)
    dense += torch.roll(torch.eye(8), 1, 1)
    source, target = dense.nonzero().T
    rows = Adjacency.from_edges(
        source, target, shape=(8, 8), values=dense[source, target]
    )
    return Graph.build(rows, directed=True)


@pytest.mark.parametrize("batching", NORMALISED, ids=lambda one: type(one).__name__)
@pytest.mark.long
def test_weights_make_the_average_that_of_the_graph(batching, monkeypatch):
    monkeypatch.setattr(graphsaint, "MIN_DRAWS_PER_NODE", 600)
    graph = weighted()
    dense = graph.adjacency.to_dense()
    loss, gathered, seen = torch.zeros(8), torch.zeros(8, 8), torch.zeros(8)
    for batch in sampled(batching, graph):
        ids = batch.graph.ids
        loss[ids] += batch.loss_weight / ROUNDS
        gathered[ids[:, None], ids] += batch.graph.adjacency.to_dense()
        seen[ids] += 1
    torch.testing.assert_close(loss, torch.ones(8), rtol=0, atol=0.15)
    torch.testing.assert_close(gathered / seen, dense, rtol=0.3, atol=0.05)


def test_frequencies_do_not_depend_on_the_seed_or_the_order():
    graph, batching = (
        suiting(nodes=50),
        GraphSAINTNodeSampler(budget=9, normalised=True),
    )
    once = [batch.loss_weight.tolist() for batch in sampled(batching, graph, 1)]
    list(sampled(batching, graph, 2))
    again = [
        batch.loss_weight.tolist() for batch in sampled(batching, suiting(nodes=50), 1)
    ]
    assert once == again


def test_without_normalisation_nothing_is_weighted():
    for batch in sampled(GraphSAINTNodeSampler(budget=9), suiting(nodes=50)):
        assert batch.graph.adjacency.values is None
        assert (batch.loss_weight == 1).all()
