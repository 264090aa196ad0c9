"""Cross-fitted log probabilities of base methods, as views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.task import Solution, Task
from unalike.views.blocks import COARSE, Block
from unalike.views.folds import Folds, Hidden

PATIENCE = 10
"""Epochs without a better score of the held-out train nodes before a base stops."""

LogProbabilities = Float[Tensor, "nodes classes"]


@dataclass(frozen=True, eq=False)
class Fit:
    """A task whose train labels are known outside some coarse folds alone."""

    task: Task
    folds: Folds
    hidden: Hidden


Base = Callable[[Sequence[Fit]], Mapping[str, list[LogProbabilities]]]
"""Fits models on many tasks of a graph: for each of its views, one result per task."""


def base_of_method(name: str, solve: Callable[[list[Task]], list[Solution]]) -> Base:
    """A method as a base, trained in stacks.

    Early stopping is by train nodes that are held out for it, so that labels of valid
    nodes change no model.
    """

    def fit(fits: Sequence[Fit]) -> dict[str, list[LogProbabilities]]:
        tasks = []
        for each in fits:
            train, stop = each.folds.without(each.task.train, each.hidden)
            task = replace(each.task, train=train, valid=stop, patience=PATIENCE)
            tasks.append(replace(task, keep=False))
        return {name: [solution.logits.log_softmax(1) for solution in solve(tasks)]}

    return fit


@dataclass(eq=False)
class CrossFit:
    """The log probabilities of each base, by the folds that its model has not seen."""

    folds: Folds
    by_view: dict[str, dict[Hidden, LogProbabilities]] = field(default_factory=dict)

    def blocks(self, hidden: Hidden = frozenset()) -> dict[str, Block]:
        """The views where some folds are hidden: context k by models without fold k.

        A train row reads its own context, thus a model that lacks its fold. Rows of a
        hidden fold read the context of the next one.
        """
        contexts = [
            hidden | {self.folds.stand_in(fold, hidden)}
            for fold in range(self.folds.count)
        ]
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
    """Fit every base without each set of `num_hidden` folds, for all tasks at once."""
    fits, owners = [], []
    for task, result in zip(tasks, results, strict=True):
        for chosen in combinations(range(result.folds.count), num_hidden):
            fits.append(Fit(task, result.folds, frozenset(chosen)))
            owners.append(result)
    for base in bases:
        for name, scores in base(fits).items():
            for fit, owner, own in zip(fits, owners, scores, strict=True):
                owner.by_view.setdefault(name, {})[fit.hidden] = own
