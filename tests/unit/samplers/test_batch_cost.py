"""A batch costs what its own nodes and entries cost, whatever the size of the graph."""

import tracemalloc

import pytest
import torch

from unalike import Adjacency, Graph
from unalike.nn.optim import SPARSE_OPTIMIZERS, AdamWStep
from unalike.samplers.graphsaint import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
)
from unalike.samplers.neighbours import NeighbourSampler

SMALL, LARGE, DEGREE, BATCH = 20_000, 1_000_000, 4, 200


def graph_of(nodes):
    """Every node is joined to the next ones; the batch is the same in every graph."""
    indptr = torch.arange(nodes + 1) * DEGREE
    ends = torch.arange(nodes)[:, None] + torch.arange(1, DEGREE + 1)
    columns = (ends % nodes).sort(1)[0].flatten().int()
    return Graph.build(Adjacency(indptr, columns, nodes), directed=True)


def lazy_step(name, graph):
    weights = SPARSE_OPTIMIZERS[name].create(
        torch.zeros(graph.num_nodes, 1, 1), bf16=False
    )
    step = AdamWStep(
        step=torch.ones(1, dtype=torch.int64),
        lr=torch.full((1,), 0.01),
        weight_decay=torch.zeros(1),
        improved=torch.zeros(1, dtype=torch.bool),
    )

    def take():
        rows = graph.select_rows(torch.arange(BATCH)).adjacency
        weights.step(rows, torch.ones(BATCH, 1, 1), step)

    return take


def subgraph(graph):
    return lambda: graph.subgraph(torch.arange(BATCH))


def neighbours(graph):
    sampler = NeighbourSampler(size=BATCH, fan_out=(2, 2))
    adjacency_t = graph.adjacency.T

    def sample():
        generator = torch.Generator().manual_seed(0)
        return sampler._sample_layers(adjacency_t, torch.arange(BATCH), generator)

    return sample


def sampled(sampler):
    """The nodes of a subgraph, and the subgraph."""

    def work(graph):
        generator = torch.Generator()
        return lambda: graph.subgraph(
            sampler.sample_nodes(graph, generator.manual_seed(0)).unique()
        )

    return work


WORKS = {
    "lazy": lambda graph: lazy_step("lazy", graph),
    "adagrad": lambda graph: lazy_step("adagrad", graph),
    "subgraph": subgraph,
    "neighbours": neighbours,
    "saint-nodes": sampled(GraphSAINTNodeSampler(budget=BATCH)),
    "saint-edges": sampled(GraphSAINTEdgeSampler(budget=BATCH)),
    "saint-walks": sampled(GraphSAINTRandomWalkSampler(roots=BATCH)),
}


def allocated_bytes(work):
    """Bytes that torch and NumPy allocate, once what is cached is there."""
    for _ in range(2):
        work()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        work()
    by_torch = sum(max(0, event.self_cpu_memory_usage) for event in profile.events())
    tracemalloc.start()
    work()
    by_numpy = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return by_torch + by_numpy


@pytest.fixture(scope="module")
def graphs():
    return graph_of(SMALL), graph_of(LARGE)


@pytest.mark.parametrize("name", WORKS)
def test_a_batch_allocates_as_much_on_a_graph_of_fifty_times_the_nodes(name, graphs):
    """Not even a byte for each node, as a mask has."""
    small, large = (allocated_bytes(WORKS[name](graph)) for graph in graphs)
    assert large < 2 * small < LARGE
