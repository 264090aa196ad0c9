"""Linear heads: logistic regressions on features, fitted on all train labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unalike.data.graph import Graph
from unalike.data.task import Task
from unalike.views.cross_fit import BaseFit, LogProbabilities, Weights
from unalike.views.heads import ColumnScores
from unalike.views.logistic import BIAS, WEIGHT, fit_rows, head_rows
from unalike.views.rows import NodeRows

RIDGES = (1e-3, 1e-2, 0.1, 1.0)
"""Penalties that are tried on each kind of rows."""


class LinearScores(ColumnScores):
    """A fitted linear head."""

    group = "linear"

    @classmethod
    def from_tensors(
        cls, tensors: Weights, name: str, num_classes: int
    ) -> LinearScores:
        """The head of a file, after checking the shapes of its tensors."""
        weight, bias = tensors[WEIGHT], tensors[BIAS]
        if bias.shape != (num_classes,) or weight.shape[1:] != (num_classes,):
            raise ValueError("a linear head has a wrong number of classes")
        return cls(name, {WEIGHT: weight, BIAS: bias})


def fit_linear_heads(
    graph: Graph, tasks: Sequence[Task]
) -> dict[str, dict[float, list[BaseFit]]]:
    """Regressions on all train labels of each task, by kind of rows and penalty."""
    train = [task.train for task in tasks]
    return {
        kind: {ridge: fit_rows(rows, tasks, train, ridge) for ridge in RIDGES}
        for kind, rows in head_rows(graph).items()
    }


def score_linear_heads(
    graph: Graph, rows: NodeRows, heads: Mapping[str, Weights]
) -> dict[str, LogProbabilities]:
    """The log probabilities of other rows over the graph, by kind of rows."""
    if not heads:
        return {}
    own = head_rows(graph, rows)
    if not set(heads) <= set(own):
        raise ValueError("its linear heads have unknown names")
    scores = {}
    for kind, model in heads.items():
        if len(model[WEIGHT]) != own[kind].num_cols:
            raise ValueError("a linear head has a wrong number of columns")
        scores[kind] = (own[kind] @ model[WEIGHT] + model[BIAS]).log_softmax(1)
    return scores
