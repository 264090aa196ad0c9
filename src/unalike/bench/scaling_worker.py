"""One process of the scaling benchmark (`python -m`)."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import torch

from unalike.data.numba_utils import start_numba_threads
from unalike.data.store import StoredGraph, open_graph
from unalike.data.task import Task
from unalike.device import peak_memory_mb
from unalike.errors import UserError
from unalike.methods.linkx import LINKX
from unalike.progress import NO_PROGRESS
from unalike.samplers.rows import RowSampler
from unalike.training.distributed import World, init_distributed, shard_columns
from unalike.training.full_batch import FullBatchEpochs
from unalike.training.loop import FitSpec, init_state, make_epochs
from unalike.training.masks import merged_labels
from unalike.training.minibatch import MiniBatchEpochs
from unalike.training.settings import Training
from unalike.training.state import State

WARM_UP = 2
"""Epochs that are not timed: compiling, filling caches."""
CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class ScalingWorker:
    """A process in training."""

    task: Task
    state: State
    epochs: FullBatchEpochs | MiniBatchEpochs

    @classmethod
    def of(
        cls, source: StoredGraph, *, hidden: int, rows: int, epochs: int
    ) -> ScalingWorker:
        """A process that is ready for its first epoch of LINKX."""
        method = LINKX(
            hidden=hidden,
            training=Training(epochs=epochs),
            batching=RowSampler(size=rows),
        )
        whole = source.prepared()
        task = Task.from_split(whole, source.splits()[0], source.metric, 0)
        own = shard_columns(whole, World.current())
        task = replace(task, graph=replace(own, labels=task.graph.labels))
        run = FitSpec(
            method.network, task, method.training, method.batching, row_wise=True
        )
        shown = merged_labels([task])
        state = init_state([run], shown, CPU)
        return cls(task, state, make_epochs([run], state, shown, NO_PROGRESS))

    def timed(self, repeats: int) -> float:
        """The time of the fastest epoch, once some are done.

        Others may use the cores too; they make epochs longer and never shorter.
        """
        taken = []
        for _ in range(WARM_UP + repeats):
            began = time.perf_counter()
            self.epochs.run_epoch()
            taken.append(time.perf_counter() - began)
        return min(taken[WARM_UP:])

    def step_traffic(self, rows: int) -> int:
        """Bytes that this process is sent in the step of one batch."""
        traffic = self.state.stack.world.traffic
        batch = self.task.graph.select_rows(self.task.train[:rows])
        before = traffic.received
        self.state.stack.sparse_products(batch)
        return traffic.received - before

    def table_bytes(self) -> int:
        """What the table of edges and its optimizer take here."""
        parts = vars(self.state.stack.sparse_weight("adjacency")).values()
        return sum(part.nbytes for part in parts if part is not None)

    def node_bytes(self) -> int:
        """What is held of every node, whoever looks after its column."""
        task, graph = self.task, self.task.graph
        rows = graph.adjacency
        parts = (rows.indptr, rows.global_degrees, graph.labels, task.train, task.valid)
        scores = 4 * graph.num_nodes * graph.num_classes
        return scores + sum(part.nbytes for part in parts)


def measure(
    source: StoredGraph, hidden: int, rows: int, repeats: int
) -> dict[str, Any]:
    """An epoch of this process: time, traffic and memory."""
    member = ScalingWorker.of(
        source, hidden=hidden, rows=rows, epochs=WARM_UP + repeats
    )
    seconds = member.timed(repeats)
    traffic = member.state.stack.world.traffic
    epochs = WARM_UP + repeats
    return {
        "seconds": seconds,
        "epoch_bytes": traffic.received // epochs,
        "epoch_messages": traffic.messages // epochs,
        "step_bytes": member.step_traffic(rows),
        "table_bytes": member.table_bytes(),
        "node_bytes": member.node_bytes(),
        "peak_bytes": int(peak_memory_mb("cpu") * 2**20),
    }


def main(asked: Path) -> None:
    """Do what a file asks for; the leading process answers beside it for all."""
    wishes = json.loads(asked.read_text("utf-8"))
    source = open_graph(Path(wishes["folder"]))
    with init_distributed() as world:
        one_thread()
        told = [
            measure(source, hidden, rows, wishes["repeats"])
            for hidden, rows in wishes["shapes"]
        ]
        everybody = world.all_gather_object(told)
    if world.is_main:
        response_path(asked).write_text(json.dumps(everybody), "utf-8")


def response_path(asked: Path) -> Path:
    """Where the answer is written."""
    return asked.with_suffix(".answer")


def one_thread() -> None:
    """Let a process be one core's work, as if it had a host of its own."""
    start_numba_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except UserError as error:
        sys.exit(f"error: {error}")
