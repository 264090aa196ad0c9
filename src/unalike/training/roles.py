"""Roles: what nodes count for, where runs on several splits learn from one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unalike.adjacency import Ids
from unalike.graph import Graph
from unalike.task import Task
from unalike.training.plan import members, train_weights


@dataclass(frozen=True, eq=False)
class Roles:
    """Which nodes the runs of a stack learn from, and which they are graded on.

    Runs that share a split share a row.
    """

    train: Ids
    """The nodes that one run or more learns from."""
    valid: Ids
    """The nodes that one run or more is graded on."""
    learn: Float[Tensor, "splits nodes"]
    grade: Float[Tensor, "splits valid"]
    split: Int[Tensor, " runs"]
    """The row of each run."""

    @classmethod
    def of(cls, tasks: Sequence[Task], graph: Graph, device: torch.device) -> Roles:
        """The roles that tasks give to the nodes of the graph they share."""
        rows: dict[bytes, int] = {}
        split = [
            rows.setdefault(task.train.numpy().tobytes(), len(rows)) for task in tasks
        ]
        distinct = [tasks[split.index(row)] for row in rows.values()]
        train, valid = members(distinct, "train"), members(distinct, "valid")
        graded = _together(valid, [task.valid for task in distinct])
        return cls(
            train=_together(train, [task.train for task in distinct]),
            valid=graded,
            learn=train_weights(distinct, graph, train).to(device),
            grade=valid[:, graded].float().to(device),
            split=torch.tensor(split, device=device),
        )

    def weight(
        self, ids: Ids, weight: Float[Tensor, " nodes"]
    ) -> Float[Tensor, "runs nodes"]:
        """What some nodes count for in the loss of each run, by what they do at all."""
        return (weight * self.learn[:, ids])[self.split]


def _together(inside: Bool[Tensor, "splits nodes"], ids: list[Ids]) -> Ids:
    """The nodes of all splits; those of a single one in their own order."""
    return ids[0] if len(ids) == 1 else inside.any(0).nonzero()[:, 0]
