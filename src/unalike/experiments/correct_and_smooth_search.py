"""Search the hyperparameters of Correct & Smooth around one trained base model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import torch

from unalike.data.task import Task
from unalike.errors import UserError, check_at_least_one
from unalike.experiments.config import Config, base_dataset, options_of_dataset
from unalike.experiments.database import ResultsDatabase, to_rows
from unalike.experiments.optuna_study import Value, load_optuna, run_study
from unalike.experiments.plan import DatasetRef
from unalike.experiments.result import Runs
from unalike.experiments.run import AnyGraph, Experiment, RunOptions
from unalike.methods.base import TrainedMethod, as_computed_on
from unalike.methods.correct_and_smooth import (
    CorrectAndSmooth,
    Scaling,
    SmoothingInputs,
)
from unalike.nn.normalized_adjacency import Norm
from unalike.options import options_of
from unalike.progress import Progress
from unalike.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    import optuna

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


def search_correct_and_smooth(
    dataset: AnyGraph,
    base: TrainedMethod | None = None,
    *,
    trials: int = 500,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    options: RunOptions | None = None,
    results: ResultsDatabase | None = None,
) -> list[StudyResult]:
    """Train a base model once, then search Correct & Smooth in four Optuna studies.

    There is one study for each kind of scaling and number of hops, as in the paper.
    The best method of each is stored in the database, if one is given. With a
    checkpoint folder in the options, an interrupted search resumes to the same result.
    """
    load_optuna()
    check_at_least_one("--trials", trials)
    options = options or RunOptions()
    experiment = Experiment.load(dataset, splits, seed)
    source, view = experiment.dataset, options_of_dataset(experiment.dataset)
    stored = results and DatasetRef.of(source.name, base_dataset(source))
    start = CorrectAndSmooth() if base is None else CorrectAndSmooth(base=base)
    tasks = experiment.tasks(start)
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
        runs = experiment.results(solutions, method, 0.0, options.device)
        studies.append(StudyResult(method=method, results=runs))
        if results is not None and stored:
            results.store(to_rows(stored, Config(method, view), runs))
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
    key = json.dumps(experiment.identity(base, options.device), sort_keys=True)
    return Checkpoint(options.checkpoint / BASE, key, lasting=True)


def remove_checkpoint(folder: Path) -> None:
    """Remove the files of a search, and the folder if nothing else is in it."""
    (folder / JUDGED).unlink()
    for path in folder.glob(f"{BASE}.*"):
        if path.suffix[1:].isdigit():
            shutil.rmtree(path)
    if not any(folder.iterdir()):
        folder.rmdir()
