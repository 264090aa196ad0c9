"""Hyperparameter search with Optuna: of a recipe, and of Correct & Smooth."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, get_args

import torch

from unalike.data.task import Task
from unalike.errors import UserError, lookup, require
from unalike.experiments.config import (
    Config,
    base_dataset,
    config_from_dict,
    options_of_dataset,
)
from unalike.experiments.database import ResultsDatabase, to_rows
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
from unalike.experiments.result import Runs
from unalike.experiments.run import (
    AnyGraph,
    BaseModelCache,
    Experiment,
    RunOptions,
    deprecated_place,
)
from unalike.experiments.selection import (
    ConfigRuns,
    best_by_validation,
    group_by_config,
    on_splits,
)
from unalike.experiments.sweep import WorkerOptions
from unalike.experiments.worker import Worker, check_precision
from unalike.methods.base import TrainedMethod, as_computed_on
from unalike.methods.correct_and_smooth import (
    CorrectAndSmooth,
    Scaling,
    SmoothingInputs,
)
from unalike.nn.normalized_adjacency import Norm
from unalike.options import options_of
from unalike.parallel import use_threads
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    import optuna

# The Optuna study of both searches


Params = Mapping[str, Any]
Value = float | None
"""The value of an objective; None for a trial that failed."""


def run_study(
    objective: Callable[[Params], Value],
    space: Mapping[str, Any],
    *,
    trials: int,
    seed: int,
    previous: Sequence[tuple[Params, float]] = (),
    on_trial: Callable[[optuna.Study, Value], None],
    deadline: float | None = None,
) -> optuna.Study:
    """Maximise an objective with Optuna's TPE sampler, after some previous trials.

    No trial begins after the deadline, a time of `time.monotonic`.
    """
    optuna = load_optuna()
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for params, known in previous:
        study.add_trial(
            optuna.trial.create_trial(
                params=dict(params), distributions=dict(space), value=known
            )
        )
        on_trial(study, known)
    for _ in range(len(previous), trials):
        if deadline is not None and time.monotonic() > deadline:
            break
        trial = study.ask(dict(space))
        value = objective(trial.params)
        failed = optuna.trial.TrialState.FAIL if value is None else None
        study.tell(trial, value, state=failed)
        on_trial(study, value)
    return study


def load_optuna() -> Any:
    """Import Optuna and silence its messages."""
    optuna = require("optuna", "tune", "Tuning needs Optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


# Search over the space of a recipe


@dataclass(frozen=True)
class SearchOptions:
    """The name of the searcher, and the number of trials of a cell."""

    searcher: str
    trials: int
    retry: bool = False
    """Run configurations again that failed before."""

    def __post_init__(self) -> None:
        lookup(SEARCHERS, self.searcher, "searcher")


def search_cells(
    request: SweepRequest,
    options: SearchOptions,
    url: str,
    *,
    workers: WorkerOptions | None = None,
    progress: Progress = NO_PROGRESS,
    on_missing: Callable[[dict[str, str]], None] = lambda missing: None,
) -> list[dict[str, Any]]:
    """Search every cell of a request; return the best configuration of each.

    `on_missing` gets the cells that cannot be run, with the reasons.
    """
    search = SEARCHERS[options.searcher]
    workers = workers or WorkerOptions()
    if workers.jobs > 1:
        raise UserError("A search asks after each answer: it takes --jobs 1.")
    best = []
    with ResultsDatabase.open(url) as results:
        objectives, missing = cell_objectives(request, options, results, workers)
        on_missing(missing)
        for objective in objectives:
            progress.stage(objective.name, options.trials, "trials")
            search(objective, options.trials, progress)
            best += objective.best()
    return best


def plan_search(
    request: SweepRequest,
    options: SearchOptions,
    url: str,
    *,
    on_missing: Callable[[dict[str, str]], None] = lambda missing: None,
) -> list[dict[str, Any]]:
    """The numbers of stored trials and of trials left to run, for each cell."""
    with ResultsDatabase.read(url) as results:
        workers = WorkerOptions()
        objectives, missing = cell_objectives(request, options, results, workers)
        on_missing(missing)
        return [objective.plan(options.trials) for objective in objectives]


def cell_objectives(
    request: SweepRequest,
    options: SearchOptions,
    results: ResultsDatabase,
    workers: WorkerOptions,
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
                request, recipe, cell, dataset, results, workers, bases, options.retry
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
        """The configuration of a trial."""
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


def optuna_search(
    objective: CellObjective,
    trials: int,
    progress: Progress,
    deadline: float | None = None,
) -> None:
    """Search a cell with Optuna, which learns from all trials in the database."""
    load_optuna()
    space = objective.space.searched.items()
    previous = [(params, one.valid) for one, params in objective.previous_trials()]

    def on_trial(study: optuna.Study, value: Value) -> None:
        progress.advance(1, f"valid {value:.2f}" if value else "failed")

    run_study(
        objective.evaluate,
        {name: distribution(values) for name, values in space},
        trials=trials,
        seed=objective.request.seed + len(previous),
        previous=previous,
        on_trial=on_trial,
        deadline=deadline,
    )


def distribution(values: list[Any]) -> Any:
    """The Optuna distribution of an option: a range of numbers, or categories."""
    from optuna import distributions

    if isinstance(values[0], Mapping):
        return distributions.FloatDistribution(**values[0])
    if any(isinstance(value, bool | str) for value in values):
        return distributions.CategoricalDistribution(values)
    integers = all(isinstance(value, int) for value in values)
    kind = (
        distributions.IntDistribution if integers else distributions.FloatDistribution
    )
    return kind(min(values), max(values), log=min(values) > 0)


SEARCHERS: dict[str, Callable[[CellObjective, int, Progress], None]] = {
    "optuna": optuna_search
}

# Search of Correct & Smooth


Objective = Callable[[CorrectAndSmooth], float]

HOPS = (1, 2)
SCALES = (0.1, 10.0)
"""The range of the scaling factor, symmetric around 1 on a log scale."""
BASE, JUDGED = "base", "judged.jsonl"
"""Names of the base model and of the objective's values in a checkpoint folder."""


@dataclass(frozen=True, kw_only=True)
class StudyResult:
    """The best method of one study, with its results on every split."""

    method: CorrectAndSmooth
    results: Runs

    @property
    def valid(self) -> float:
        """The mean validation score that the method was selected by."""
        return self.results.valid_mean


def tune(
    dataset: AnyGraph,
    base: TrainedMethod | None = None,
    *,
    trials: int = 500,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    options: RunOptions | None = None,
    results: ResultsDatabase | None = None,
    place: RunOptions | None = None,
) -> list[StudyResult]:
    """Train a base model once, then search Correct & Smooth in four Optuna studies.

    There is one study for each kind of scaling and number of hops, as in the paper.
    The best method of each is stored in the database, if one is given. With a
    checkpoint folder in the options, an interrupted search resumes to the same result.
    """
    load_optuna()
    if trials < 1:
        raise UserError(f"--trials is {trials}; at least 1 is needed.")
    options = options or deprecated_place(place) or RunOptions()
    experiment = Experiment.load(dataset, splits, seed)
    store = result_writer(results, experiment)
    start = CorrectAndSmooth() if base is None else CorrectAndSmooth(base=base)
    tasks = experiment.tasks(start)
    experiment.check_has_features(start)
    start = as_computed_on(options.device, start)
    trained = start.base.solve_all(
        tasks,
        device=options.device,
        progress=options.progress,
        checkpoint=base_checkpoint(options, experiment, start.base),
    )
    experiment.raise_if_failed(trained)
    inputs = SmoothingInputs.of(tasks, trained, undirected=start.symmetrised)
    objective = validation_objective(inputs.to(options.device), tasks)
    if options.checkpoint is not None:
        objective = CachedObjective(objective, options.checkpoint / JUDGED)
    studies = []
    for hops, scaling in product(HOPS, get_args(Scaling)):
        options.progress.stage(f"{scaling} scaling, {hops}-hop", trials, "trials")
        template = replace(start, flow_hops=hops, scaling=scaling)
        method = smoothing_study(template, objective, trials, seed, options.progress)
        solutions = method.postprocess(tasks, trained, device=options.device)
        metadata = experiment.metadata(method, options.device)
        runs = experiment.results(solutions, metadata, 0.0, options.device)
        studies.append(StudyResult(method=method, results=runs))
        store(studies[-1])
    if options.checkpoint is not None:
        remove_checkpoint(options.checkpoint)
    return studies


def smoothing_study(
    template: CorrectAndSmooth,
    objective: Objective,
    trials: int,
    seed: int,
    progress: Progress,
) -> CorrectAndSmooth:
    """The best method of one study; the template fixes hops and scaling."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    space: dict[str, Any] = {
        "correct_alpha": FloatDistribution(0, 1),
        "smooth_alpha": FloatDistribution(0, 1),
        "correct_by": CategoricalDistribution(get_args(Norm)),
        "smooth_by": CategoricalDistribution(get_args(Norm)),
    }
    if template.scaling == "fixed":
        space["scale"] = FloatDistribution(*SCALES, log=True)

    def on_trial(study: optuna.Study, value: Value) -> None:
        progress.advance(1, f"valid {100 * study.best_value:.2f}")

    study = run_study(
        lambda params: objective(replace(template, **params)),
        space,
        trials=trials,
        seed=seed,
        on_trial=on_trial,
    )
    return replace(template, **study.best_params)


def validation_objective(inputs: SmoothingInputs, tasks: Sequence[Task]) -> Objective:
    """The mean validation score of a method over all splits, as a function."""
    weight = torch.zeros(len(tasks), tasks[0].graph.num_nodes)
    labels = torch.stack([task.graph.labels for task in tasks]).amax(0)
    for run, task in enumerate(tasks):
        weight[run, task.valid] = 1
    device = inputs.train_one_hot.device
    labels, weight = labels.to(device), weight.to(device)

    def objective(method: CorrectAndSmooth) -> float:
        scores = method.correct_and_smooth(inputs).transpose(0, 1)
        return float(tasks[0].metric.score(scores, labels, weight).mean())

    return objective


class CachedObjective:
    """An objective whose values are saved in a file, so that a search can resume."""

    def __init__(self, objective: Objective, path: Path) -> None:
        self.objective = objective
        self.path = path
        self.values = dict(read_values(path))

    def __call__(self, method: CorrectAndSmooth) -> float:
        key = json.dumps(options_of(method), sort_keys=True)
        if key not in self.values:
            self.values[key] = self.objective(method)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, self.values[key]]) + "\n")
        return self.values[key]


def read_values(path: Path) -> Iterable[tuple[str, float]]:
    """Read saved values; an incomplete last line is removed from the file."""
    if not path.exists():
        return []
    try:
        complete, _, incomplete = path.read_text("utf-8").rpartition("\n")
        lines = map(json.loads, complete.splitlines())
        values = [(str(key), float(value)) for key, value in lines]
    except (ValueError, TypeError, RecursionError):
        raise UserError(
            f"{path} is damaged; without it, its trials are computed again."
        ) from None
    if incomplete:
        path.write_text(f"{complete}\n" if complete else "", "utf-8")
    return values


def base_checkpoint(
    options: RunOptions, experiment: Experiment, base: TrainedMethod
) -> Checkpoint | None:
    """The checkpoint of the base model, which lasts until the search is done."""
    if options.checkpoint is None:
        return None
    identity = experiment.identity(experiment.metadata(base, options.device))
    key = json.dumps(identity, sort_keys=True)
    return Checkpoint(options.checkpoint / BASE, key, lasting=True)


def remove_checkpoint(folder: Path) -> None:
    """Remove the files of a search, and the folder if nothing else is in it."""
    (folder / JUDGED).unlink()
    for path in folder.glob(f"{BASE}.*"):
        if path.suffix[1:].isdigit():
            shutil.rmtree(path)
    if not any(folder.iterdir()):
        folder.rmdir()


def result_writer(
    results: ResultsDatabase | None, experiment: Experiment
) -> Callable[[StudyResult], None]:
    """A function that stores the results of a study, if there is a database."""
    if results is None:
        return lambda study: None
    dataset = DatasetRef.of(experiment.dataset.name, base_dataset(experiment.dataset))

    def store(study: StudyResult) -> None:
        config = Config(study.method, options_of_dataset(experiment.dataset))
        results.store(to_rows(dataset, config, study.results))

    return store
