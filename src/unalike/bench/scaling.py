"""Measure distributed epochs over numbers of processes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unalike.bench.cost_model import Cluster, MemoryModel, TimeModel, Workload
from unalike.bench.epochs import random_graph
from unalike.bench.scaling_worker import response_path
from unalike.data.shard_writer import shard_graph
from unalike.data.split import random_splits
from unalike.data.store import StoredGraph, save_graph
from unalike.datasets import GraphSource
from unalike.errors import UserError
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import num_cores
from unalike.training.distributed import launch

USUAL = {"nodes": 60_000, "pairs": 600_000, "features": 16}
"""A graph that two cores train on in a minute."""


@dataclass(frozen=True, kw_only=True)
class ScalingBenchmark:
    """Which epochs to measure, each by several numbers of processes."""

    processes: tuple[int, ...]
    hidden: tuple[int, ...]
    rows: tuple[int, ...]
    repeats: int
    cluster: Cluster
    progress: Progress = NO_PROGRESS

    def __post_init__(self) -> None:
        for name in ("processes", "hidden", "rows"):
            told = getattr(self, name)
            if not told or min(told) < 1:
                raise UserError(f"--{name} needs numbers from 1 on; it has {told}.")

    def run(self, source: GraphSource | None) -> dict[str, Any]:
        """Measure, fit and predict; without a source, on a random graph."""
        self.progress.stage("processes", len(self.processes), "numbers of processes")
        with TemporaryDirectory() as place:
            folder = Path(place)
            stored = source or random_source(folder / "random")
            base = workload_of(stored)
            measured = []
            for processes in self.processes:
                told = self._measure(stored, processes, folder / str(processes))
                measured += rows_of(base, self.shapes, processes, told)
                self.progress.advance(1, f"{processes} processes")
        return self._report(measured)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Widths and batches, small ones first: peaks of memory do not go down."""
        return sorted(product(self.hidden, self.rows))

    def _measure(self, source: GraphSource, processes: int, folder: Path) -> Any:
        shard_graph(source, processes, folder)
        asked = folder.with_suffix(".asked")
        wishes = {"folder": str(folder), "shapes": self.shapes, "repeats": self.repeats}
        asked.write_text(json.dumps(wishes), "utf-8")
        if launch([str(asked)], processes, module="unalike.bench.scaling_worker"):
            raise UserError(f"{processes} processes could not be measured.")
        return json.loads(response_path(asked).read_text("utf-8"))

    def _report(self, measured: list[Measured]) -> dict[str, Any]:
        loads = [one.load for one in measured]
        seconds = TimeModel.fit(loads, [one.seconds for one in measured])
        largest = max(measured, key=lambda one: one.load.hidden)
        memory = MemoryModel.fit(
            loads,
            [one.peak_bytes for one in measured],
            largest.node_bytes / largest.load.nodes,
        )
        alone = {one.shape: one for one in reversed(measured)}
        return {
            "graph": graph_of(loads[0]),
            "cores": num_cores(),
            "measured": [
                {
                    **one.to_dict(alone[one.shape]),
                    "model_seconds": seconds.seconds(one.load),
                    "model_peak_bytes": memory.peak(one.load),
                }
                for one in measured
            ],
            "model": {
                "seconds_per": dict(seconds.rates),
                **vars(memory),
                "median_error": median_error(seconds, measured),
            },
            "predicted": self.cluster.predict(seconds, memory, loads[-1]),
        }


@dataclass(frozen=True)
class Measured:
    """An epoch that was measured."""

    load: Workload
    seconds: float
    step_bytes: float
    """What a process was sent in a step, the mean over processes."""
    most_step_bytes: int
    epoch_bytes: float
    peak_bytes: int
    """Of the process that held most."""
    table_bytes: int
    node_bytes: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.load.hidden, self.load.rows

    def to_dict(self, alone: Measured) -> dict[str, Any]:
        """What is told of it, beside the smallest number of processes."""
        return {
            "processes": self.load.processes,
            "hidden": self.load.hidden,
            "rows": self.load.rows,
            "seconds": self.seconds,
            "times_first": self.seconds / alone.seconds,
            "step_bytes": self.step_bytes,
            "most_step_bytes": self.most_step_bytes,
            "step_bytes_formula": self.load.step_bytes,
            "epoch_bytes": self.epoch_bytes,
            "peak_bytes": self.peak_bytes,
            "table_bytes": self.table_bytes,
            "share_of_table": self.table_bytes / alone.table_bytes,
        }


def rows_of(
    base: Workload, shapes: Sequence[tuple[int, int]], processes: int, told: Any
) -> list[Measured]:
    """What the members of one world told, shape by shape."""
    crowd = max(1.0, processes / num_cores())
    found = []
    for (hidden, rows), *each in zip(shapes, *told, strict=True):
        found.append(
            Measured(
                load=replace(
                    base, hidden=hidden, rows=rows, processes=processes, crowd=crowd
                ),
                seconds=max(one["seconds"] for one in each),
                step_bytes=statistics.fmean(one["step_bytes"] for one in each),
                most_step_bytes=max(one["step_bytes"] for one in each),
                epoch_bytes=statistics.fmean(one["epoch_bytes"] for one in each),
                peak_bytes=max(one["peak_bytes"] for one in each),
                table_bytes=max(one["table_bytes"] for one in each),
                node_bytes=max(one["node_bytes"] for one in each),
            )
        )
    return found


def workload_of(source: GraphSource) -> Workload:
    """An epoch on the first split of a graph; how it is trained comes later."""
    graph, split = source.prepared(), source.splits()[0]
    return Workload(
        nodes=graph.num_nodes,
        entries=graph.adjacency.nnz,
        features=graph.num_features,
        train=len(split.train),
        valid=len(split.valid),
        hidden=1,
        rows=1,
        processes=1,
    )


def graph_of(load: Workload) -> dict[str, int]:
    """What was trained on."""
    names = ("nodes", "entries", "features", "train", "valid")
    return {name: getattr(load, name) for name in names}


def median_error(model: TimeModel, measured: Sequence[Measured]) -> float:
    """How far the model is from what it was fitted to, in shares of it."""
    return statistics.median(
        abs(model.seconds(one.load) / one.seconds - 1) for one in measured
    )


def random_source(folder: Path) -> StoredGraph:
    """A random graph, in files."""
    graph = random_graph(**USUAL)
    return save_graph(folder, graph, splits=random_splits(graph.labels, count=1))
