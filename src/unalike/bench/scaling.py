"""Measure epochs of distributed training over numbers of processes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unalike.bench.cost_model import Cluster, MemoryModel, TimeModel, Workload
from unalike.bench.epochs import random_graph
from unalike.bench.scaling_worker import response_path
from unalike.data.sharding import shard_graph
from unalike.data.split import random_splits
from unalike.data.store import save_graph
from unalike.datasets import GraphSource
from unalike.errors import UserError
from unalike.options import check_options
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import num_cores
from unalike.training.distributed import launch

DEFAULT_GRAPH = {"nodes": 60_000, "pairs": 600_000, "features": 16}
"""Sizes of a random graph that takes two cores about a minute."""
GRAPH_SIZES = ("nodes", "entries", "features", "train", "valid")
"""Fields of a workload that describe the graph."""


@dataclass(frozen=True, kw_only=True)
class ScalingBenchmark:
    """Measures epochs of several shapes with several numbers of processes."""

    processes: tuple[int, ...]
    hidden: tuple[int, ...] = (32, 128)
    rows: tuple[int, ...]
    repeats: int = 4
    cluster: Cluster
    progress: Progress = NO_PROGRESS

    def __post_init__(self) -> None:
        check_options(self)
        for name in ("processes", "hidden", "rows"):
            values = getattr(self, name)
            if not values or min(values) < 1:
                raise UserError(f"--{name} needs numbers from 1 on; it has {values}.")

    def run(self, source: GraphSource | None) -> dict[str, Any]:
        """Measure, fit and predict, on a random graph if there is no source."""
        self.progress.stage("processes", len(self.processes), "numbers of processes")
        with TemporaryDirectory() as temporary:
            folder = Path(temporary)
            stored = source
            if stored is None:
                graph = random_graph(**DEFAULT_GRAPH)
                splits = random_splits(graph.labels, count=1)
                stored = save_graph(folder / "random", graph, splits=splits)
            base = workload_of(stored)
            measured: list[Measurement] = []
            for processes in self.processes:
                response = self._measure(stored, processes, folder / str(processes))
                measured += measurements(base, self.shapes, processes, response)
                self.progress.advance(1, f"{processes} processes")
        return self._report(measured)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Widths and batch sizes, small ones first, since a peak of memory remains."""
        return sorted(product(self.hidden, self.rows))

    def _measure(self, source: GraphSource, processes: int, folder: Path) -> Any:
        shard_graph(source, processes, folder)
        path = folder.with_suffix(".request")
        request = {"folder": str(folder), "shapes": self.shapes}
        path.write_text(json.dumps({**request, "repeats": self.repeats}), "utf-8")
        if launch([str(path)], processes, module="unalike.bench.scaling_worker"):
            raise UserError(f"{processes} processes could not be measured.")
        return json.loads(response_path(path).read_text("utf-8"))

    def _report(self, measured: list[Measurement]) -> dict[str, Any]:
        loads = [each.load for each in measured]
        times = [each.most["seconds"] for each in measured]
        seconds = TimeModel.fit(loads, times)
        widest = max(measured, key=lambda each: each.load.hidden)
        memory = MemoryModel.fit(
            loads,
            [each.most["peak_bytes"] for each in measured],
            widest.most["node_bytes"] / widest.load.nodes,
        )
        first = {each.shape: each for each in reversed(measured)}
        return {
            "graph": {name: getattr(loads[0], name) for name in GRAPH_SIZES},
            "cores": num_cores(),
            "measured": [
                {
                    **each.to_dict(first[each.shape]),
                    "model_seconds": seconds.seconds(each.load),
                    "model_peak_bytes": memory.peak(each.load),
                }
                for each in measured
            ],
            "model": {
                "seconds_per": dict(seconds.rates),
                **vars(memory),
                "median_error": statistics.median(
                    abs(seconds.seconds(load) / time - 1)
                    for load, time in zip(loads, times, strict=True)
                ),
            },
            "predicted": self.cluster.predict(seconds, memory, loads[-1]),
        }


@dataclass(frozen=True)
class Measurement:
    """Time, traffic and memory of an epoch, over the processes."""

    load: Workload
    most: dict[str, Any]
    """The maximum over processes."""
    mean: dict[str, float]

    @property
    def shape(self) -> tuple[int, int]:
        return self.load.hidden, self.load.rows

    def to_dict(self, first: Measurement) -> dict[str, Any]:
        """The values by name, relative to the first number of processes."""
        most, most_of_first = self.most, first.most
        return {
            "processes": self.load.processes,
            "hidden": self.load.hidden,
            "rows": self.load.rows,
            "seconds": most["seconds"],
            "times_first": most["seconds"] / most_of_first["seconds"],
            "step_bytes": self.mean["step_bytes"],
            "most_step_bytes": most["step_bytes"],
            "step_bytes_formula": self.load.step_bytes,
            "epoch_bytes": self.mean["epoch_bytes"],
            "peak_bytes": most["peak_bytes"],
            "table_bytes": most["table_bytes"],
            "share_of_table": most["table_bytes"] / most_of_first["table_bytes"],
        }


def measurements(
    base: Workload, shapes: Sequence[tuple[int, int]], processes: int, response: Any
) -> Iterator[Measurement]:
    """The response of all processes, reduced to one measurement for each shape."""
    oversubscription = max(1.0, processes / num_cores())
    load = replace(base, processes=processes, oversubscription=oversubscription)
    for (hidden, rows), *workers in zip(shapes, *response, strict=True):
        values = {name: [worker[name] for worker in workers] for name in workers[0]}
        yield Measurement(
            replace(load, hidden=hidden, rows=rows),
            most={name: max(several) for name, several in values.items()},
            mean={name: statistics.fmean(several) for name, several in values.items()},
        )


def workload_of(source: GraphSource) -> Workload:
    """The sizes of a graph and its first split, with a placeholder shape."""
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
