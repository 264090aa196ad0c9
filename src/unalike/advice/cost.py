"""Estimate time and memory of training on the full graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unalike.advice.trials import Trial
from unalike.data.graph import Graph
from unalike.methods.base import Method, TrainedMethod
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.options import options_of
from unalike.system import free_memory
from unalike.training.memory import graph_nbytes
from unalike.training.stack import memory_per_run

NUMBERS_PER_CLASS = 4
"""Copies of the scores in memory during label propagation."""


@dataclass(frozen=True)
class Cost:
    """Seconds and memory of one split."""

    seconds: float
    megabytes: float
    batching: str = ""
    """The batching to use if the graph does not fit; empty if it fits."""


IN_BATCHES = {"row-wise": "rows", "message passing": "random-parts"}
"""The batching that needs the least memory, by the family of a method."""


def cost(trial: Trial, sample: Graph, full: Graph, device: str = "cpu") -> Cost:
    """The cost of the default epochs on the full graph, from a trial on a sample."""
    method = trial.candidate.method
    epochs = options_of(method).get("epochs")
    epoch_ratio = epochs / trial.epochs if epochs and trial.epochs else 1.0
    node_ratio = full.num_nodes / max(1, sample.num_nodes)
    scale = size_ratio(full, sample) if trial.candidate.uses_edges else node_ratio
    nbytes = graph_nbytes(full) + working_bytes(method, sample) * node_ratio
    fits = nbytes < free_memory(torch.device(device))
    return Cost(
        trial.seconds * epoch_ratio * scale,
        nbytes / 2**20,
        "" if fits else IN_BATCHES.get(method.family, ""),
    )


def working_bytes(method: Method, graph: Graph) -> int:
    """The memory of a method besides the graph."""
    if isinstance(method, CorrectAndSmooth):
        return working_bytes(method.base, graph)
    if not isinstance(method, TrainedMethod):
        return 4 * NUMBERS_PER_CLASS * graph.num_nodes * max(1, graph.num_classes)
    prepared = method.prepare(graph)
    with torch.random.fork_rng():
        network = method.network(prepared)
        return memory_per_run(network, prepared, row_wise=method.row_wise)


def size_ratio(full: Graph, sample: Graph) -> float:
    """The ratio of nodes and edges of the full graph to those of the sample."""
    sizes = [graph.num_nodes + graph.adjacency.nnz for graph in (full, sample)]
    return sizes[0] / max(1, sizes[1])
