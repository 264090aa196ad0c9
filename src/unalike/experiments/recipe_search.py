"""Search the space of a recipe with Optuna instead of running its whole grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean
from typing import TYPE_CHECKING, Any

from unalike.errors import UserError
from unalike.experiments.base_model_cache import BaseModelCache
from unalike.experiments.config import Config, config_from_dict
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.optuna_study import (
    Params,
    Value,
    distribution,
    load_optuna,
    run_study,
)
from unalike.experiments.plan import (
    NOTHING_FITS,
    DatasetRef,
    RunGroup,
    SweepPlan,
    SweepRequest,
    dataset_ref,
    runs_per_split,
)
from unalike.experiments.recipe import Recipe, RecipeCell, SearchSpace
from unalike.experiments.run import RunOptions
from unalike.experiments.selection import (
    ConfigRuns,
    best_by_validation,
    group_by_config,
    on_splits,
)
from unalike.experiments.sweep import WorkerOptions
from unalike.experiments.worker import Worker, check_precision
from unalike.parallel import use_threads
from unalike.progress import NO_PROGRESS, Progress

if TYPE_CHECKING:
    import optuna


SEARCHERS = ("optuna",)


def search_cells(
    request: SweepRequest,
    trials: int,
    url: str,
    *,
    retry: bool = False,
    workers: WorkerOptions | None = None,
    progress: Progress = NO_PROGRESS,
    on_missing: Callable[[dict[str, str]], None] = lambda missing: None,
) -> list[dict[str, Any]]:
    """Search every cell of a request; return the best configuration of each.

    With `retry`, configurations that failed before run again. `on_missing` gets the
    cells that cannot be run, with the reasons.
    """
    workers = workers or WorkerOptions()
    if workers.jobs > 1:
        raise UserError(
            "A search chooses each trial by the results before it: use --jobs 1."
        )
    best = []
    with ResultsDatabase.open(url) as results:
        objectives, missing = cell_objectives(request, results, workers, retry=retry)
        on_missing(missing)
        for objective in objectives:
            objective.search(trials, progress)
            best += objective.best()
    return best


def plan_search(
    request: SweepRequest,
    trials: int,
    url: str,
    *,
    on_missing: Callable[[dict[str, str]], None] = lambda missing: None,
) -> list[dict[str, Any]]:
    """The numbers of stored trials and of trials left to run, for each cell."""
    with ResultsDatabase.read(url) as results:
        objectives, missing = cell_objectives(request, results, WorkerOptions())
        on_missing(missing)
        return [objective.plan(trials) for objective in objectives]


def cell_objectives(
    request: SweepRequest,
    results: ResultsDatabase,
    workers: WorkerOptions,
    *,
    retry: bool = False,
) -> tuple[list[CellObjective], dict[str, str]]:
    """The objectives of all cells that the filter accepts, and cells without data."""
    objectives, missing, bases = [], {}, BaseModelCache()
    for recipe, cell in request.cells():
        try:
            space = SearchSpace.of(recipe, cell, request.variant)
            config = recipe.config(cell, space.fixed)
            if not request.config_filter(recipe, cell, config):
                continue
            dataset = dataset_ref(cell.dataset, request.data)
        except UserError as error:
            missing[f"{recipe.name} {cell.dataset}"] = str(error)
            continue
        objectives.append(
            CellObjective(
                request, recipe, cell, dataset, results, workers, bases, retry
            )
        )
    if not objectives and not missing:
        raise UserError(NOTHING_FITS)
    return objectives, missing


@dataclass(frozen=True)
class CellObjective:
    """The mean validation score of configurations of one cell."""

    request: SweepRequest
    recipe: Recipe
    cell: RecipeCell
    dataset: DatasetRef
    results: ResultsDatabase
    workers: WorkerOptions
    bases: BaseModelCache
    """Base models that were trained for earlier trials."""
    retry: bool = False
    _retried: set[str] = field(default_factory=set, init=False)
    """The runs whose earlier failures were deleted."""

    @property
    def name(self) -> str:
        """The dataset and the method."""
        return f"{self.dataset.name} {self.recipe.method}"

    @property
    def space(self) -> SearchSpace:
        return SearchSpace.of(self.recipe, self.cell, self.request.variant)

    def config(self, params: Params) -> Config:
        return self.recipe.config(self.cell, {**self.space.fixed, **params})

    def previous_trials(self) -> list[tuple[ConfigRuns, dict[str, Any]]]:
        """Complete configurations in the database that a search with this seed may run.

        Each comes with its params.
        """
        rows = self.results.runs(
            dataset_hash=self.dataset.hash,
            method=str(self.recipe.method),
            seed=self.request.seed,
        )
        splits = range(self.dataset.num_splits_of(self.cell))
        space = self.space
        trials = []
        for one in on_splits(group_by_config(rows), splits):
            options = one.runs[0]["options"]
            if not set(space.searched) <= set(options):
                continue
            params = {name: options[name] for name in space.searched}
            if space.contains(params) and self.config(params).hash == one.setting:
                trials.append((one, params))
        return trials

    def evaluate(self, params: Params) -> Value:
        """Run a trial on every split; its mean validation score if all succeed."""
        config = self.config(params)
        seed = self.request.seed
        runs = tuple(runs_per_split([config], self.dataset, self.cell, seed))
        if self.retry and (keys := {run.key for run in runs} - self._retried):
            self.results.delete_failures(keys)
            self._retried.update(keys)
        group = RunGroup(self.dataset, config.stack_key, runs)
        check_precision(runs, self.workers.device)
        worker = Worker(
            SweepPlan(groups=[group], seed=seed, data=self.request.data),
            self.results,
            RunOptions(device=self.workers.device),
            lease_seconds=self.workers.lease_seconds,
            bases=self.bases,
        )
        with use_threads(self.workers.num_threads):
            worker.work()
        rows = self.results.runs(
            setting=config.hash, dataset_hash=self.dataset.hash, seed=seed
        )
        splits = {run.split for run in runs}
        scores = [row["valid"] for row in rows if row["split"] in splits]
        return mean(scores) if len(scores) == len(runs) else None

    def search(
        self, trials: int, progress: Progress, deadline: float | None = None
    ) -> None:
        """Search with Optuna, which learns from all trials in the database."""
        load_optuna()
        progress.stage(self.name, trials, "trials")
        searched = self.space.searched.items()
        previous = [(params, one.valid) for one, params in self.previous_trials()]

        def on_trial(study: optuna.Study, value: Value) -> None:
            progress.advance(1, f"valid {value:.2f}" if value else "failed")

        run_study(
            self.evaluate,
            {name: distribution(values) for name, values in searched},
            trials=trials,
            seed=self.request.seed + len(previous),
            previous=previous,
            on_trial=on_trial,
            deadline=deadline,
        )

    def plan(self, trials: int) -> dict[str, Any]:
        """The number of stored trials, of those left to run, and of their runs."""
        stored = len(self.previous_trials())
        left = max(0, trials - stored)
        return {
            "dataset": self.dataset.name,
            "method": self.recipe.method,
            "trials": stored,
            "left": left,
            "runs": left * self.dataset.num_splits_of(self.cell),
            "searched": list(self.space.searched),
        }

    def best(self) -> list[dict[str, Any]]:
        """The best configuration in the database, if there is a complete one."""
        trials = [one for one, _ in self.previous_trials()]
        if not (best := best_by_validation(trials)):
            return []
        return [
            {
                "dataset": self.dataset.name,
                "method": self.recipe.method,
                "trials": len(trials),
                "valid": best.valid,
                "test": best.test,
                "std": best.std,
                "options": config_from_dict(best.runs[0]).describe(),
            }
        ]
