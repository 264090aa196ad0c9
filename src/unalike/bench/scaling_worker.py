"""One process of the scaling benchmark, started by `python -m`."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from unalike.data.store import StoredGraph, open_graph
from unalike.data.task import Task
from unalike.device import peak_memory_mb
from unalike.errors import UserError
from unalike.methods.linkx import LINKX
from unalike.progress import NO_PROGRESS
from unalike.samplers.rows import RowSampler
from unalike.training.distributed import World, init_distributed, shard_columns
from unalike.training.loop import FitSpec, FullBatchEpochs, init_state, make_epochs
from unalike.training.masks import merged_labels
from unalike.training.minibatch import MiniBatchEpochs
from unalike.training.state import State, Training

WARM_UP = 2
"""Epochs that are not timed: compilation, caches."""
CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class ScalingWorker:
    """One process of distributed LINKX training."""

    task: Task
    state: State
    epochs: FullBatchEpochs | MiniBatchEpochs

    @classmethod
    def of(
        cls, source: StoredGraph, *, hidden: int, rows: int, epochs: int
    ) -> ScalingWorker:
        method = LINKX(
            hidden=hidden,
            training=Training(epochs=epochs),
            batching=RowSampler(size=rows),
        )
        graph = source.prepared()
        task = Task.from_split(graph, source.splits()[0], source.metric, 0)
        shard = shard_columns(graph, World.current())
        task = replace(task, graph=replace(shard, labels=task.graph.labels))
        run = FitSpec(
            method.network, task, method.training, method.batching, row_wise=True
        )
        labels = merged_labels([task])
        state = init_state([run], labels, CPU)
        return cls(task, state, make_epochs([run], state, labels, NO_PROGRESS))

    def min_seconds(self, repeats: int) -> float:
        """The time of the fastest epoch, since other processes only add to it."""
        times = []
        for _ in range(WARM_UP + repeats):
            start = time.perf_counter()
            self.epochs.run_epoch()
            times.append(time.perf_counter() - start)
        return min(times[WARM_UP:])

    def step_traffic(self, rows: int) -> int:
        """Bytes that this process receives in the step of one batch."""
        traffic = self.state.stack.world.traffic
        batch = self.task.graph.select_rows(self.task.train[:rows])
        before = traffic.received
        self.state.stack.sparse_products(batch)
        return traffic.received - before

    def table_bytes(self) -> int:
        """Bytes of the edge weights and their optimizer state in this process."""
        parts = vars(self.state.stack.sparse_weight("adjacency")).values()
        return sum(part.nbytes for part in parts if part is not None)

    def node_bytes(self) -> int:
        """Bytes of all nodes in this process, for whichever columns it has."""
        task, graph = self.task, self.task.graph
        rows = graph.adjacency
        parts = (rows.indptr, rows.global_degrees, graph.labels, task.train, task.valid)
        scores = 4 * graph.num_nodes * graph.num_classes
        return scores + sum(part.nbytes for part in parts)


def measure(
    source: StoredGraph, hidden: int, rows: int, repeats: int
) -> dict[str, Any]:
    """Time, traffic and memory of an epoch in this process."""
    epochs = WARM_UP + repeats
    worker = ScalingWorker.of(source, hidden=hidden, rows=rows, epochs=epochs)
    seconds = worker.min_seconds(repeats)
    traffic = worker.state.stack.world.traffic
    return {
        "seconds": seconds,
        "epoch_bytes": traffic.received // epochs,
        "step_bytes": worker.step_traffic(rows),
        "table_bytes": worker.table_bytes(),
        "node_bytes": worker.node_bytes(),
        "peak_bytes": int(peak_memory_mb("cpu") * 2**20),
    }


def main(path: Path) -> None:
    """Measure the shapes of a request file; the main process writes the response."""
    request = json.loads(path.read_text("utf-8"))
    source = open_graph(Path(request["folder"]))
    with init_distributed() as world:
        # As if the process had a core of its own.
        torch.set_num_threads(1)
        results = [
            measure(source, hidden, rows, request["repeats"])
            for hidden, rows in request["shapes"]
        ]
        results_of_all = world.all_gather_object(results)
    if world.is_main:
        response_path(path).write_text(json.dumps(results_of_all), "utf-8")


def response_path(request: Path) -> Path:
    """The path of the response to a request file."""
    return request.with_suffix(".response")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except UserError as error:
        sys.exit(f"error: {error}")
