"""Ours: an epoch of our own engine, and the fewest bytes its sparse part moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unalike.benches.peers import Epoch
from unalike.graph import Graph
from unalike.kernels import kernels_of
from unalike.methods.method import Trained
from unalike.metrics import ACCURACY
from unalike.split import Split
from unalike.task import Task
from unalike.training.epoch import Epochs
from unalike.training.fit import Run, precise, start
from unalike.training.plan import Plan, show_labels
from unalike.training.state import State

MANY = 10_000
"""Epochs that no measurement uses up."""


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
        method: Trained,
        *,
        device: torch.device,
        every_row: bool = False,
    ) -> Ours:
        """A run for each split, ready for its first epoch."""
        graph = method.prepare(graph)
        tasks = [
            Task.hide(graph, split, ACCURACY, seed) for seed, split in enumerate(splits)
        ]
        shown = show_labels(tasks)
        runs = [
            Run(method.network, task, method.training, row_wise=method.row_wise)
            for task in tasks
        ]
        state = start(runs, shown, device)
        plan = Plan.of(state.stack, tasks, shown, every_row=every_row)
        return cls(state, plan.to(device))

    def epoch(self) -> Epoch:
        """A step, then the validation grade, as `fit` takes them."""
        return Epochs(self.state, self.plan, ACCURACY, self.plan.rows).advance

    def sparse_part(self) -> Epoch:
        """The gather of the rows, and the gather of the gradient with its step."""
        stack, plan = self.state.stack, self.plan
        weights = stack.sparse_weight("adjacency")
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
        weights = self.state.stack.sparse_weight("adjacency")
        rows, learn = self.plan.rows.adjacency, self.plan.learn.adjacency
        width = weights.now[0].numel()
        gathered = (rows.num_entries + learn.num_entries) * (
            width * weights.to_gather.element_size() + rows.columns.element_size()
        )
        written = rows.num_rows * width * 4
        state = weights.now.numel() * (6 * 4 + (2 if weights.half is not None else 0))
        return gathered + written + state


def ours_epoch(
    graph: Graph,
    split: Split,
    method: Trained,
    *,
    device: torch.device,
    every_row: bool = False,
) -> tuple[Epoch, Ours]:
    """An epoch of one run in the precision of its method."""
    ours = Ours.begin(graph, [split], method, device=device, every_row=every_row)
    epoch = ours.epoch()

    def precise_epoch() -> None:
        with precise(method.training):
            epoch()

    return precise_epoch, ours


def ours_only_epoch(
    graph: Graph, split: Split, method: Trained, *, device: torch.device
) -> tuple[Epoch, None]:
    """The same of a method whose sparse part is not timed alone."""
    return ours_epoch(graph, split, method, device=device)[0], None
