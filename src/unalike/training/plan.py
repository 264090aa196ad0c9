"""Plan: which rows a stack of runs learns from, and which it is graded on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unalike.adjacency import Ids
from unalike.graph import Graph
from unalike.task import Task
from unalike.training.network import Network


@dataclass(frozen=True, eq=False)
class Plan:
    """The rows that are needed: leading ones to learn from, trailing ones to grade."""

    rows: Graph
    learn: Graph
    learn_weight: Float[Tensor, "runs learn"]
    grade: Graph
    grade_weight: Float[Tensor, "runs grade"]

    @classmethod
    def of(
        cls,
        network: Network,
        tasks: Sequence[Task],
        graph: Graph,
        *,
        every_row: bool = False,
    ) -> Plan:
        """The rows that a network needs for these tasks, or all to be scored."""
        if network.row_wise:
            mixes = network.mixes_rows
            return cls.of_rows(tasks, graph, mixes=mixes, every_row=every_row)
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
        train, valid = _members(tasks, "train"), _members(tasks, "valid")
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
            learn_weight=_weights(tasks, graph, train)[:, learn.ids],
            grade=grade,
            grade_weight=valid[:, grade.ids].float(),
        )

    @classmethod
    def of_whole(cls, tasks: Sequence[Task], graph: Graph) -> Plan:
        """The whole graph for every purpose."""
        train, valid = _members(tasks, "train"), _members(tasks, "valid")
        weights = _weights(tasks, graph, train)
        return cls(graph, graph, weights, graph, valid.float())

    def to(self, device: torch.device) -> Plan:
        """The same plan on another device; learn and grade remain views of rows."""
        rows = self.rows.to(device)
        return Plan(
            rows=rows,
            learn=rows.leading(self.learn.num_nodes),
            learn_weight=self.learn_weight.to(device),
            grade=rows.trailing(self.grade.num_nodes),
            grade_weight=self.grade_weight.to(device),
        )


def show_labels(tasks: Sequence[Task]) -> Graph:
    """The graph the tasks share, with every label that one of them shows."""
    labels = torch.stack([task.graph.labels for task in tasks]).amax(0)
    return replace(tasks[0].graph, labels=labels)


def _weights(
    tasks: Sequence[Task], graph: Graph, train: Bool[Tensor, "runs nodes"]
) -> Float[Tensor, "runs nodes"]:
    return train * torch.stack([task.weights_of(graph.labels) for task in tasks])


def _members(tasks: Sequence[Task], part: str) -> Bool[Tensor, "runs nodes"]:
    members = torch.zeros(len(tasks), tasks[0].graph.num_nodes, dtype=torch.bool)
    for run, task in enumerate(tasks):
        ids: Ids = getattr(task, part)
        members[run, ids] = True
    return members
