"""`unalike train`: a method on the splits of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from unalike.cli.console import OUT, print_json, progress_bar
from unalike.cli.main import COMMAND_LINE
from unalike.datasets import find
from unalike.device import choose_device
from unalike.errors import UserError
from unalike.experiments.config import DatasetOptions
from unalike.experiments.result import Result
from unalike.experiments.result import command_line as again
from unalike.experiments.run import (
    ExperimentOutput,
    RunOptions,
    SplitCalibration,
    best_split,
    calibrate_splits,
    train_splits,
)
from unalike.methods import METHODS
from unalike.methods.base import Method
from unalike.options import one_of
from unalike.reports.plotting import require_matplotlib
from unalike.reports.prediction_figures import (
    check_figure_folder,
    save_prediction_figures,
)
from unalike.training.distributed import (
    TIMEOUT_SECONDS,
    init_distributed,
    is_distributed,
    launch,
    local_device,
)

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
    patience_seconds: float = TIMEOUT_SECONDS,
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
    if processes > 1 and not is_distributed():
        raise SystemExit(launch(COMMAND_LINE.get(), processes))
    view = DatasetOptions(
        metric=metric, both_ways=both_ways, class_weights=class_weights
    )
    if figures is not None:
        check_figure_folder(figures)
        require_matplotlib()
    there = local_device(choose_device(device))
    with (
        init_distributed(there, timeout=patience_seconds) as world,
        progress_bar(silent=not world.is_main) as bar,
    ):
        sitting = train_splits(
            view.apply(find(dataset, data)),
            method,
            splits=parse_splits(splits),
            seed=seed,
            place=RunOptions(
                device=there,
                progress=bar,
                checkpoint=checkpoint,
                model=save,
                calibrate=calibrate,
            ),
        )
    if world.is_main:
        told = to_json(
            sitting, dataset, calibrate=calibrate, figures=figures, save=save
        )
        (print_json if json else show)(told)


def to_json(
    sitting: ExperimentOutput,
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
        told["calibration"] = calibration(calibrate_splits(sitting))
    if figures is not None:
        drawn = save_prediction_figures(sitting, figures, calibrate=calibrate)
        told["figures"] = list(map(str, drawn))
    if save is not None:
        best, size = best_split(results), save.stat().st_size
        split = results[best].split
        told["model"] = {"file": str(save), "bytes": size, "split": split}
        if calibrate:
            told["model"]["temperature"] = told["calibration"][best]["temperature"]
    return told


def calibration(assessed: list[SplitCalibration]) -> list[dict[str, float]]:
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
    for line in extra_lines(told):
        OUT.print(line, soft_wrap=True, markup=False)


def extra_lines(told: dict[str, Any]) -> Iterator[str]:
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
