"""`unalike tune`: search the hyperparameters of Correct & Smooth with Optuna."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import OUT, bold, print_json, progress_bar
from unalike.cli.sweep import print_note
from unalike.cli.train import parse_splits
from unalike.datasets import find
from unalike.device import choose_device
from unalike.display import TextTable
from unalike.experiments.config import DatasetOptions
from unalike.experiments.database import ResultsDatabase, hide_password
from unalike.experiments.result import command_line
from unalike.experiments.run import RunOptions
from unalike.experiments.tuning import HOPS, StudyResult, tune
from unalike.methods.correct_and_smooth import AnyTrained, CorrectAndSmooth
from unalike.options import options_of

BASE = CorrectAndSmooth().base
SHOWN = ("correct_alpha", "smooth_alpha", "correct_by", "smooth_by", "scale")


def command(
    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")],
    *,
    base: AnyTrained = BASE,
    trials: int = 500,
    splits: str = "all",
    seed: int = 0,
    metric: str | None = None,
    results: str | None = None,
    checkpoint: Path | None = None,
    device: str = "auto",
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Search the hyperparameters of Correct & Smooth by validation score.

    A base model is trained once on each split. Around its scores there are four
    studies: two kinds of scaling, one hop or two. The better scaling of each number of
    hops is printed with the command that repeats it.

    Example: unalike tune chameleon --trials 100 mlp --hidden 64

    Args:
        dataset: A name of `unalike list datasets`, or the folder of a stored graph.
        base: The base model; `unalike tune DATASET BASE --help` shows its options.
        trials: Trials of each study; the paper's program uses 500.
        splits: Numbers of splits separated by commas, or all.
        seed: Seed of random numbers, in training and in the search.
        metric: Train for and evaluate by this metric instead of the dataset's own.
        results: Store the best of each study here, as sweeps do: sqlite:///FILE or
            postgresql://USER@HOST/NAME.
        checkpoint: Save the base model and the values of trials in this folder and
            resume from it.
        device: cpu, cuda, or auto: a GPU if there is one.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of a table.
    """
    opened = (
        nullcontext() if results is None else ResultsDatabase.open(results, print_note)
    )
    with progress_bar() as bar, opened as database:
        studies = tune(
            DatasetOptions(metric=metric).apply(find(dataset, data)),
            base,
            trials=trials,
            splits=parse_splits(splits),
            seed=seed,
            options=RunOptions(
                device=choose_device(device), progress=bar, checkpoint=checkpoint
            ),
            results=database,
        )
    shown = results and hide_password(results)
    if json:
        print_json({**to_json(studies, splits, dataset), "results": shown})
    else:
        print_studies(studies, splits, dataset, shown)


def to_json(studies: list[StudyResult], splits: str, dataset: str) -> dict[str, Any]:
    """The document of `--json`; `dataset` is a name or a path."""
    first, best = studies[0].results[0], best_by_hops(studies)
    return {
        "dataset": first.dataset,
        "metric": first.metric,
        "device": first.device,
        "studies": [study_to_json(study, splits, dataset) for study in studies],
        "chosen": [study_to_json(study, splits, dataset) for study in best],
    }


def best_by_hops(studies: list[StudyResult]) -> list[StudyResult]:
    """The study with the better scaling for each number of hops."""
    ranked = sorted(studies, key=lambda study: -study.valid)
    return [next(one for one in ranked if one.method.flow_hops == h) for h in HOPS]


def study_to_json(study: StudyResult, splits: str, dataset: str) -> dict[str, Any]:
    """The best method of a study, its scores, and the command that repeats it."""
    return {
        "flow_hops": study.method.flow_hops,
        "scaling": study.method.scaling,
        "options": options_of(study.method),
        "valid_mean": study.valid,
        "test_mean": study.results.mean,
        "test_std": study.results.std,
        "command": command_line(study.results[0], splits=splits, dataset=dataset),
    }


def print_studies(
    studies: list[StudyResult], splits: str, dataset: str, database: str | None
) -> None:
    """Print the studies as a table, and the commands that repeat the best."""
    options = (name.replace("_", " ") for name in SHOWN)
    headings = ("hops", "scaling", *options, "valid", "test")
    rows = []
    for study in studies:
        shown = (options_of(study.method)[name] for name in SHOWN)
        values = (f"{one:.3f}" if isinstance(one, float) else one for one in shown)
        kind = (str(study.method.flow_hops), study.method.scaling)
        scores = (f"{study.valid:.2f}", study.results.format_score())
        rows.append([*kind, *values, *scores])
    OUT.print(TextTable.from_rows("", headings, rows, right=headings))
    for best in best_by_hops(studies):
        first, hops = best.results[0], best.method.flow_hops
        score = f"{first.metric} {best.results.format_score()}"
        study_name = f"{hops} hop{'s' * (hops > 1)}, {best.method.scaling} scaling"
        title = f"\n{first.dataset}, {study_name}: {score}"
        OUT.print(bold(title, " on the test nodes; again by"))
        line = command_line(first, splits=splits, dataset=dataset)
        OUT.print(line, soft_wrap=True)
    if database:
        line = f"\nthe best of each study is stored in {database}"
        OUT.print(line, soft_wrap=True)
