"""The engine bench: an epoch of LINKX, ours beside its peers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from unalike.benches.clock import bandwidth, held_bytes, peak_gib, seconds
from unalike.benches.peers import PEERS, Epoch, peer_epoch
from unalike.graph import Graph
from unalike.kernels import kernels_of
from unalike.methods.linkx import LINKX
from unalike.metrics import ACCURACY
from unalike.progress import Progress
from unalike.split import Split
from unalike.task import Task
from unalike.training.epoch import Epochs
from unalike.training.fit import Run, precise, start
from unalike.training.plan import Plan, show_labels
from unalike.training.settings import Precision, Training
from unalike.training.state import State


@dataclass(frozen=True, eq=False)
class Ours:
    """A stack in training, and one epoch of it."""

    state: State
    plan: Plan

    @classmethod
    def begin(
        cls,
        graph: Graph,
        splits: Sequence[Split],
        method: LINKX,
        *,
        device: torch.device,
        every_row: bool = False,
    ) -> Ours:
        """A run for each split, ready for its first epoch."""
        tasks = [
            Task.hide(graph, split, ACCURACY, seed) for seed, split in enumerate(splits)
        ]
        shown = show_labels(tasks)
        runs = [Run(method.network, task, method.training) for task in tasks]
        state = start(runs, shown, device)
        plan = Plan.of(state.stack.template, tasks, shown, every_row=every_row)
        return cls(state, plan.to(device))

    def epoch(self) -> Epoch:
        """A step, then the validation grade, as `fit` takes them."""
        return Epochs(self.state, self.plan, ACCURACY).advance

    def sparse_part(self) -> Epoch:
        """The gather of the rows, and the gather of the gradient with its step."""
        stack, plan = self.state.stack, self.plan
        weights = stack.tables["edges"]
        slope = torch.rand(
            plan.learn.num_nodes, *weights.now.shape[1:], device=weights.now.device
        ).to(weights.to_gather.dtype)
        kernels = kernels_of(weights.now.device)
        table = weights.to_gather.flatten(1)
        step = self.state.next_step()

        def part() -> None:
            plan.rows.adjacency @ table
            kernels.gather_adamw(weights, plan.learn.adjacency.transposed, slope, step)

        return part

    def sparse_bytes(self) -> int:
        """The fewest bytes that the sparse part moves, with no luck in caches."""
        weights = self.state.stack.tables["edges"]
        rows, learn = self.plan.rows.adjacency, self.plan.learn.adjacency
        width = weights.now[0].numel()
        gathered = (rows.num_entries + learn.num_entries) * (
            width * weights.to_gather.element_size() + rows.columns.element_size()
        )
        written = rows.num_rows * width * 4
        state = weights.now.numel() * (6 * 4 + (2 if weights.half is not None else 0))
        return gathered + written + state


MANY = 10_000
"""Epochs that no measurement uses up."""
Maker = Callable[[], tuple[Epoch, Ours | None]]


@dataclass(frozen=True, kw_only=True)
class EngineBench:
    """What to measure."""

    hidden: tuple[int, ...] = (128,)
    """Widths of LINKX."""
    stacks: tuple[int, ...] = ()
    """Numbers of runs to train at once."""
    repeats: int = 10
    """Epochs to take the median of."""

    def measure(
        self,
        graph: Graph,
        splits: Sequence[Split],
        device: torch.device,
        progress: Progress,
    ) -> dict[str, Any]:
        """All rows of the bench for one graph on one device."""
        progress.stage("measuring", None, "")
        copy = bandwidth(device)
        rows, stacks = [], []
        for hidden in self.hidden:
            for name, make in contenders(graph, splits[0], hidden, device).items():
                progress.advance(1, f"{name}, hidden {hidden}")
                row = self._row(make, device, copy)
                rows.append({"hidden": hidden, "what": name, **row})
            for runs in self.stacks:
                progress.advance(1, f"{runs} runs, hidden {hidden}")
                row = self._stack(graph, splits, hidden, runs, device)
                stacks.append({"hidden": hidden, "runs": runs, **row})
        return {
            "nodes": graph.num_nodes,
            "entries": graph.adjacency.num_entries,
            "features": graph.num_features,
            "device": str(device),
            "copy_gb_per_second": copy / 1e9,
            "epochs": rows,
            "stacks": stacks,
        }

    def _row(self, make: Maker, device: torch.device, copy: float) -> dict[str, Any]:
        try:
            row = self._measure(make, device, copy)
        except torch.OutOfMemoryError:
            row = {"ms": None, "gib": None}
        release(device)
        return row

    def _measure(
        self, make: Maker, device: torch.device, copy: float
    ) -> dict[str, Any]:
        before = held_bytes(device)
        epoch, ours = make()
        taken = seconds(epoch, device, self.repeats)
        row = {"ms": 1e3 * taken, "gib": peak_gib(device, before)}
        if ours is None:
            return row
        part = seconds(ours.sparse_part(), device, self.repeats)
        floor = ours.sparse_bytes() / copy
        return {**row, "sparse_ms": 1e3 * part, "sparse_floor_ms": 1e3 * floor}

    def _stack(
        self,
        graph: Graph,
        splits: Sequence[Split],
        hidden: int,
        runs: int,
        device: torch.device,
    ) -> dict[str, Any]:
        chosen = [splits[run % len(splits)] for run in range(runs)]
        ours = Ours.begin(
            graph,
            chosen,
            LINKX(hidden=hidden, training=Training(epochs=MANY)),
            device=device,
        )
        taken = seconds(ours.epoch(), device, self.repeats)
        release(device)
        return {"ms": 1e3 * taken, "model_epochs_per_second": runs / taken}


def contenders(
    graph: Graph, split: Split, hidden: int, device: torch.device
) -> dict[str, Maker]:
    """Everything to be timed, made when its turn comes."""
    found: dict[str, Maker] = {
        name: partial(theirs_epoch, make, graph, split, hidden, device)
        for name, make in PEERS.items()
    }
    on_card = device.type == "cuda"
    precisions: tuple[Precision, ...] = ("float32", "tf32", "bf16")
    for precision in precisions if on_card else precisions[:1]:
        for every_row, told in ((False, ""), (True, ", every row scored")):
            found[f"unalike {precision}{told}"] = partial(
                ours_epoch,
                graph,
                split,
                hidden,
                device=device,
                precision=precision,
                every_row=every_row,
            )
    return found


def theirs_epoch(
    make: Callable[[Graph, int], tuple[torch.nn.Module, torch.Tensor]],
    graph: Graph,
    split: Split,
    hidden: int,
    device: torch.device,
) -> tuple[Epoch, None]:
    """An epoch of a peer."""
    return peer_epoch(make, graph.to(device), split, hidden), None


def ours_epoch(
    graph: Graph,
    split: Split,
    hidden: int,
    *,
    device: torch.device,
    precision: Precision,
    every_row: bool,
) -> tuple[Epoch, Ours]:
    """An epoch of one run in some precision."""
    training = Training(precision=precision, epochs=MANY)
    method = LINKX(hidden=hidden, training=training)
    ours = Ours.begin(graph, [split], method, device=device, every_row=every_row)
    epoch = ours.epoch()

    def precise_epoch() -> None:
        with precise(training):
            epoch()

    return precise_epoch, ours


def release(device: torch.device) -> None:
    """Give back what the last contender held."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def random_graph(nodes: int, pairs: int, features: int) -> Graph:
    """A graph without structure, of a given size."""
    torch.manual_seed(0)
    source, target = torch.randint(nodes, (2, pairs))
    return Graph.from_edges(
        source,
        target,
        num_nodes=nodes,
        features=torch.randn(nodes, features),
        labels=torch.randint(2, (nodes,)),
        num_classes=2,
    )


POKEC_SIZED = {"nodes": 1_632_803, "pairs": 22_300_000, "features": 65}
