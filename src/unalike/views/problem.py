"""A task with its views: heads on known labels, and rounds with guessed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Ids
from unalike.data.task import Task
from unalike.views import BASES, GUESSES
from unalike.views.blocks import CHUNK, Block
from unalike.views.cross_fit import CrossFit
from unalike.views.fitted import (
    FittedViews,
    Guess,
    column_blocks,
    guess_blocks,
    score_table,
)
from unalike.views.folds import Folds, Hidden
from unalike.views.heads import (
    BaseScores,
    ColumnScores,
    Examples,
    Scorer,
    Scores,
    TreeSettings,
    fit_trees,
)
from unalike.views.table import SharedViews, ViewTable

MAX_SEARCH_ROWS = 10_000
"""Train rows by which groups of views are compared."""

FitHead = Callable[[Examples], Scorer]


@dataclass(frozen=True, eq=False)
class HeadFit:
    """Fitted heads, and the mean of their scores of all nodes."""

    scorers: tuple[Scorer, ...]
    scores: Scores
    columns: Mapping[str, Scores] = field(default_factory=dict)
    """The scores of those among them that are columns of a row, by view."""

    @classmethod
    def of_columns(cls, head: ColumnScores, scores: Scores) -> HeadFit:
        """A head whose scores are columns of a row."""
        return cls((head,), scores, {head.view: scores})

    @classmethod
    def mean(cls, fits: Sequence[HeadFit]) -> HeadFit:
        return cls(
            tuple(scorer for fit in fits for scorer in fit.scorers),
            sum((fit.scores for fit in fits), torch.zeros(())) / len(fits),
            {view: own for fit in fits for view, own in fit.columns.items()},
        )


@dataclass(eq=False)
class Problem:
    """A task with its views, on which heads are fitted."""

    shared: SharedViews
    task: Task
    table: ViewTable
    bases: CrossFit
    guesses: dict[tuple[Hidden, int], Guess] = field(default_factory=dict)
    """The guesses of rounds so far, by hidden folds and round."""

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

    def quick_score(self, groups: Sequence[str]) -> float:
        """How well quickly fitted trees on some groups of views score unseen nodes.

        The mean of the scores of valid nodes and of train nodes, each fold of which is
        scored by trees that were fitted on the rows of the other folds. Where rows are
        many, valid nodes are enough.
        """
        table, task = self.table.select(groups), self.task
        generator = torch.Generator().manual_seed(task.seed)
        train, valid = (
            ids[torch.randperm(len(ids), generator=generator)[:MAX_SEARCH_ROWS]]
            for ids in (task.train, task.valid)
        )
        if len(task.train) > MAX_SEARCH_ROWS:
            examples = examples_of(table, task, train, valid)
            scores = fit_trees(examples, TreeSettings.quick())(examples.x_stop)
            return score_of(task, valid, scores)
        fold = self.folds.coarse[train]
        unseen = torch.zeros(len(train), task.graph.num_classes)
        on_valid = torch.zeros(len(valid), task.graph.num_classes)
        for number in fold.unique().tolist():
            own = fold == number
            examples = examples_of(table, task, train[~own], valid)
            trees = fit_trees(examples, TreeSettings.quick())
            unseen[own] = trees(table.rows(train[own]))
            on_valid += trees(examples.x_stop)
        return (score_of(task, train, unseen) + score_of(task, valid, on_valid)) / 2

    def fit(self, head: FitHead) -> HeadFit:
        """A head that learns the train rows, and its scores of all nodes."""
        table, task = self.table, self.task
        scorer = head(examples_of(table, task, task.train, task.valid))
        train = torch.isin(torch.arange(task.graph.num_nodes), task.train)
        return HeadFit((scorer,), score_table(scorer, table, train, task))

    def fitted(self, fit: HeadFit, table: ViewTable, number: int) -> FittedViews:
        """The model of heads that were fitted on the table of round `number`."""
        task, used = self.task, BASES in table.groups
        heads = {head.name for head in fit.scorers if isinstance(head, BaseScores)}
        table = table.with_blocks(column_blocks(fit.columns))

        def is_needed(view: str, hidden: Hidden) -> bool:
            return used and len(hidden) <= number if hidden else view in heads

        return FittedViews(
            task=task,
            near=self.shared.near,
            groups=self.shared.groups,
            rounds=number,
            folds=self.folds,
            heads=fit.scorers,
            widths=table.widths,
            mean=table.rows(task.train).mean(0),
            scores=fit.scores,
            models={
                view: {h: w for h, w in models.items() if is_needed(view, h)}
                for view, models in self.bases.models.items()
            },
            guesses={
                hidden: guess
                for (hidden, own), guess in self.guesses.items()
                if own == number - len(hidden)
            },
        )

    def add_guesses(self, number: int) -> None:
        """Add the views of round `number`: probabilities where labels are unknown.

        For each fold, a head that has seen none of its labels scores all nodes. Rows of
        the fold read views made from these probabilities.
        """
        groups = [group for group in self.table.groups if group != GUESSES]
        table = self.table.select(groups)
        self.table = table.with_blocks(self._guess_views(frozenset(), number))

    def _guess_views(self, hidden: Hidden, number: int) -> dict[str, Block]:
        """The views of guesses of a round where some folds are hidden."""

        def scores(unseen: Hidden) -> tuple[Scores, Scores]:
            guess = self._guess(unseen, number - 1)
            return guess, guess

        return guess_blocks(self.shared.near, self.task, self.folds, hidden, scores)

    def _guess(self, hidden: Hidden, number: int) -> Scores:
        """The scores of round `number` by trees without the labels of some folds.

        Their number is chosen by other train nodes that are held out for it: a number
        found with all train labels would depend on the labels of the hidden folds.
        """
        if (hidden, number) in self.guesses:
            return self.guesses[hidden, number].scores
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
        scores = torch.cat([scorer(table.rows(ids)) for ids in chunks])
        self.guesses[hidden, number] = Guess(scorer, scores, table.widths)
        return scores


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


def mean_valid(problems: Sequence[Problem], fits: Sequence[HeadFit]) -> float:
    """The mean validation score over tasks; -inf if one of them has none.

    A head with scores that are not finite is not chosen.
    """
    values = [
        score_of(problem.task, problem.task.valid, fit.scores[problem.task.valid])
        for problem, fit in zip(problems, fits, strict=True)
    ]
    mean = sum(values) / len(values)
    return -inf if isnan(mean) else mean
