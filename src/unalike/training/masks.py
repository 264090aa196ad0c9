"""Train and validation rows, masks and loss weights of each run of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.data.task import Task
from unalike.training.stack import Stack


@dataclass(frozen=True, eq=False)
class RowPlan:
    """The rows that an epoch needs: train rows first, validation rows last."""

    rows: Graph
    loss_weight: Float[Tensor, "runs train"]
    eval_weight: Float[Tensor, "runs valid"]

    @cached_property
    def train_rows(self) -> Graph:
        """The head of `rows`."""
        return self.rows.head(self.loss_weight.shape[1])

    @cached_property
    def eval_rows(self) -> Graph:
        """The tail of `rows`; both share the rows that are in both."""
        return self.rows.tail(self.eval_weight.shape[1])

    @classmethod
    def of(
        cls,
        stack: Stack,
        tasks: Sequence[Task],
        graph: Graph,
        *,
        every_row: bool = False,
        train_on_all: bool = False,
    ) -> RowPlan:
        """The rows that a stack needs for these tasks; optionally evaluate all rows.

        A module with batch statistics is trained on all rows, and so is one whose loss
        reads the logits of other than train nodes (`train_on_all`).
        """
        train, valid = split_masks(tasks, "train"), split_masks(tasks, "valid")
        weights = loss_weights(tasks, graph, train)
        if not stack.row_wise:
            return cls(graph, weights, valid.float())
        all_train = train_on_all or uses_batch_statistics(stack.module)
        in_train = torch.ones_like(train[0]) if all_train else train.any(0)
        in_eval = torch.ones_like(valid[0]) if every_row else valid.any(0)
        parts = (in_train & ~in_eval, in_train & in_eval, ~in_train & in_eval)
        order = torch.cat([part.nonzero()[:, 0] for part in parts])
        loss_weight = weights[:, order[: in_train.sum()]]
        eval_weight = valid[:, order[len(order) - in_eval.sum() :]].float()
        return cls(graph.select_rows(order), loss_weight, eval_weight)

    def to(self, device: torch.device) -> RowPlan:
        """The same plan on another device."""
        weights = (self.loss_weight.to(device), self.eval_weight.to(device))
        return RowPlan(self.rows.to(device), *weights)


def uses_batch_statistics(module: nn.Module) -> bool:
    """Do the logits of a row depend on the other rows of its batch in training?"""
    return any(isinstance(part, nn.BatchNorm1d) for part in module.modules())


def merged_labels(tasks: Sequence[Task]) -> Graph:
    """The graph of the tasks with all labels that any of them has."""
    labels = torch.stack([task.graph.labels for task in tasks]).amax(0)
    return replace(tasks[0].graph, labels=labels)


def loss_weights(
    tasks: Sequence[Task], graph: Graph, train: Bool[Tensor, "runs nodes"]
) -> Float[Tensor, "runs nodes"]:
    """The weight of each node in the loss of each run."""
    return train * torch.stack([task.weights_of(graph.labels) for task in tasks])


def split_masks(tasks: Sequence[Task], part: str) -> Bool[Tensor, "runs nodes"]:
    """The mask of the train or valid nodes of each run."""
    masks = torch.zeros(len(tasks), tasks[0].graph.num_nodes, dtype=torch.bool)
    for mask, task in zip(masks, tasks, strict=True):
        mask[getattr(task, part)] = True
    return masks


@dataclass(frozen=True, eq=False)
class SplitMasks:
    """Train and validation nodes of runs that share mini-batches.

    Runs with the same nodes and class weights share a row of the weights.
    """

    train: Ids
    """The train nodes of all runs."""
    valid: Ids
    """The validation nodes of all runs."""
    loss_weight: Float[Tensor, "splits nodes"]
    eval_weight: Float[Tensor, "splits valid"]
    split_of_run: Int[Tensor, " runs"]

    @classmethod
    def of(
        cls, tasks: Sequence[Task], graph: Graph, device: torch.device
    ) -> SplitMasks:
        """The masks of tasks on one graph."""
        rows: dict[tuple[bytes, ...], int] = {}
        split = [rows.setdefault(_split_key(task), len(rows)) for task in tasks]
        distinct = [tasks[split.index(row)] for row in rows.values()]
        train, valid = split_masks(distinct, "train"), split_masks(distinct, "valid")
        valid_ids = _union(valid, [task.valid for task in distinct])
        return cls(
            train=_union(train, [task.train for task in distinct]),
            valid=valid_ids,
            loss_weight=loss_weights(distinct, graph, train).to(device),
            eval_weight=valid[:, valid_ids].float().to(device),
            split_of_run=torch.tensor(split, device=device),
        )

    def weight(
        self, ids: Ids, weight: Float[Tensor, " nodes"]
    ) -> Float[Tensor, "runs nodes"]:
        """The weights of the nodes of a batch in the loss of each run."""
        return (weight * self.loss_weight[:, ids])[self.split_of_run]


def _split_key(task: Task) -> tuple[bytes, ...]:
    tensors = (task.train, task.valid, task.class_weights)
    return tuple(b"" if t is None else t.numpy().tobytes() for t in tensors)


def _union(masks: Bool[Tensor, "splits nodes"], ids: list[Ids]) -> Ids:
    """The nodes of all splits; those of a single split in their own order."""
    return ids[0] if len(ids) == 1 else masks.any(0).nonzero()[:, 0]
