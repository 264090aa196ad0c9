"""Labels as inputs: histograms of train labels near each node as feature columns."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features
from unalike.data.task import Task, one_hot_labels
from unalike.errors import UserError
from unalike.methods import name_of
from unalike.methods.base import Method, TrainedMethod
from unalike.views.blocks import histogram_columns
from unalike.views.folds import Folds, hide_each_fold, own_context
from unalike.views.walks import Walks

FOLDS, HOPS = 5, 2
"""Coarse folds and steps of walks, as the views have them by default."""


def add_label_inputs(task: Task, method: Method) -> Task:
    """The task with histograms of train labels up to two steps away as features.

    For a row-wise method, a row of fold f counts the labels of all other folds, so that
    no row depends on its own label. Message passing reads the rows of neighbours, which
    count the label of a node in another fold. There the labels of every second fold
    are counted, and the train nodes of the other folds are learned: no row of the graph
    depends on a label that is learned.
    """
    if not isinstance(method, TrainedMethod):
        raise UserError(
            f"--label-inputs adds features to a network, and {name_of(method)} trains "
            "none; leave it out."
        )
    folds = Folds.draw(task.graph.num_nodes, FOLDS, task.seed)
    if method.row_wise and not method.needs_full_graph:
        labels = one_hot_labels(task, task.train)
        contexts = hide_each_fold(labels, folds.fine, folds.num_fine)
        columns = label_histograms(task, contexts, folds)
        return with_features(task, columns)
    counted = folds.fine[task.train] % 2 == 0
    labels = one_hot_labels(task, task.train[counted])[:, None]
    columns = label_histograms(task, labels, folds)
    return with_features(replace(task, train=task.train[~counted]), columns)


def label_histograms(
    task: Task, labels: Float[Tensor, "nodes contexts classes"], folds: Folds
) -> Float[Tensor, "nodes columns"]:
    """Log counts, shares and totals of labels along each walk over edges."""
    walks = Walks.of(task.graph, HOPS)
    context = folds.fine % labels.shape[1]
    return torch.cat(
        [
            histogram_columns(
                own_context(total.unflatten(1, labels.shape[1:]), context)
            )
            for _, total in walks.sums(labels.flatten(1), walks.along_edges)
        ],
        1,
    )


def with_features(task: Task, columns: Float[Tensor, "nodes columns"]) -> Task:
    """The task with more feature columns to the right of those of its graph."""
    features = append_columns(task.graph.features, columns)
    return replace(task, graph=replace(task.graph, features=features))


def append_columns(
    features: Features, columns: Float[Tensor, "nodes columns"]
) -> Float[Tensor, "nodes more"] | Adjacency:
    """Features with dense columns to their right; sparse features stay sparse."""
    if not isinstance(features, Adjacency):
        return torch.cat([features.float(), columns], 1)
    rows, cols = columns.nonzero().T
    shape = (len(columns), columns.shape[1])
    dense = Adjacency.from_edges(rows, cols, shape=shape, values=columns[rows, cols])
    return features.hstack(dense)
