"""Hyperparameter search with Optuna: over a recipe's space, and of correct and smooth."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

import torch

from unalike.data.task import Task
from unalike.datasets import GraphSource
from unalike.errors import UserError, lookup
from unalike.experiments.config import (
    Config,
    base_dataset,
    config_from_dict,
    options_of_dataset,
)
from unalike.experiments.database import ResultsDatabase, to_rows
from unalike.experiments.plan import (
    DatasetRef,
    RunGroup,
    SweepPlan,
    SweepRequest,
    dataset_ref,
    runs_per_split,
)
from unalike.experiments.recipe import Recipe, RecipeCell, SearchSpace
from unalike.experiments.result import Result
from unalike.experiments.run import BaseModelCache, Experiment, RunOptions
from unalike.experiments.selection import (
    ConfigRuns,
    best_by_validation,
    group_by_config,
    with_all_splits,
)
from unalike.experiments.sweep import WorkerOptions
from unalike.experiments.worker import Worker
from unalike.methods.base import TrainedMethod
from unalike.methods.correct_and_smooth import (
    CorrectAndSmooth,
    Scaling,
    SmoothingInputs,
)
from unalike.nn.normalized_adjacency import Norm
from unalike.options import options_of
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    import optuna


# Search: settings that a searcher proposes, as an alternative to a grid.


@dataclass(frozen=True)
class SearchOptions:
    """Who proposes, and how many settings of a cell are tried."""

    searcher: str
    trials: int


def search_cells(
    order: SweepRequest,
    hunt: SearchOptions,
    url: str,
    *,
    crew: WorkerOptions | None = None,
    progress: Progress = NO_PROGRESS,
) -> list[dict[str, Any]]:
    """Search every cell of an order; the best setting of each."""
    lookup(SEARCHERS, hunt.searcher, "searcher")
    crew = crew or WorkerOptions()
    if crew.jobs > 1:
        raise UserError("A search asks after each answer: it takes --jobs 1.")
    with ResultsDatabase.open(url) as results:
        bases = BaseModelCache()
        desks = list(cell_objectives(order, results, crew, bases))
        return [one for desk in desks for one in search_cell(desk, hunt, progress)]


def cell_objectives(
    order: SweepRequest,
    results: ResultsDatabase,
    crew: WorkerOptions,
    bases: BaseModelCache,
) -> Iterator[CellObjective]:
    """A place to try settings for every cell that is meant."""
    for recipe, cell in order.cells():
        subject = dataset_ref(cell.dataset, order.data)
        desk = CellObjective(order, recipe, cell, subject, results, crew, bases)
        if order.config_filter(recipe, cell, desk.setting({})):
            yield desk


def search_cell(
    desk: CellObjective, hunt: SearchOptions, progress: Progress
) -> list[dict[str, Any]]:
    """Search one cell; its best setting, if any was complete."""
    search = lookup(SEARCHERS, hunt.searcher, "searcher")
    told = f"{desk.subject.name} {desk.recipe.method}"
    progress.stage(told, hunt.trials, "trials")
    for grade in search(desk, hunt.trials):
        progress.advance(1, f"valid {grade:.2f}" if grade else "failed")
    return desk.best()


@dataclass(frozen=True)
class CellObjective:
    """Where proposals for one cell are tried, and where past ones are kept."""

    order: SweepRequest
    recipe: Recipe
    cell: RecipeCell
    subject: DatasetRef
    results: ResultsDatabase
    crew: WorkerOptions
    bases: BaseModelCache
    """What was trained for earlier proposals."""

    @property
    def space(self) -> SearchSpace:
        return SearchSpace.of(self.recipe, self.cell, self.order.variant)

    def previous_trials(self) -> list[tuple[ConfigRuns, dict[str, Any]]]:
        """Complete settings of this cell in the database, with their options."""
        rows = self.results.runs(
            dataset_hash=self.subject.hash, method=str(self.recipe.method)
        )
        splits = min(
            self.cell.splits or self.subject.num_splits, self.subject.num_splits
        )
        found = []
        for one in with_all_splits(group_by_config(rows), splits):
            options = one.runs[0]["options"]
            if not set(self.space.searched) <= set(options):
                continue
            chosen = {name: options[name] for name in self.space.searched}
            if self.setting(chosen).hash == one.setting:
                found.append((one, chosen))
        return found

    def evaluate(self, chosen: Mapping[str, Any]) -> float | None:
        """Run a proposal on every split; its mean validation grade if it succeeds."""
        setting = self.setting(chosen)
        runs = tuple(
            runs_per_split([setting], self.subject, self.cell, self.order.seed)
        )
        bundle = RunGroup(self.subject, setting.stack_key, runs)
        agenda = SweepPlan(bundles=[bundle], seed=self.order.seed, data=self.order.data)
        place = RunOptions(device=self.crew.device)
        Worker(
            agenda,
            self.results,
            place,
            lease_seconds=self.crew.lease_seconds,
            bases=self.bases,
        ).work()
        rows = self.results.runs(setting=setting.hash, dataset_hash=self.subject.hash)
        grades = [row["valid"] for row in rows if row["seed"] == self.order.seed]
        return mean(grades) if len(grades) == len(runs) else None

    def best(self) -> list[dict[str, Any]]:
        """The best setting so far, with what it reaches."""
        past = [one for one, _ in self.previous_trials()]
        if not (chosen := best_by_validation(past)):
            return []
        return [
            {
                "dataset": self.subject.name,
                "method": self.recipe.method,
                "trials": len(past),
                "valid": chosen.valid,
                "test": chosen.test,
                "std": chosen.std,
                "options": config_from_dict(chosen.runs[0]).describe(),
            }
        ]

    def setting(self, chosen: Mapping[str, Any]) -> Config:
        """A proposal with what is fixed, as a setting."""
        return self.recipe.config(self.cell, {**self.space.fixed, **chosen})


def optuna_search(desk: CellObjective, trials: int) -> Iterator[float | None]:
    """Proposals of Optuna's sampler, which learns from all past settings."""
    if not find_spec("optuna"):
        raise UserError("This search needs Optuna: pip install 'unalike[tune]'.")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {name: distribution(told) for name, told in desk.space.searched.items()}
    past = desk.previous_trials()
    sampler = optuna.samplers.TPESampler(seed=desk.order.seed + len(past))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for one, chosen in past:
        study.add_trial(
            optuna.trial.create_trial(
                params=chosen, distributions=space, value=one.valid
            )
        )
        yield one.valid
    failed = optuna.trial.TrialState.FAIL
    for _ in range(len(past), trials):
        trial = study.ask(space)
        grade = desk.evaluate(trial.params)
        study.tell(trial, grade, state=failed if grade is None else None)
        yield grade


def distribution(values: list[Any]) -> Any:
    """Where Optuna may look: between the numbers of a grid, or among its words."""
    from optuna import distributions

    if isinstance(values[0], Mapping):
        return distributions.FloatDistribution(**values[0])
    if any(isinstance(value, bool | str) for value in values):
        return distributions.CategoricalDistribution(values)
    whole = all(isinstance(value, int) for value in values)
    kind = distributions.IntDistribution if whole else distributions.FloatDistribution
    return kind(min(values), max(values), log=min(values) > 0)


SEARCHERS: dict[str, Callable[[CellObjective, int], Iterable[float | None]]] = {
    "optuna": optuna_search
}

# Judged: what settings were worth, on disk, so that a search can go on from there.


Setting = TypeVar("Setting")


class CachedObjective(Generic[Setting]):
    """A judge that never judges twice, not even after it was stopped."""

    def __init__(self, judge: Callable[[Setting], float], file: Path) -> None:
        self.objective = judge
        self.file = file
        self.values = dict(read(file))

    def __call__(self, setting: Setting) -> float:
        told = json.dumps(options_of(setting), sort_keys=True)
        if told not in self.values:
            self.values[told] = self.objective(setting)
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([told, self.values[told]]) + "\n")
        return self.values[told]


def read(file: Path) -> list[tuple[str, float]]:
    """The judgements in a file; a line whose writer was killed is cut off."""
    if not file.exists():
        return []
    text = file.read_text("utf-8")
    whole, _, broken = text.rpartition("\n")
    if broken:
        file.write_text(f"{whole}\n" if whole else "", "utf-8")
    return [(told, worth) for told, worth in map(json.loads, whole.splitlines())]


# Tune: the settings of correct and smooth that validation nodes like best.


Objective = Callable[[CorrectAndSmooth], float]

HOPS = (1, 2)
SCALES = (0.1, 10.0)
"""The factors that are tried, as many below 1 as above."""
BASE, JUDGED = "base", "judged.jsonl"


@dataclass(frozen=True, kw_only=True)
class StudyResult:
    """The best setting of one study, with its results on every split."""

    method: CorrectAndSmooth
    results: list[Result]

    @property
    def valid(self) -> float:
        """What the setting was chosen by."""
        return mean(result.valid for result in self.results)


def tune(
    dataset: GraphSource | str,
    base: TrainedMethod | None = None,
    *,
    trials: int = 500,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    place: RunOptions | None = None,
    results: ResultsDatabase | None = None,
) -> list[StudyResult]:
    """Train a base once, then search the settings around it, a study at a time.

    There is a study for each way of scaling and number of hops, as in the paper. What
    each finds best is stored in a database of results, where one is given. From the
    checkpoint of the place a search that was stopped goes on to the same end.
    """
    load_optuna()
    if trials < 1:
        raise UserError(f"--trials is {trials}; at least 1 is needed.")
    place = place or RunOptions()
    exam = Experiment.load(dataset, splits, seed)
    store = result_writer(results, exam)
    tasks = exam.tasks()
    start = CorrectAndSmooth() if base is None else CorrectAndSmooth(base=base)
    trained = start.base.solve_all(
        tasks,
        device=place.device,
        progress=place.progress,
        checkpoint=base_checkpoint(place, exam, start.base),
    )
    guess = SmoothingInputs.of(tasks, trained, both_ways=start.symmetrised).to(
        place.device
    )
    judge = validation_objective(guess, tasks)
    if place.checkpoint is not None:
        judge = CachedObjective(judge, place.checkpoint / JUDGED)
    found = []
    for hops, scaling in product(HOPS, get_args(Scaling)):
        place.progress.stage(f"{scaling} scaling, {hops}-hop", trials, "trials")
        kind = replace(start, flow_hops=hops, scaling=scaling)
        method = run_study(kind, judge, trials, seed, place.progress)
        solutions = method.postprocess(tasks, trained, device=place.device)
        graded = exam.results(method, solutions, 0.0, place.device)
        found.append(StudyResult(method=method, results=graded))
        store(found[-1])
    if place.checkpoint is not None:
        remove_checkpoint(place.checkpoint)
    return found


def base_checkpoint(
    place: RunOptions, exam: Experiment, base: TrainedMethod
) -> Checkpoint | None:
    """Where the trained base stays until the search is over."""
    if place.checkpoint is None:
        return None
    key = json.dumps(exam.run_identity(base, place.device), sort_keys=True)
    return Checkpoint(place.checkpoint / BASE, key, lasting=True)


def remove_checkpoint(folder: Path) -> None:
    """Remove what was kept of a search, and the folder if nothing else is in it."""
    (folder / JUDGED).unlink()
    for part in folder.glob(f"{BASE}.*"):
        if part.suffix[1:].isdigit():
            shutil.rmtree(part)
    if not any(folder.iterdir()):
        folder.rmdir()


def result_writer(
    results: ResultsDatabase | None, exam: Experiment
) -> Callable[[StudyResult], None]:
    """What puts the best setting of a study into a database, where there is one."""
    if results is None:
        return lambda tuned: None
    subject = DatasetRef.of(exam.dataset.name, base_dataset(exam.dataset))

    def store(tuned: StudyResult) -> None:
        setting = Config(tuned.method, options_of_dataset(exam.dataset))
        results.store(to_rows(subject, setting, tuned.results))

    return store


def run_study(
    kind: CorrectAndSmooth, judge: Objective, trials: int, seed: int, progress: Progress
) -> CorrectAndSmooth:
    """The best setting of one study."""
    optuna = load_optuna()
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, judge(suggest(trial, kind)))
        progress.advance(1, f"valid {100 * study.best_value:.2f}")
    return replace(kind, **study.best_params)


def validation_objective(guess: SmoothingInputs, tasks: Sequence[Task]) -> Objective:
    """Tells of a setting its mean grade on validation nodes."""
    weight = torch.zeros(len(tasks), tasks[0].graph.num_nodes)
    labels = torch.stack([task.graph.labels for task in tasks]).amax(0)
    for run, task in enumerate(tasks):
        weight[run, task.valid] = 1
    labels, weight = (one.to(guess.train_one_hot.device) for one in (labels, weight))

    def judge(method: CorrectAndSmooth) -> float:
        scores = method.correct_and_smooth(guess).transpose(0, 1)
        return float(tasks[0].metric.score(scores, labels, weight).mean())

    return judge


def suggest(trial: optuna.Trial, kind: CorrectAndSmooth) -> CorrectAndSmooth:
    """The next setting to try; a factor only where the scaling has one."""
    chosen: dict[str, Any] = {
        "correct_alpha": trial.suggest_float("correct_alpha", 0, 1),
        "smooth_alpha": trial.suggest_float("smooth_alpha", 0, 1),
        "correct_by": trial.suggest_categorical("correct_by", get_args(Norm)),
        "smooth_by": trial.suggest_categorical("smooth_by", get_args(Norm)),
    }
    if kind.scaling == "fixed":
        chosen["scale"] = trial.suggest_float("scale", *SCALES, log=True)
    return replace(kind, **chosen)


def load_optuna() -> Any:
    """Optuna, which few need, told to be quiet."""
    try:
        import optuna
    except ImportError:
        raise UserError("Tuning needs Optuna: pip install 'unalike[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
