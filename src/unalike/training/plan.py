"""Plan: which rows a stack of runs learns from, and which it is graded on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from unalike.adjacency import Ids
from unalike.graph import Graph
from unalike.metrics import Labels
from unalike.task import Task
from unalike.training.stack import Stack

WORTH = 1.5
"""Times as many rows as a run is graded on, from which each run picks its own."""


@dataclass(frozen=True, eq=False)
class Own:
    """The rows that each run is graded on, out of those of all runs."""

    places: Int[Tensor, "rows runs"]
    """Where they lie among the rows of all runs, one run after the other."""
    labels: Int[Tensor, "runs rows"]
    weight: Float[Tensor, "runs rows"]
    """Nothing where a run has fewer rows than another."""

    @classmethod
    def among(cls, weight: Float[Tensor, "runs grade"], labels: Labels) -> Own:
        """The rows to which each run gives a weight."""
        runs, most = len(weight), int((weight > 0).sum(1).max())
        rows = weight.argsort(dim=1, descending=True, stable=True)[:, :most]
        places = rows * runs + torch.arange(runs)[:, None]
        return cls(places.T.contiguous(), labels[rows], weight.gather(1, rows))

    def of(
        self, product: Float[Tensor, "grade runs hidden"]
    ) -> Float[Tensor, "rows runs hidden"]:
        """The products of these rows."""
        picked = product.flatten(0, 1).index_select(0, self.places.flatten())
        return picked.unflatten(0, self.places.shape)

    def to(self, device: torch.device) -> Own:
        """The same on another device."""
        return Own(*(part.to(device) for part in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Plan:
    """The rows that are needed: leading ones to learn from, trailing ones to grade."""

    rows: Graph
    learn: Graph
    learn_weight: Float[Tensor, "runs learn"]
    grade: Graph
    grade_weight: Float[Tensor, "runs grade"]
    own: Own | None = None
    """What each run picks of the rows to grade, where that spares it many."""

    @classmethod
    def of(
        cls,
        stack: Stack,
        tasks: Sequence[Task],
        graph: Graph,
        *,
        every_row: bool = False,
    ) -> Plan:
        """The rows that a stack needs for these tasks, or all to be scored."""
        if stack.row_wise:
            mixes = uses_batch_statistics(stack.template)
            plan = cls.of_rows(tasks, graph, mixes=mixes, every_row=every_row)
            return plan.sparing() if stack.only_products and not every_row else plan
        return cls.of_whole(tasks, graph)

    @classmethod
    def of_rows(
        cls,
        tasks: Sequence[Task],
        graph: Graph,
        *,
        mixes: bool,
        every_row: bool = False,
    ) -> Plan:
        """Train and valid rows; all rows, where those of a batch mix."""
        train, valid = members(tasks, "train"), members(tasks, "valid")
        learns = torch.ones_like(train[0]) if mixes else train.any(0)
        grades = torch.ones_like(valid[0]) if every_row else valid.any(0)
        order = torch.cat(
            [
                (learns & ~grades).nonzero()[:, 0],
                (learns & grades).nonzero()[:, 0],
                (~learns & grades).nonzero()[:, 0],
            ]
        )
        rows = graph.rows(order)
        learn = rows.leading(int(learns.sum()))
        grade = rows.trailing(int(grades.sum()))
        return cls(
            rows=rows,
            learn=learn,
            learn_weight=train_weights(tasks, graph, train)[:, learn.ids],
            grade=grade,
            grade_weight=valid[:, grade.ids].float(),
        )

    @classmethod
    def of_whole(cls, tasks: Sequence[Task], graph: Graph) -> Plan:
        """The whole graph for every purpose."""
        train, valid = members(tasks, "train"), members(tasks, "valid")
        weights = train_weights(tasks, graph, train)
        return cls(graph, graph, weights, graph, valid.float())

    def sparing(self) -> Plan:
        """The same plan, where runs that share few rows pick their own."""
        rows = (self.grade_weight > 0).sum(1).max()
        if WORTH * rows > self.grade.num_nodes:
            return self
        return replace(self, own=Own.among(self.grade_weight, self.grade.labels))

    def to(self, device: torch.device) -> Plan:
        """The same plan on another device; learn and grade remain views of rows."""
        rows = self.rows.to(device)
        return Plan(
            rows=rows,
            learn=rows.leading(self.learn.num_nodes),
            learn_weight=self.learn_weight.to(device),
            grade=rows.trailing(self.grade.num_nodes),
            grade_weight=self.grade_weight.to(device),
            own=None if self.own is None else self.own.to(device),
        )


def uses_batch_statistics(module: nn.Module) -> bool:
    """Do the logits of a row depend on the other rows of its batch in training?"""
    return any(isinstance(part, nn.BatchNorm1d) for part in module.modules())


def show_labels(tasks: Sequence[Task]) -> Graph:
    """The graph the tasks share, with every label that one of them shows."""
    labels = torch.stack([task.graph.labels for task in tasks]).amax(0)
    return replace(tasks[0].graph, labels=labels)


def train_weights(
    tasks: Sequence[Task], graph: Graph, train: Bool[Tensor, "runs nodes"]
) -> Float[Tensor, "runs nodes"]:
    """What each run learns from the nodes."""
    return train * torch.stack([task.weights_of(graph.labels) for task in tasks])


def members(tasks: Sequence[Task], part: str) -> Bool[Tensor, "runs nodes"]:
    """Which nodes are in the train or valid part of each run."""
    found = torch.zeros(len(tasks), tasks[0].graph.num_nodes, dtype=torch.bool)
    for run, task in enumerate(tasks):
        ids: Ids = getattr(task, part)
        found[run, ids] = True
    return found
