"""Tune: the settings of correct and smooth that validation nodes like best."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, get_args

import torch

from unalike.datasets import Source
from unalike.errors import UserError
from unalike.experiments.agenda import Subject
from unalike.experiments.exam import Exam
from unalike.experiments.judged import Judged
from unalike.experiments.record import records
from unalike.experiments.result import Result
from unalike.experiments.results import Results
from unalike.experiments.run import Place
from unalike.experiments.setting import Setting
from unalike.experiments.view import unseen, view_of
from unalike.methods.correct_and_smooth import CorrectAndSmooth, Scaling
from unalike.methods.layers.flow import By
from unalike.methods.layers.guess import Guess
from unalike.methods.method import Trained
from unalike.progress import Progress
from unalike.task import Task
from unalike.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    import optuna

Judge = Callable[[CorrectAndSmooth], float]

HOPS = (1, 2)
SCALES = (0.1, 10.0)
"""The factors that are tried, as many below 1 as above."""
BASE, JUDGED = "base", "judged.jsonl"


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The best setting of one study, with its results on every split."""

    method: CorrectAndSmooth
    results: list[Result]

    @property
    def valid(self) -> float:
        """What the setting was chosen by."""
        return mean(result.valid for result in self.results)


def tune(
    dataset: Source | str,
    base: Trained | None = None,
    *,
    trials: int = 500,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    place: Place | None = None,
    results: Results | None = None,
) -> list[Tuned]:
    """Train a base once, then search the settings around it, a study at a time.

    There is a study for each way of scaling and number of hops, as in the paper. What
    each finds best is stored in a database of results, where one is given. From the
    checkpoint of the place a search that was stopped goes on to the same end.
    """
    load_optuna()
    if trials < 1:
        raise UserError(f"--trials is {trials}; at least 1 is needed.")
    place = place or Place()
    exam = Exam.of(dataset, splits, seed)
    store = storing(results, exam)
    tasks = exam.tasks()
    start = CorrectAndSmooth() if base is None else CorrectAndSmooth(base=base)
    trained = start.base.solve_all(
        tasks,
        device=place.device,
        progress=place.progress,
        checkpoint=base_kept(place, exam, start.base),
    )
    guess = Guess.of(tasks, trained, both_ways=start.symmetrised).to(place.device)
    judge = judge_of(guess, tasks)
    if place.checkpoint is not None:
        judge = Judged(judge, place.checkpoint / JUDGED)
    found = []
    for hops, scaling in product(HOPS, get_args(Scaling)):
        place.progress.stage(f"{scaling} scaling, {hops}-hop", trials, "trials")
        kind = replace(start, flow_hops=hops, scaling=scaling)
        method = search(kind, judge, trials, seed, place.progress)
        solutions = method.around(tasks, trained, device=place.device)
        graded = exam.results(method, solutions, 0.0, place.device)
        found.append(Tuned(method=method, results=graded))
        store(found[-1])
    if place.checkpoint is not None:
        forget(place.checkpoint)
    return found


def base_kept(place: Place, exam: Exam, base: Trained) -> Checkpoint | None:
    """Where the trained base stays until the search is over."""
    if place.checkpoint is None:
        return None
    key = json.dumps(exam.identity(base, place.device), sort_keys=True)
    return Checkpoint(place.checkpoint / BASE, key, lasting=True)


def forget(folder: Path) -> None:
    """Remove what was kept of a search, and the folder if nothing else is in it."""
    (folder / JUDGED).unlink()
    for part in folder.glob(f"{BASE}.*"):
        if part.suffix[1:].isdigit():
            shutil.rmtree(part)
    if not any(folder.iterdir()):
        folder.rmdir()


def storing(results: Results | None, exam: Exam) -> Callable[[Tuned], None]:
    """What puts the best setting of a study into a database, where there is one."""
    if results is None:
        return lambda tuned: None
    subject = Subject.of(exam.dataset.name, unseen(exam.dataset))

    def store(tuned: Tuned) -> None:
        setting = Setting(tuned.method, view_of(exam.dataset))
        results.store(records(subject, setting, tuned.results))

    return store


def search(
    kind: CorrectAndSmooth, judge: Judge, trials: int, seed: int, progress: Progress
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


def judge_of(guess: Guess, tasks: Sequence[Task]) -> Judge:
    """Tells of a setting its mean grade on validation nodes."""
    weight = torch.zeros(len(tasks), tasks[0].graph.num_nodes)
    labels = torch.stack([task.graph.labels for task in tasks]).amax(0)
    for run, task in enumerate(tasks):
        weight[run, task.valid] = 1
    labels, weight = (one.to(guess.known.device) for one in (labels, weight))

    def judge(method: CorrectAndSmooth) -> float:
        scores = method.improve(guess).transpose(0, 1)
        return float(tasks[0].metric.grade(scores, labels, weight).mean())

    return judge


def suggest(trial: optuna.Trial, kind: CorrectAndSmooth) -> CorrectAndSmooth:
    """The next setting to try; a factor only where the scaling has one."""
    chosen: dict[str, Any] = {
        "correct_alpha": trial.suggest_float("correct_alpha", 0, 1),
        "smooth_alpha": trial.suggest_float("smooth_alpha", 0, 1),
        "correct_by": trial.suggest_categorical("correct_by", get_args(By)),
        "smooth_by": trial.suggest_categorical("smooth_by", get_args(By)),
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
