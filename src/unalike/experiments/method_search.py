"""Search the hyperparameters of any method on a graph, with Optuna and a database."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unalike.datasets import find
from unalike.datasets.registry import IN_MEMORY
from unalike.display import Displayable, TextTable
from unalike.errors import UserError, check_at_least_one
from unalike.experiments.config import (
    DatasetOptions,
    build_method,
    no_features_error,
)
from unalike.experiments.database import ResultsDatabase, result_from_row
from unalike.experiments.optuna_study import distribution, load_optuna, study_of
from unalike.experiments.plan import SweepRequest
from unalike.experiments.recipe import Recipe, RecipeCell
from unalike.experiments.recipe_search import CellObjective, cell_objectives
from unalike.experiments.result import Runs, command_line
from unalike.experiments.selection import ConfigRuns
from unalike.experiments.sweep import WorkerOptions
from unalike.methods import (
    METHODS,
    check_predicts_numbers,
    check_uses_edge_weights,
    name_of,
)
from unalike.methods.base import Method
from unalike.options import choices, options_of
from unalike.progress import NO_PROGRESS, Progress

SEARCHED: dict[str, Any] = {
    "lr": {"low": 1e-3, "high": 0.1, "log": True},
    "weight_decay": {"low": 1e-5, "high": 0.1, "log": True},
    "hidden": [16, 256],
    "layers": [1, 4],
    "edge_layers": [1, 2],
    "feature_layers": [1, 2],
    "heads": [1, 8],
    "hops": [1, 3],
    "dropout": {"low": 0.0, "high": 0.8},
    "inner_dropout": {"low": 0.0, "high": 0.8},
    "alpha": {"low": 0.05, "high": 0.95},
    "theta": {"low": 0.5, "high": 1.5},
    "inner_activation": [False, True],
    "batch_norm": [False, True],
}
"""Ranges of the options that are searched, whatever the method; lists of two numbers
are ranges of integers."""
TRIALS_SHOWN = 10
MIN_TRIALS_OF_IMPORTANCE = 5
"""With fewer trials the importance of options says nothing."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long a search goes on: trials in all, stored ones included, and minutes."""

    trials: int = 50
    minutes: float | None = None

    def __post_init__(self) -> None:
        check_at_least_one("--trials", self.trials)
        if self.minutes is not None and not self.minutes > 0:
            raise UserError(f"--minutes is {self.minutes:g}; it must be above 0.")


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchResult(Displayable):
    """The trials of a search, the best by validation score first."""

    dataset: str
    method: str
    metric: str
    searched: list[str]
    trials: list[tuple[dict[str, Any], Runs]]
    importance: dict[str, float]
    """The share of each option in the variance of the validation score."""
    command: str
    """The command that trains the best configuration; empty for a graph in memory."""

    @property
    def best(self) -> Method:
        """The method with the options of the best trial, for `run`."""
        return build_method(self.method, self.trials[0][1][0].options)

    def summary(self) -> TextTable:
        """The best trials: the searched options and the scores."""
        rows = [
            [
                *(shown(params[name]) for name in self.searched),
                f"{runs.valid_mean:.2f}",
                runs.format_score(),
            ]
            for params, runs in self.trials[:TRIALS_SHOWN]
        ]
        names = (name.replace("_", " ") for name in self.searched)
        headings = [*names, "valid", "test"]
        return TextTable.from_rows(
            repr(self), headings, rows, right=headings, note=self.command
        )

    def __repr__(self) -> str:
        score = f"{self.metric} {self.trials[0][1].format_score()}"
        count = f"the best of {len(self.trials)} trials"
        return f"SearchResult({self.method} on {self.dataset}: {score}, {count})"


def shown(value: Any) -> str:
    """The value of an option in three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def search_space(method: Method) -> dict[str, Any]:
    """The options of a method that are searched: those that have their defaults.

    An option with another value was set by the user and stays. Options of the sampler
    are not searched.
    """
    options, defaults = options_of(method), options_of(type(method)())
    inside = {
        name
        for field in choices(type(method))
        for name in options_of(getattr(method, field), omit=False)
    }
    return {
        name: values
        for name, values in SEARCHED.items()
        if name in options and options[name] == defaults[name] and name not in inside
    }


def search_method(
    graph: str,
    method: Method,
    results: ResultsDatabase,
    *,
    view: DatasetOptions | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    workers: WorkerOptions | None = None,
    data: Path | None = None,
    progress: Progress = NO_PROGRESS,
    shown: str | None = None,
) -> SearchResult:
    """Search the options of a method on all splits of a graph.

    Every trial is stored in the database, so that a stopped search goes on where it
    was, and a larger budget continues it. `shown` is the graph in the command.
    """
    load_optuna()
    budget, workers = budget or Budget(), workers or WorkerOptions()
    recipe = search_recipe(graph, method, view or DatasetOptions())
    source = find(graph, data)
    known = source.load()
    check_uses_edge_weights(method, known)
    check_predicts_numbers(method, known)
    if method.needs_features and not known.num_features:
        raise no_features_error(method, source)
    request = SweepRequest(recipes=[recipe], seed=seed, data=data)
    objectives, missing = cell_objectives(request, results, workers, retry=True)
    for reason in missing.values():
        raise UserError(reason)
    (objective,) = objectives
    deadline = budget.minutes and time.monotonic() + 60 * budget.minutes
    objective.search(budget.trials, progress, deadline)
    return to_result(objective, shown or graph)


def search_recipe(graph: str, method: Method, view: DatasetOptions) -> Recipe:
    """A recipe of one cell with the search space of a method on a graph."""
    name, space = name_of(method), search_space(method)
    if METHODS.get(name) is not type(method):
        raise UserError(f"{name} is not in the table of methods: register it first.")
    if not space:
        raise UserError(f"{name} has no option to search.")
    cell = RecipeCell(dataset=graph, view=view)
    fixed = {key: one for key, one in options_of(method).items() if key not in space}
    return Recipe(
        name=f"tune {name}",
        row=name,
        method=name,
        grids=[{**fixed, **space}],
        cells={graph: cell},
    )


def to_result(objective: CellObjective, graph: str) -> SearchResult:
    """The stored trials of a search, their importance and the best command."""
    stored = objective.previous_trials()
    if not stored:
        raise UserError(f"No trial has finished{last_failure(objective)}.")
    stored.sort(key=lambda trial: (-trial[0].valid, trial[0].setting))
    trials = [(params, Runs(map(result_from_row, one.runs))) for one, params in stored]
    first = trials[0][1][0]
    splits = ",".join(str(result.split) for result in trials[0][1])
    repeatable = first.dataset != IN_MEMORY
    return SearchResult(
        dataset=objective.dataset.name,
        method=str(objective.recipe.method),
        metric=first.metric,
        searched=list(objective.space.searched),
        trials=trials,
        importance=importance(objective, stored),
        command=command_line(first, splits=splits, dataset=graph) if repeatable else "",
    )


def last_failure(objective: CellObjective) -> str:
    """The last line of the newest error of a search, behind a colon."""
    failures = objective.results.failures(
        dataset=objective.dataset.name, method=str(objective.recipe.method)
    )
    newest = max(failures, key=lambda row: row["failed"], default=None)
    return f": {newest['error'].splitlines()[-1].removesuffix('.')}" if newest else ""


def importance(
    objective: CellObjective, trials: list[tuple[ConfigRuns, dict[str, Any]]]
) -> dict[str, float]:
    """The importance of each option by Optuna's fANOVA, the largest first.

    Empty with few trials, or if all have the same score.
    """
    scores = {one.valid for one, _ in trials}
    if len(trials) < MIN_TRIALS_OF_IMPORTANCE or len(scores) < 2:
        return {}
    optuna = load_optuna()
    searched = objective.space.searched.items()
    space = {name: distribution(values) for name, values in searched}
    study = study_of(space, [(params, one.valid) for one, params in trials])
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(value) for name, value in found.items()}
