"""Cost: what training a method on the whole graph takes on this machine, about."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unalike.advice.trial import Trial
from unalike.graph import Graph
from unalike.memory import free_memory
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.methods.method import Method, Trained
from unalike.options import options_of
from unalike.training.carry import size_of
from unalike.training.room import bytes_of_run

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
    larger = times_as_large(whole, sample) if trial.probe.sees_edges else more_nodes
    bytes_ = size_of(whole) + held(method, sample) * more_nodes
    fits = bytes_ < free_memory(torch.device(device))
    return Cost(
        trial.seconds * times * larger,
        bytes_ / 2**20,
        "" if fits else IN_BATCHES.get(method.family, ""),
    )


def held(method: Method, graph: Graph) -> int:
    """Bytes that a method holds beside the graph."""
    if isinstance(method, CorrectAndSmooth):
        return held(method.base, graph)
    if not isinstance(method, Trained):
        return 4 * NUMBERS_PER_CLASS * graph.num_nodes * max(1, graph.num_classes)
    prepared = method.prepare(graph)
    with torch.random.fork_rng():
        network = method.network(prepared)
        return bytes_of_run(network, prepared, row_wise=method.row_wise)


def times_as_large(whole: Graph, sample: Graph) -> float:
    """By how much the whole graph exceeds the sample in nodes and entries."""
    sizes = [graph.num_nodes + graph.adjacency.num_entries for graph in (whole, sample)]
    return sizes[0] / max(1, sizes[1])
