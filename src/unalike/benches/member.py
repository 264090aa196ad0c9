"""Member: one of the processes whose epochs are measured, `python -m` its own."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import torch

from unalike.batchings.rows import Rows
from unalike.errors import UserError
from unalike.experiments.machine import peak_memory_mb
from unalike.kernels.compiled import start_threads
from unalike.methods.linkx import LINKX
from unalike.progress import SILENT
from unalike.store import Stored, open_graph
from unalike.task import Task
from unalike.training.batches import BatchEpochs
from unalike.training.epoch import Epochs
from unalike.training.fit import Run, begin, start
from unalike.training.joint import own_columns
from unalike.training.plan import show_labels
from unalike.training.settings import Training
from unalike.training.state import State
from unalike.training.world import World, joined

WARM_UP = 2
"""Epochs that are not timed: compiling, filling caches."""
CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Member:
    """A process in training."""

    task: Task
    state: State
    epochs: Epochs | BatchEpochs

    @classmethod
    def of(cls, source: Stored, *, hidden: int, rows: int, epochs: int) -> Member:
        """A process that is ready for its first epoch of LINKX."""
        method = LINKX(
            hidden=hidden, training=Training(epochs=epochs), batching=Rows(size=rows)
        )
        whole = source.prepared()
        task = Task.hide(whole, source.splits()[0], source.metric, 0)
        own = own_columns(whole, World.here())
        task = replace(task, graph=replace(own, labels=task.graph.labels))
        run = Run(method.network, task, method.training, method.batching, row_wise=True)
        shown = show_labels([task])
        state = start([run], shown, CPU)
        return cls(task, state, begin([run], state, shown, SILENT))

    def timed(self, repeats: int) -> float:
        """The time of the fastest epoch, once some are done.

        Others may use the cores too; they make epochs longer and never shorter.
        """
        taken = []
        for _ in range(WARM_UP + repeats):
            began = time.perf_counter()
            self.epochs.advance()
            taken.append(time.perf_counter() - began)
        return min(taken[WARM_UP:])

    def step_traffic(self, rows: int) -> int:
        """Bytes that this process is sent in the step of one batch."""
        traffic = self.state.stack.world.traffic
        batch = self.task.graph.rows(self.task.train[:rows])
        before = traffic.received
        self.state.stack.products(batch)
        return traffic.received - before

    def table_bytes(self) -> int:
        """What the table of edges and its optimizer take here."""
        parts = vars(self.state.stack.sparse_weight("adjacency")).values()
        return sum(part.nbytes for part in parts if part is not None)

    def node_bytes(self) -> int:
        """What is held of every node, whoever looks after its column."""
        task, graph = self.task, self.task.graph
        rows = graph.adjacency
        parts = (rows.starts, rows.loads, graph.labels, task.train, task.valid)
        scores = 4 * graph.num_nodes * graph.num_classes
        return scores + sum(part.nbytes for part in parts)


def measure(source: Stored, hidden: int, rows: int, repeats: int) -> dict[str, Any]:
    """An epoch of this process: time, traffic and memory."""
    member = Member.of(source, hidden=hidden, rows=rows, epochs=WARM_UP + repeats)
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


def work(asked: Path) -> None:
    """Do what a file asks for; the leading process answers beside it for all."""
    wishes = json.loads(asked.read_text("utf-8"))
    source = open_graph(Path(wishes["folder"]))
    with joined() as world:
        one_thread()
        told = [
            measure(source, hidden, rows, wishes["repeats"])
            for hidden, rows in wishes["shapes"]
        ]
        everybody = world.gather(told)
    if world.leads:
        answer_to(asked).write_text(json.dumps(everybody), "utf-8")


def answer_to(asked: Path) -> Path:
    """Where the answer is written."""
    return asked.with_suffix(".answer")


def one_thread() -> None:
    """Let a process be one core's work, as if it had a host of its own."""
    start_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)


if __name__ == "__main__":
    try:
        work(Path(sys.argv[1]))
    except UserError as error:
        sys.exit(f"error: {error}")
