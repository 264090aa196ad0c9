"""What the same batch costs on graphs of 100,000 to 10 million nodes.

python benchmarks/batch_cost.py                   batches of 1,000 nodes
python benchmarks/batch_cost.py --spread          neighbours in the whole graph
python benchmarks/batch_cost.py --nodes 100000 1000000
python benchmarks/batch_cost.py --json            one JSON document

The batch has the same nodes and entries in every graph, so that its cost should be the
same. With --spread its entries are as many, but in random columns of the whole graph:
then larger graphs also cost misses of the processor's caches.
"""

import argparse
import json
import time
from collections.abc import Callable
from statistics import median

import torch

from unalike import Adjacency, Graph
from unalike.nn.optim import SPARSE_OPTIMIZERS, AdamWStep, SparseOptimizer
from unalike.samplers.neighbours import NeighbourSampler

DEGREE, COMMON, WIDTH, REPEATS = 10, 50_000, 16, 30
"""Neighbours of a node, nodes that all graphs share, columns of weights, batches."""
SIZES = [100_000, 1_000_000, 10_000_000]


def make_graph(nodes: int, *, spread: bool) -> Graph:
    """A random graph; the first nodes have the same neighbours in every graph."""
    chance = torch.Generator().manual_seed(0)
    common = random_columns(COMMON, nodes if spread else COMMON, chance)
    others = random_columns(nodes - COMMON, nodes, chance)
    indptr = torch.arange(nodes + 1) * DEGREE
    return Graph(
        adjacency=Adjacency(indptr, torch.cat([common, others]), nodes),
        features=torch.zeros(nodes, 0),
        labels=torch.zeros(nodes, dtype=torch.int64),
        num_classes=2,
        directed=True,
    )


def random_columns(rows: int, columns: int, chance: torch.Generator) -> torch.Tensor:
    """Distinct ascending columns of each row: one in each of DEGREE equal ranges."""
    size = columns // DEGREE
    kind = {"dtype": torch.int32, "generator": chance}
    within = torch.randint(size, (rows, DEGREE), **kind)
    return within.add_(size * torch.arange(DEGREE, dtype=torch.int32)).flatten()


def optimizer_step(weights: SparseOptimizer, graph: Graph, ids: torch.Tensor) -> None:
    """Select the rows of a batch and take a step along the gradient of its product."""
    runs = weights.weight.shape[1]
    step = AdamWStep(
        step=torch.ones(1, dtype=torch.int64),
        lr=torch.full((runs,), 0.01),
        weight_decay=torch.full((runs,), 1e-3),
        improved=torch.zeros(runs, dtype=torch.bool),
    )
    grad = torch.ones(len(ids), runs, WIDTH)
    weights.step(graph.select_rows(ids).adjacency, grad, step)


def works(graph: Graph, size: int) -> dict[str, Callable[[int], object]]:
    """What is measured, as functions of the number of the batch."""
    chance = torch.Generator().manual_seed(1)
    batches = [torch.randperm(COMMON, generator=chance)[:size] for _ in range(REPEATS)]
    weights = {
        name: SPARSE_OPTIMIZERS[name].create(
            torch.zeros(graph.num_nodes, 1, WIDTH), bf16=False
        )
        for name in ("lazy", "adagrad")
    }
    sampler = NeighbourSampler(size=size, fan_out=(DEGREE,))
    adjacency = graph.adjacency

    def neighbours(index: int) -> object:
        generator = torch.Generator().manual_seed(index)
        return sampler._sample_layers(adjacency, batches[index], generator)

    return {
        "rows and lazy step": lambda i: optimizer_step(
            weights["lazy"], graph, batches[i]
        ),
        "rows and adagrad step": lambda i: optimizer_step(
            weights["adagrad"], graph, batches[i]
        ),
        "subgraph": lambda i: graph.subgraph(batches[i]),
        "neighbours": neighbours,
    }


def seconds(work: Callable[[int], object]) -> float:
    """The median time of a batch; the first ones compile and allocate."""
    for index in range(REPEATS):
        work(index)
    spent = []
    for index in range(REPEATS):
        start = time.perf_counter()
        work(index)
        spent.append(time.perf_counter() - start)
    return median(spent)


def main() -> None:
    """Print the time of a batch of each kind for each size of the graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if min(options.nodes) < COMMON:
        parser.error(f"a graph has at least {COMMON:,} nodes")
    spent: dict[str, list[float]] = {}
    for nodes in options.nodes:
        graph = make_graph(nodes, spread=options.spread)
        for name, work in works(graph, options.size).items():
            spent.setdefault(name, []).append(seconds(work))
    if options.json:
        rows = [
            {"batch": name, "ms": [1e3 * one for one in times]}
            for name, times in spent.items()
        ]
        print(json.dumps({"size": options.size, "nodes": options.nodes, "rows": rows}))
        return
    print(f"{'ms a batch of ' + format(options.size, ',') + ' nodes':26}", end="")
    print("".join(f"{nodes:>14,}" for nodes in options.nodes), f"{'ratio':>8}")
    for name, times in spent.items():
        cells = "".join(f"{1e3 * one:14.2f}" for one in times)
        print(f"{name:26}{cells} {times[-1] / times[0]:8.2f}")


if __name__ == "__main__":
    main()
