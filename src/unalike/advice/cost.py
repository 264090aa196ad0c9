"""Estimate time and memory of training on the whole graph."""

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
"""Copies of the scores that spreading labels holds at the same time."""


@dataclass(frozen=True)
class Cost:
    """Seconds and memory of one split."""

    seconds: float
    megabytes: float
    batching: str = ""
    """Batches to train from where the whole does not fit; empty where it does."""


IN_BATCHES = {"row-wise": "rows", "message passing": "random-parts"}
"""The batching that makes most of little memory, by the family of a method."""


def cost(trial: Trial, sample: Graph, whole: Graph, device: str = "cpu") -> Cost:
    """The cost of the usual epochs on the whole graph, from a trial on a sample."""
    method = trial.probe.method
    usual = options_of(method).get("epochs")
    times = usual / trial.epochs if usual and trial.epochs else 1.0
    more_nodes = whole.num_nodes / max(1, sample.num_nodes)
    larger = size_ratio(whole, sample) if trial.probe.uses_edges else more_nodes
    bytes_ = graph_nbytes(whole) + working_bytes(method, sample) * more_nodes
    fits = bytes_ < free_memory(torch.device(device))
    return Cost(
        trial.seconds * times * larger,
        bytes_ / 2**20,
        "" if fits else IN_BATCHES.get(method.family, ""),
    )


def working_bytes(method: Method, graph: Graph) -> int:
    """Bytes that a method holds beside the graph."""
    if isinstance(method, CorrectAndSmooth):
        return working_bytes(method.base, graph)
    if not isinstance(method, TrainedMethod):
        return 4 * NUMBERS_PER_CLASS * graph.num_nodes * max(1, graph.num_classes)
    prepared = method.prepare(graph)
    with torch.random.fork_rng():
        network = method.network(prepared)
        return memory_per_run(network, prepared, row_wise=method.row_wise)


def size_ratio(whole: Graph, sample: Graph) -> float:
    """By how much the whole graph exceeds the sample in nodes and entries."""
    sizes = [graph.num_nodes + graph.adjacency.nnz for graph in (whole, sample)]
    return sizes[0] / max(1, sizes[1])
