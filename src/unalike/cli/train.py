"""`unalike train`: a method on the splits of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from unalike.cli.console import OUT, answer, progress_bar
from unalike.cli.main import WORDS
from unalike.datasets import find
from unalike.errors import UserError
from unalike.experiments.assessment import Assessment, assess
from unalike.experiments.keeping import best_of
from unalike.experiments.machine import choose_device
from unalike.experiments.result import Result
from unalike.experiments.result import command as again
from unalike.experiments.run import Place, Sitting, sit
from unalike.experiments.view import View
from unalike.methods import METHODS
from unalike.methods.method import Method
from unalike.options import one_of
from unalike.reports.answers import check_folder, draw_answers
from unalike.reports.canvas import require_matplotlib
from unalike.training.launch import launch
from unalike.training.world import PATIENCE, joined, launched, own_device

if TYPE_CHECKING:
    AnyMethod = Method
else:
    AnyMethod = one_of(METHODS)


def command(
    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")],
    *,
    method: AnyMethod,
    splits: str = "all",
    seed: int = 0,
    device: str = "auto",
    processes: int = 1,
    patience_seconds: float = PATIENCE,
    checkpoint: Path | None = None,
    save: Path | None = None,
    metric: str | None = None,
    both_ways: bool = False,
    class_weights: str | None = None,
    calibrate: bool = False,
    figures: Path | None = None,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Train a method on the splits of a dataset and grade it on their test nodes.

    Example: unalike train chameleon linkx --hidden 64 --splits 0,1,2

    Args:
        dataset: A name of `unalike list datasets`, or the folder of a stored graph.
        method: What to train; `unalike train DATASET METHOD --help` shows its options.
        splits: Numbers of splits separated by commas, or all.
        seed: Where chance begins; split i of a run begins at seed + i.
        device: cpu, cuda, or auto: a GPU where there is one.
        processes: Divide the columns of the adjacency, or the batches, among so many.
        patience_seconds: How long processes wait for one that says nothing.
        checkpoint: Keep the state in this folder; go on from it if it is there.
        save: Write the model of the split with the best validation grade to this file.
        metric: Learn for and grade by this metric instead of the dataset's own.
        both_ways: Let every edge go both ways, also where direction is usually kept.
        class_weights: balanced lets every class count alike in the loss.
        calibrate: Find the temperature of the valid nodes; a saved model keeps it.
        figures: Folder for a confusion matrix and a reliability plot of the test nodes.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of a table.
    """
    if processes < 1:
        raise UserError(f"--processes is {processes}; at least 1 is needed.")
    if not patience_seconds > 0:
        raise UserError(f"--patience-seconds is {patience_seconds:g}; more is needed.")
    if processes > 1 and not launched():
        raise SystemExit(launch(WORDS.get(), processes))
    view = View(metric=metric, both_ways=both_ways, class_weights=class_weights)
    if figures is not None:
        check_folder(figures)
        require_matplotlib()
    there = own_device(choose_device(device))
    with (
        joined(there, patience=patience_seconds) as world,
        progress_bar(silent=not world.leads) as bar,
    ):
        sitting = sit(
            view.of(find(dataset, data)),
            method,
            splits=parse_splits(splits),
            seed=seed,
            place=Place(
                device=there,
                progress=bar,
                checkpoint=checkpoint,
                model=save,
                calibrate=calibrate,
            ),
        )
    if world.leads:
        told = document(
            sitting, dataset, calibrate=calibrate, figures=figures, save=save
        )
        (answer if json else show)(told)


def document(
    sitting: Sitting,
    dataset: str,
    *,
    calibrate: bool,
    figures: Path | None,
    save: Path | None,
) -> dict[str, Any]:
    """What is told: the grades, and whatever else was asked for."""
    results = sitting.results()
    told = summary(results, dataset)
    if calibrate:
        told["calibration"] = calibration(assess(sitting))
    if figures is not None:
        drawn = draw_answers(sitting, figures, calibrate=calibrate)
        told["figures"] = list(map(str, drawn))
    if save is not None:
        best, size = best_of(results), save.stat().st_size
        split = results[best].split
        told["model"] = {"file": str(save), "bytes": size, "split": split}
        if calibrate:
            told["model"]["temperature"] = told["calibration"][best]["temperature"]
    return told


def calibration(assessed: list[Assessment]) -> list[dict[str, float]]:
    """The temperature of each split, and its calibration error in percent."""
    return [
        {
            "temperature": each.temperature,
            "error": 100 * each.raw.error,
            "error_calibrated": 100 * each.calibrated.error,
        }
        for each in assessed
    ]


def parse_splits(told: str) -> list[int] | None:
    """The numbers of a list like 0,1,2; None for all."""
    if told == "all":
        return None
    try:
        return [int(number) for number in told.split(",")]
    except ValueError:
        raise UserError(
            f"--splits is '{told}'; write all, or numbers: 0,1,2."
        ) from None


def summary(results: list[Result], dataset: str) -> dict[str, Any]:
    """The grades of all splits, and how to get them again from what was told."""
    tests = [result.test for result in results]
    shared = results[0]
    return {
        "dataset": shared.dataset,
        "method": shared.method,
        "options": shared.options,
        "metric": shared.metric,
        "splits": [
            {
                "split": r.split,
                "train": r.train,
                "valid": r.valid,
                "test": r.test,
                "best_epoch": r.best_epoch,
                "seconds": r.seconds,
            }
            for r in results
        ],
        "test_mean": mean(tests),
        "test_std": stdev(tests) if len(tests) > 1 else None,
        "seconds": sum(r.seconds for r in results),
        "peak_memory_mb": shared.peak_memory_mb,
        "device": shared.device,
        "command": again(
            shared, splits=",".join(str(r.split) for r in results), dataset=dataset
        ),
    }


def show(told: dict[str, Any]) -> None:
    """The same as a table."""
    table = Table(box=None, pad_edge=False)
    for heading in ("split", "train", "valid", "test", "best epoch"):
        table.add_column(heading, justify="right")
    for row in told["splits"]:
        grades = (f"{row[part]:.2f}" for part in ("train", "valid", "test"))
        table.add_row(str(row["split"]), *grades, str(row["best_epoch"] or "–"))
    OUT.print(table)
    spread = "" if told["test_std"] is None else f" ± {told['test_std']:.2f}"
    OUT.print(
        f"\n[bold]{told['dataset']} {told['method']}: {told['metric']} "
        f"{told['test_mean']:.2f}{spread}[/] on the test nodes, "
        f"{told['seconds']:.1f} s, {told['peak_memory_mb']:,.0f} MB, {told['device']}"
    )
    for line in extras(told):
        OUT.print(line, soft_wrap=True, markup=False)


def extras(told: dict[str, Any]) -> Iterator[str]:
    """What was asked for beside grades."""
    if rows := told.get("calibration"):
        warm, before, after = (mean(row[name] for row in rows) for name in rows[0])
        yield (
            f"temperature {warm:.2f}: the calibration error of the test nodes goes "
            f"from {before:.1f} % to {after:.1f} %"
        )
    for file in told.get("figures", []):
        yield f"wrote {file}"
    if kept := told.get("model"):
        warm = kept.get("temperature")
        how = "" if warm is None else f" with its temperature of {warm:.2f}"
        yield (
            f"split {kept['split']} is saved in {kept['file']}{how}, "
            f"{kept['bytes']:,} bytes"
        )
