"""`unalike tune`: the settings of correct and smooth that suit a dataset."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import tyro
from rich.table import Table

from unalike.cli.console import OUT, print_json, progress_bar
from unalike.cli.sweep import one_note
from unalike.cli.train import parse_splits
from unalike.datasets import find
from unalike.device import choose_device
from unalike.experiments.config import DatasetOptions
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.result import command_line as command_of
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
    """Search the settings of correct and smooth that validation nodes like best.

    A base is trained once on each split. Around its scores there are four studies: two
    ways of scaling errors, one hop or two. The better scaling of each number of hops
    is told as the command that repeats it.

    Example: unalike tune chameleon --trials 100 mlp --hidden 64

    Args:
        dataset: A name of `unalike list datasets`, or the folder of a stored graph.
        base: What is trained first; `unalike tune DATASET BASE --help` shows options.
        trials: Settings that each study tries; the paper's program tries 500.
        splits: Numbers of splits separated by commas, or all.
        seed: Where chance begins, in training and in the search.
        metric: Learn for and grade by this metric instead of the dataset's own.
        results: Store the best of each study here, as sweeps do: sqlite:///FILE or
            postgresql://USER@HOST/NAME.
        checkpoint: Keep the trained base and what settings are worth in this folder;
            go on from there if it is there.
        device: cpu, cuda, or auto: a GPU where there is one.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of a table.
    """
    kept = nullcontext() if results is None else ResultsDatabase.open(results, one_note)
    with progress_bar() as bar, kept as database:
        found = tune(
            DatasetOptions(metric=metric).apply(find(dataset, data)),
            base,
            trials=trials,
            splits=parse_splits(splits),
            seed=seed,
            place=RunOptions(
                device=choose_device(device), progress=bar, checkpoint=checkpoint
            ),
            results=database,
        )
    (print_json if json else show)({**summary(found, splits), "results": results})


def summary(found: list[StudyResult], splits: str) -> dict[str, Any]:
    """The document of `--json`."""
    shared = found[0].results[0]
    chosen = [
        max((one for one in found if one.method.flow_hops == hops), key=valid_of)
        for hops in HOPS
    ]
    return {
        "dataset": shared.dataset,
        "metric": shared.metric,
        "device": shared.device,
        "studies": [describe(one, splits) for one in found],
        "chosen": [describe(one, splits) for one in chosen],
    }


def valid_of(tuned: StudyResult) -> float:
    """What settings are compared by."""
    return tuned.valid


def describe(tuned: StudyResult, splits: str) -> dict[str, Any]:
    """One study: its best setting, the grades, and how to repeat them."""
    tests = [result.test for result in tuned.results]
    return {
        "flow_hops": tuned.method.flow_hops,
        "scaling": tuned.method.scaling,
        "options": options_of(tuned.method),
        "valid_mean": tuned.valid,
        "test_mean": mean(tests),
        "test_std": stdev(tests) if len(tests) > 1 else None,
        "command": command_of(tuned.results[0], splits=splits),
    }


def show(told: dict[str, Any]) -> None:
    """The same as a table, and the commands below it."""
    table = Table(box=None, pad_edge=False)
    headings = ("hops", "scaling", *(name.replace("_", " ") for name in SHOWN))
    for heading in (*headings, "valid", "test"):
        table.add_column(heading, justify="right", no_wrap=heading == "test")
    for study in told["studies"]:
        setting = (cell(study["options"][name]) for name in SHOWN)
        hops, valid = str(study["flow_hops"]), f"{study['valid_mean']:.2f}"
        table.add_row(hops, study["scaling"], *setting, valid, format_test_score(study))
    OUT.print(table)
    for best in told["chosen"]:
        hops = f"{best['flow_hops']} hop" + "s" * (best["flow_hops"] > 1)
        OUT.print(
            f"\n[bold]{told['dataset']}, {hops}, {best['scaling']} scaling: "
            f"{told['metric']} {format_test_score(best)}[/] on the test nodes; again by"
        )
        OUT.print(best["command"], soft_wrap=True, markup=False)
    if told["results"]:
        kept = f"\nthe best of each study is stored in {told['results']}"
        OUT.print(kept, soft_wrap=True, markup=False)


def format_test_score(study: dict[str, Any]) -> str:
    """The grade on test nodes, with its spread over splits."""
    spread = "" if study["test_std"] is None else f" ± {study['test_std']:.2f}"
    return f"{study['test_mean']:.2f}{spread}"


def cell(value: float | str) -> str:
    """A setting, short enough for a table."""
    return f"{value:.3f}" if isinstance(value, float) else value
