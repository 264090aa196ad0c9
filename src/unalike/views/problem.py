"""A task with its views: heads on known labels, and rounds with guessed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Ids
from unalike.data.task import Task
from unalike.views import BASES, GUESSES
from unalike.views.blocks import Block
from unalike.views.cross_fit import CrossFit
from unalike.views.folds import Folds, Hidden, one_hot
from unalike.views.heads import (
    MANY_ROWS,
    Examples,
    Scorer,
    TreeSettings,
    fit_trees,
)
from unalike.views.label_views import guess_views
from unalike.views.table import SharedViews, ViewTable

CHUNK = 65_536
"""Rows that are made and scored at once."""
MAX_SEARCH_ROWS = 10_000
"""Train rows by which groups of views are compared."""
MANY_CONTEXTS = 3
"""Contexts in which unseen rows are scored where there are many."""

Scores = Float[Tensor, "nodes classes"]
FitHead = Callable[[Examples], Scorer]


@dataclass(eq=False)
class Problem:
    """A task with its views, on which heads are fitted."""

    shared: SharedViews
    task: Task
    table: ViewTable
    bases: CrossFit

    @classmethod
    def of(cls, shared: SharedViews, task: Task, bases: CrossFit) -> Problem:
        """The views of the first round."""
        table = ViewTable.of(shared, task, bases.folds)
        return cls(shared, task, table.with_blocks(bases.blocks()), bases)

    @property
    def folds(self) -> Folds:
        return self.bases.folds

    def keep(self, groups: Sequence[str]) -> None:
        """Drop the views of all other groups."""
        self.table = self.table.select(groups)
        self.shared = self.shared.select(groups)

    def quick_valid(self, groups: Sequence[str]) -> float:
        """The validation score of quickly fitted trees on some groups of views."""
        table, task = self.table.select(groups), self.task
        generator = torch.Generator().manual_seed(task.seed)
        train, valid = (
            ids[torch.randperm(len(ids), generator=generator)[:MAX_SEARCH_ROWS]]
            for ids in (task.train, task.valid)
        )
        examples = examples_of(table, task, train, valid)
        scores = fit_trees(examples, TreeSettings.quick())(examples.x_stop)
        return score_of(task, valid, scores)

    def fit(self, head: FitHead) -> Scores:
        """The scores of all nodes by a head that learns the train rows.

        Train rows are read in their own context. Other rows are scored in several
        contexts and the log probabilities averaged.
        """
        table, task = self.table, self.task
        scorer = head(examples_of(table, task, task.train, task.valid))
        known = torch.zeros(task.graph.num_nodes, dtype=torch.bool)
        known[task.train] = True
        scores = torch.zeros(task.graph.num_nodes, task.graph.num_classes)
        contexts = self.contexts_of_unseen_rows()
        for ids in (~known).nonzero()[:, 0].split(CHUNK):
            for context in contexts:
                scores[ids] += scorer(table.rows(ids, context)) / len(contexts)
        for ids in task.train.split(CHUNK):
            scores[ids] = scorer(table.rows(ids))
        return scores

    def contexts_of_unseen_rows(self) -> list[int]:
        """One fine fold of each coarse fold, or of a few where rows are many."""
        many = len(self.task.train) > MANY_ROWS
        count = MANY_CONTEXTS if many else self.folds.count
        return [2 * fold for fold in range(count)]

    def add_guesses(self, number: int) -> None:
        """Add the views of round `number`: probabilities where labels are unknown.

        For each fold, a head that has seen none of its labels scores all nodes. Rows of
        the fold read views made from these probabilities.
        """
        groups = [group for group in self.table.groups if group != GUESSES]
        table = self.table.select(groups)
        self.table = table.with_blocks(self._guess_views(frozenset(), number))

    def _guess_views(self, hidden: Hidden, number: int) -> dict[str, Block]:
        """The views of guesses where some folds are hidden, one context per fold."""
        task, folds = self.task, self.folds
        shape = (task.graph.num_nodes, folds.count, task.graph.num_classes)
        guesses, probabilities = torch.zeros(shape), torch.zeros(shape)
        contexts = [hidden | {folds.stand_in(k, hidden)} for k in range(folds.count)]
        for context in dict.fromkeys(contexts):
            own = self._guess(context, number - 1)
            soft = own.softmax(1)
            known = folds.known(task.train, context)
            soft[known] = one_hot(task, known)[known]
            for fold in range(folds.count):
                if contexts[fold] == context:
                    guesses[:, fold], probabilities[:, fold] = own, soft
        return guess_views(self.shared.near.walks, probabilities, guesses)

    def _guess(self, hidden: Hidden, number: int) -> Scores:
        """The scores of round `number` by trees without the labels of some folds.

        Their number is chosen by other train nodes that are held out for it: a number
        found with all train labels would depend on the labels of the hidden folds.
        """
        task, folds = self.task, self.folds
        table = ViewTable.without_folds(self.shared, task, folds, hidden)
        if BASES in self.shared.groups:
            table = table.with_blocks(self.bases.blocks(hidden))
        if number > 1:
            table = table.with_blocks(self._guess_views(hidden, number))
        train, stop = folds.without(task.train, hidden)
        examples = examples_of(table, task, train, stop)
        scorer = fit_trees(examples, TreeSettings.guess(len(train)))
        chunks = torch.arange(task.graph.num_nodes).split(CHUNK)
        return torch.cat([scorer(table.rows(ids)) for ids in chunks])


def examples_of(table: ViewTable, task: Task, train: Ids, stop: Ids) -> Examples:
    """The rows of train nodes in their own contexts, and rows to stop early by."""
    labels = task.graph.labels
    return Examples(
        table.rows(train),
        labels[train],
        table.rows(stop),
        labels[stop],
        table.widths,
        task.graph.num_classes,
        task.metric,
        task.seed,
    )


def score_of(task: Task, ids: Ids, scores: Float[Tensor, "ids classes"]) -> float:
    """The score of labelled nodes, given their scores alone."""
    return float(
        task.metric.score(scores, task.graph.labels[ids], torch.ones(len(ids)))
    )


def mean_valid(problems: Sequence[Problem], fits: Sequence[Scores]) -> float:
    """The mean validation score over tasks."""
    values = [
        score_of(problem.task, problem.task.valid, scores[problem.task.valid])
        for problem, scores in zip(problems, fits, strict=True)
    ]
    return sum(values) / len(values)
