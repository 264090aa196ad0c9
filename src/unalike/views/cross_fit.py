"""Cross-fitted log probabilities of base methods, as views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.task import Task
from unalike.views.blocks import COARSE, Block
from unalike.views.folds import Folds, Hidden
from unalike.views.rows import NodeRows

LogProbabilities = Float[Tensor, "nodes classes"]


@dataclass(frozen=True, eq=False)
class Fit:
    """A task whose train labels are known outside some coarse folds alone."""

    task: Task
    folds: Folds
    hidden: Hidden


Weights = Mapping[str, Tensor]
Models = Mapping[str, Mapping[Hidden, Weights]]
"""The weights of each view of a base, by the folds that a model has not seen."""


@dataclass(frozen=True, eq=False)
class BaseFit:
    """The log probabilities of all nodes by a model, and its weights if kept."""

    log_probabilities: LogProbabilities
    weights: Weights | None


@runtime_checkable
class Base(Protocol):
    """A kind of models whose log probabilities are views."""

    def makes(self, view: str) -> bool:
        """Whether a view is of this base."""

    def __call__(self, fits: Sequence[Fit]) -> Mapping[str, list[BaseFit]]:
        """Fit models on many tasks of a graph: for each view, one result per task."""

    def score_rows(
        self, rows: NodeRows, models: Models
    ) -> dict[str, dict[Hidden, LogProbabilities]]:
        """The log probabilities of rows by the models of this base among `models`."""


@dataclass(eq=False)
class CrossFit:
    """The log probabilities of each base, by the folds that its model has not seen."""

    folds: Folds
    by_view: dict[str, dict[Hidden, LogProbabilities]] = field(default_factory=dict)
    models: dict[str, dict[Hidden, Weights]] = field(default_factory=dict)
    """The weights of each model, where the task asks for them."""

    def blocks(self, hidden: Hidden = frozenset()) -> dict[str, Block]:
        """The views where some folds are hidden: context k by models without fold k.

        A train row reads its own context, thus a model that lacks its fold.
        """
        contexts = self.folds.contexts(hidden)
        return {
            f"bases:{name}": Block(
                torch.stack([models[context] for context in contexts], 1),
                fine_per_context=COARSE,
            )
            for name, models in self.by_view.items()
        }


def cross_fit(
    bases: Sequence[Base],
    tasks: Sequence[Task],
    results: Sequence[CrossFit],
    num_hidden: int,
) -> None:
    """Fit every base without each set of `num_hidden` folds, for all tasks at once.

    With 0 folds all train labels are known: such a model is a head of its own.
    """
    fits, owners = [], []
    for task, result in zip(tasks, results, strict=True):
        for chosen in combinations(range(result.folds.count), num_hidden):
            fits.append(Fit(task, result.folds, frozenset(chosen)))
            owners.append(result)
    for base in bases:
        for name, results_of_view in base(fits).items():
            for fit, owner, own in zip(fits, owners, results_of_view, strict=True):
                owner.by_view.setdefault(name, {})[fit.hidden] = own.log_probabilities
                if own.weights is not None:
                    owner.models.setdefault(name, {})[fit.hidden] = own.weights
