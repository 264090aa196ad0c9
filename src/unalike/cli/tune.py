"""`unalike tune`: search the hyperparameters of any method with Optuna."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from unalike.cli.console import (
    DEFAULT_DATABASE,
    OUT,
    bold,
    print_json,
    print_notes,
    print_table,
    progress_bar,
)
from unalike.cli.train import parse_splits
from unalike.datasets import find
from unalike.device import choose_device
from unalike.display import TextTable
from unalike.errors import UserError
from unalike.experiments.config import DatasetOptions
from unalike.experiments.correct_and_smooth_search import (
    HOPS,
    StudyResult,
    search_correct_and_smooth,
)
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.database_connection import hide_password
from unalike.experiments.method_search import Budget, SearchResult, search_method
from unalike.experiments.result import command_line
from unalike.experiments.run import RunOptions
from unalike.experiments.sweep import WorkerOptions
from unalike.experiments.tuning import SEARCH_TRIALS, STUDY_TRIALS
from unalike.methods import METHODS
from unalike.methods.base import Method
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.options import one_of, options_of
from unalike.reports.plotting import (
    check_figure_path,
    plot_importance,
    require_matplotlib,
    save_figure,
)

SHOWN = ("correct_alpha", "smooth_alpha", "correct_by", "smooth_by", "scale")
DEFAULT_METHOD = CorrectAndSmooth()

if TYPE_CHECKING:
    AnyMethod = Method
else:
    AnyMethod = one_of(METHODS)


def command(
    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")],
    *,
    method: AnyMethod = DEFAULT_METHOD,
    trials: int | None = None,
    minutes: float | None = None,
    splits: str = "all",
    seed: int = 0,
    metric: str | None = None,
    results: str | None = None,
    checkpoint: Path | None = None,
    figure: Path | None = None,
    device: str = "auto",
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Search the hyperparameters of a method by validation score.

    Options that you set to other values than their defaults stay as they are; the
    others are searched with Optuna on all splits. Trials are stored in the database:
    the same command continues from them.

    correct-and-smooth has a search of its own, as in the paper. A base model is trained
    once on each split, and around its scores there are four studies: two kinds of
    scaling, one hop or two.

    Example: unalike tune chameleon --trials 30 --minutes 5 linkx --epochs 100

    Args:
        dataset: A name of `unalike list datasets`, or the folder of a stored graph.
        method: What to tune; `unalike tune DATASET METHOD --help` shows its options.
        trials: Trials in all, stored ones included; of correct-and-smooth, trials of
            each study. By default 50, and 500 as in the paper's program.
        minutes: Start no trial after this many minutes.
        splits: For correct-and-smooth: numbers of splits separated by commas, or all.
        seed: Seed of random numbers, in training and in the search.
        metric: Train for and evaluate by this metric instead of the dataset's own.
        results: The database of the trials, by default sqlite:///results.db; the best
            of each study of correct-and-smooth is stored only if this is given.
        checkpoint: For correct-and-smooth: save the base model and the values of trials
            in this folder and resume from it.
        figure: Draw the importance of the options to this file.
        device: cpu, cuda, or auto: a GPU if there is one.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of a table.
    """
    view = DatasetOptions(metric=metric)
    if not isinstance(method, CorrectAndSmooth):
        check_search_flags(splits, checkpoint, figure)
        count = SEARCH_TRIALS if trials is None else trials
        with (
            progress_bar() as bar,
            ResultsDatabase.open(results or DEFAULT_DATABASE, print_notes) as database,
        ):
            found = search_method(
                dataset,
                method,
                database,
                view=view,
                budget=Budget(trials=count, minutes=minutes),
                seed=seed,
                workers=WorkerOptions(device=choose_device(device)),
                data=data,
                progress=bar,
            )
        print_search(found, figure, json=json)
        return
    opened = (
        nullcontext() if results is None else ResultsDatabase.open(results, print_notes)
    )
    with progress_bar() as bar, opened as database:
        studies = search_correct_and_smooth(
            view.apply(find(dataset, data)),
            method.base,
            trials=STUDY_TRIALS if trials is None else trials,
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


def check_search_flags(
    splits: str, checkpoint: Path | None, figure: Path | None
) -> None:
    """Refuse flags of Correct & Smooth in a search, and files that cannot be drawn."""
    if splits != "all" or checkpoint is not None:
        raise UserError(
            "--splits and --checkpoint are for correct-and-smooth; a search uses all "
            "splits and goes on from its --results."
        )
    if figure is not None:
        check_figure_path(figure)
        require_matplotlib()


def print_search(found: SearchResult, figure: Path | None, *, json: bool) -> None:
    """Print the best trials, the importance of options and the best command."""
    if figure is not None and not found.importance:
        print_notes("too few trials, or all of one score: no importance to draw")
        figure = None
    if figure is not None:
        save_figure(plot_importance(found.importance), figure)
    if json:
        print_json(search_to_json(found, figure))
        return
    print_table(replace(found.summary(), title="", note=""))
    if found.importance:
        shares = (
            f"{name.replace('_', ' ')} {share:.0%}"
            for name, share in found.importance.items()
        )
        OUT.print(f"\nimportance: {', '.join(shares)}", soft_wrap=True)
    best = found.trials[0][1]
    title = f"\n{found.dataset} {found.method}: {found.metric} {best.format_score()}"
    count = f" on the test nodes, the best of {len(found.trials)} trials by validation"
    OUT.print(bold(title, f"{count}; again by"))
    OUT.print(found.command, soft_wrap=True)
    if figure is not None:
        OUT.print(f"wrote {figure}", soft_wrap=True)


def search_to_json(found: SearchResult, figure: Path | None) -> dict[str, Any]:
    """The document of `--json` for a search."""
    return {
        "dataset": found.dataset,
        "method": found.method,
        "metric": found.metric,
        "trials": [
            {
                "options": params,
                "valid_mean": runs.valid_mean,
                "test_mean": runs.mean,
                "test_std": runs.std,
            }
            for params, runs in found.trials
        ],
        "importance": found.importance,
        "command": found.command,
        "figure": figure and str(figure),
    }


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
    print_table(TextTable.from_rows("", headings, rows, right=headings))
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
