"""Train/valid masks, rows and loss weights of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.data.metrics import Labels
from unalike.data.task import Task
from unalike.training.stack import Stack

# Plan: which rows a stack of runs learns from, and which it is graded on.


MIN_SAVING = 1.5
"""Times as many rows as a run is graded on, from which each run picks its own."""


@dataclass(frozen=True, eq=False)
class PerRunRows:
    """The rows that each run is graded on, out of those of all runs."""

    places: Int[Tensor, "rows runs"]
    """Where they lie among the rows of all runs, one run after the other."""
    labels: Int[Tensor, "runs rows"]
    weight: Float[Tensor, "runs rows"]
    """Nothing where a run has fewer rows than another."""

    @classmethod
    def from_weight(
        cls, weight: Float[Tensor, "runs grade"], labels: Labels
    ) -> PerRunRows:
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

    def to(self, device: torch.device) -> PerRunRows:
        """The same on another device."""
        return PerRunRows(*(part.to(device) for part in vars(self).values()))


@dataclass(frozen=True, eq=False)
class RowPlan:
    """The rows that are needed: leading ones to learn from, trailing ones to grade."""

    rows: Graph
    train_rows: Graph
    loss_weight: Float[Tensor, "runs learn"]
    eval_rows: Graph
    eval_weight: Float[Tensor, "runs grade"]
    per_run: PerRunRows | None = None
    """What each run picks of the rows to grade, where that spares it many."""

    @classmethod
    def of(
        cls,
        stack: Stack,
        tasks: Sequence[Task],
        graph: Graph,
        *,
        every_row: bool = False,
    ) -> RowPlan:
        """The rows that a stack needs for these tasks, or all to be scored."""
        if stack.row_wise:
            mixes = uses_batch_statistics(stack.module)
            plan = cls.of_rows(tasks, graph, mixes=mixes, every_row=every_row)
            return (
                plan.with_per_run_rows()
                if stack.only_products and not every_row
                else plan
            )
        return cls.of_whole(tasks, graph)

    @classmethod
    def of_rows(
        cls,
        tasks: Sequence[Task],
        graph: Graph,
        *,
        mixes: bool,
        every_row: bool = False,
    ) -> RowPlan:
        """Train and valid rows; all rows, where those of a batch mix."""
        train, valid = split_masks(tasks, "train"), split_masks(tasks, "valid")
        learns = torch.ones_like(train[0]) if mixes else train.any(0)
        grades = torch.ones_like(valid[0]) if every_row else valid.any(0)
        order = torch.cat(
            [
                (learns & ~grades).nonzero()[:, 0],
                (learns & grades).nonzero()[:, 0],
                (~learns & grades).nonzero()[:, 0],
            ]
        )
        rows = graph.select_rows(order)
        learn = rows.head(int(learns.sum()))
        grade = rows.tail(int(grades.sum()))
        return cls(
            rows=rows,
            train_rows=learn,
            loss_weight=loss_weights(tasks, graph, train)[:, learn.ids],
            eval_rows=grade,
            eval_weight=valid[:, grade.ids].float(),
        )

    @classmethod
    def of_whole(cls, tasks: Sequence[Task], graph: Graph) -> RowPlan:
        """The whole graph for every purpose."""
        train, valid = split_masks(tasks, "train"), split_masks(tasks, "valid")
        weights = loss_weights(tasks, graph, train)
        return cls(graph, graph, weights, graph, valid.float())

    def with_per_run_rows(self) -> RowPlan:
        """The same plan, where runs that share few rows pick their own."""
        rows = (self.eval_weight > 0).sum(1).max()
        if MIN_SAVING * rows > self.eval_rows.num_nodes:
            return self
        return replace(
            self,
            per_run=PerRunRows.from_weight(self.eval_weight, self.eval_rows.labels),
        )

    def to(self, device: torch.device) -> RowPlan:
        """The same plan on another device; learn and grade remain views of rows."""
        rows = self.rows.to(device)
        return RowPlan(
            rows=rows,
            train_rows=rows.head(self.train_rows.num_nodes),
            loss_weight=self.loss_weight.to(device),
            eval_rows=rows.tail(self.eval_rows.num_nodes),
            eval_weight=self.eval_weight.to(device),
            per_run=None if self.per_run is None else self.per_run.to(device),
        )


def uses_batch_statistics(module: nn.Module) -> bool:
    """Do the logits of a row depend on the other rows of its batch in training?"""
    return any(isinstance(part, nn.BatchNorm1d) for part in module.modules())


def merged_labels(tasks: Sequence[Task]) -> Graph:
    """The graph the tasks share, with every label that one of them shows."""
    labels = torch.stack([task.graph.labels for task in tasks]).amax(0)
    return replace(tasks[0].graph, labels=labels)


def loss_weights(
    tasks: Sequence[Task], graph: Graph, train: Bool[Tensor, "runs nodes"]
) -> Float[Tensor, "runs nodes"]:
    """What each run learns from the nodes."""
    return train * torch.stack([task.weights_of(graph.labels) for task in tasks])


def split_masks(tasks: Sequence[Task], part: str) -> Bool[Tensor, "runs nodes"]:
    """Which nodes are in the train or valid part of each run."""
    found = torch.zeros(len(tasks), tasks[0].graph.num_nodes, dtype=torch.bool)
    for run, task in enumerate(tasks):
        ids: Ids = getattr(task, part)
        found[run, ids] = True
    return found


# Roles: what nodes count for, where runs on several splits learn from one batch.


@dataclass(frozen=True, eq=False)
class SplitMasks:
    """Which nodes the runs of a stack learn from, and which they are graded on.

    Runs that share a split share a row.
    """

    train: Ids
    """The nodes that one run or more learns from."""
    valid: Ids
    """The nodes that one run or more is graded on."""
    loss_weight: Float[Tensor, "splits nodes"]
    eval_weight: Float[Tensor, "splits valid"]
    split_of_run: Int[Tensor, " runs"]
    """The row of each run."""

    @classmethod
    def of(
        cls, tasks: Sequence[Task], graph: Graph, device: torch.device
    ) -> SplitMasks:
        """The roles that tasks give to the nodes of the graph they share."""
        rows: dict[bytes, int] = {}
        split = [
            rows.setdefault(task.train.numpy().tobytes(), len(rows)) for task in tasks
        ]
        distinct = [tasks[split.index(row)] for row in rows.values()]
        train, valid = split_masks(distinct, "train"), split_masks(distinct, "valid")
        graded = _union(valid, [task.valid for task in distinct])
        return cls(
            train=_union(train, [task.train for task in distinct]),
            valid=graded,
            loss_weight=loss_weights(distinct, graph, train).to(device),
            eval_weight=valid[:, graded].float().to(device),
            split_of_run=torch.tensor(split, device=device),
        )

    def weight(
        self, ids: Ids, weight: Float[Tensor, " nodes"]
    ) -> Float[Tensor, "runs nodes"]:
        """What some nodes count for in the loss of each run, by what they do at all."""
        return (weight * self.loss_weight[:, ids])[self.split_of_run]


def _union(inside: Bool[Tensor, "splits nodes"], ids: list[Ids]) -> Ids:
    """The nodes of all splits; those of a single one in their own order."""
    return ids[0] if len(ids) == 1 else inside.any(0).nonzero()[:, 0]
