"""Epoch: a step on the training rows, then a grade of the validation rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.graph import Graph
from unalike.metrics import Metric
from unalike.training.descent import descend, slopes_of
from unalike.training.plan import Plan
from unalike.training.scoring import rows_of, score
from unalike.training.stack import Stacked
from unalike.training.state import State

EPOCHS_BEFORE_RECORDING = 3
"""Epochs that warm a card up before one is recorded."""


@dataclass(eq=False)
class Epochs:
    """Epochs of a stack, one after the other.

    The products that the grade of one epoch reads are those the step of the next one
    needs. On a card an epoch is recorded and then played again, so that it takes the
    time of its kernels and not that of launching them.
    """

    state: State
    plan: Plan
    metric: Metric
    graph: Graph
    """All nodes, to be scored in the end."""
    capturable: bool = True
    """Can an epoch be captured as a CUDA graph?"""
    first: Stacked = field(init=False)
    record: torch.cuda.CUDAGraph | None = None
    done: int = 0
    told = ""
    """Nothing to add to the notes of an epoch."""

    def __post_init__(self) -> None:
        self.first = self.state.stack.products(self.plan.rows)

    def advance(self) -> None:
        """One more epoch."""
        if self.record is not None:
            self.record.replay()
        elif self.capturable and self._is_alone_on_card:
            self._advance_on_card()
        else:
            self._epoch()
        self.done += 1
        self.state.epoch += 1

    def score(self) -> Float[Tensor, "runs nodes classes"]:
        """Score every node with the best weights of each run."""
        state, graph = self.state, self.graph
        everything = torch.arange(graph.num_nodes)
        alone = state.stack.row_wise
        batches = rows_of(state, graph, everything) if alone else [self.plan.rows]
        scores = torch.empty(state.stack.num_runs, graph.num_nodes, graph.num_classes)
        return score(state, batches, scores, best=True)

    @property
    def _is_alone_on_card(self) -> bool:
        return self.plan.learn_weight.is_cuda and self.state.stack.world.size == 1

    def _advance_on_card(self) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._epoch()
        torch.cuda.current_stream().wait_stream(side)
        if self.done + 1 >= EPOCHS_BEFORE_RECORDING:
            record = torch.cuda.CUDAGraph()
            with torch.cuda.graph(record):
                self._epoch()
            self.record = record

    def _epoch(self) -> None:
        plan = self.plan
        leading = {
            name: product[: plan.learn.num_nodes]
            for name, product in self.first.items()
        }
        stack, weight = self.state.stack, plan.learn_weight
        slopes = slopes_of(stack, plan.learn, weight, leading, self.metric)
        descend(self.state, slopes)
        self.state.note_loss(slopes.loss)
        stack.products(plan.rows, out=self.first)
        grade(self.state, plan, self.first, self.metric)


@torch.no_grad()
def grade(state: State, plan: Plan, first: Stacked, metric: Metric) -> None:
    """Grade the validation rows."""
    stack = state.stack
    trailing = {
        name: product[len(product) - plan.grade.num_nodes :]
        for name, product in first.items()
    }
    labels, weight = plan.grade.labels, plan.grade_weight
    if plan.own is not None:
        trailing = {name: plan.own.of(product) for name, product in trailing.items()}
        labels, weight = plan.own.labels, plan.own.weight
    scores = stack.scores(
        plan.grade, trailing, stack.rest.now[0], stack.buffers, training=False
    )
    state.note_grade(metric.grade(scores, labels, weight))
