"""`unalike train`: train and evaluate a method on the splits of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from unalike.cli.console import OUT, bold, print_json, print_notes, progress_bar
from unalike.cli.main import COMMAND_LINE
from unalike.data.regression import check_has_classes, predicts_numbers
from unalike.data.split import PARTS
from unalike.data.store import StoredGraph
from unalike.datasets import find
from unalike.device import choose_device
from unalike.display import TextTable
from unalike.errors import UserError, check_at_least_one
from unalike.experiments.config import NO_OVERRIDES, DatasetOptions
from unalike.experiments.result import Runs, command_line
from unalike.experiments.run import ExperimentOutput, RunOptions, train_splits
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
    no_refit: bool = False,
    view: Annotated[DatasetOptions, tyro.conf.arg(name="graph")] = NO_OVERRIDES,
    calibrate: bool = False,
    figures: Path | None = None,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Train a method on the splits of a dataset and evaluate it on their test nodes.

    Example: unalike train chameleon linkx --hidden 64 --splits 0,1,2

    Args:
        dataset: A name of `unalike list datasets`, or the folder of a stored graph.
        method: What to train; `unalike train DATASET METHOD --help` shows its options.
        splits: Numbers of splits separated by commas, or all.
        seed: Seed of random numbers; split i uses seed + i.
        device: cpu, cuda, or auto: a GPU if there is one.
        processes: Distribute columns of the adjacency, or batches, over processes.
        patience_seconds: How long processes wait for one that does not respond.
        checkpoint: Save the training state in this folder and resume from it.
        save: Write a model to this file. It is trained again on all labelled nodes, for
            as many epochs as validation chose (the median of the splits).
        no_refit: Save the model of the split with the best validation score instead.
        view: How the method gets the graph, its labels and its splits.
        calibrate: Fit a temperature on the valid nodes; a saved model includes it.
        figures: Folder for a confusion matrix and a reliability plot of the test nodes.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of a table.
    """
    check_at_least_one("--processes", processes)
    if not patience_seconds > 0:
        raise UserError(
            f"--patience-seconds is {patience_seconds:g}; it must be above 0."
        )
    if processes > 1 and not is_distributed():
        raise SystemExit(launch(COMMAND_LINE.get(), processes))
    if figures is not None:
        check_figure_folder(figures)
        require_matplotlib()
    own_device = local_device(choose_device(device))
    source = find(dataset, data)
    if figures is not None:
        check_has_classes(source.load(), "--figures")
    with (
        init_distributed(own_device, timeout=patience_seconds) as world,
        progress_bar(silent=not world.is_main) as bar,
    ):
        if world.is_main and isinstance(source, StoredGraph):
            print_notes(*source.remarks())
        output = train_splits(
            view.apply(source),
            method,
            splits=parse_splits(splits),
            seed=seed,
            options=RunOptions(
                device=own_device,
                progress=bar,
                checkpoint=checkpoint,
                model=save,
                calibrate=calibrate,
                refit=not no_refit,
            ),
        )
    if world.is_main:
        document = to_json(output, dataset, calibrate, figures, save, not no_refit)
        if json:
            print_json(document)
        else:
            print_output(output.results, document)


def parse_splits(text: str) -> list[int] | None:
    """Parse a list of split numbers like 0,1,2; None stands for all."""
    if text == "all":
        return None
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        message = f"--splits is '{text}'; write all, or numbers: 0,1,2."
        raise UserError(message) from None


def to_json(
    output: ExperimentOutput,
    dataset: str,
    calibrate: bool,
    figures: Path | None,
    save: Path | None,
    refit: bool,
) -> dict[str, Any]:
    """The document of `--json`; writes the figures if a folder is given."""
    results, first = output.results, output.results[0]
    splits = ",".join(str(result.split) for result in results)
    names = ("split", *PARTS, "best_epoch", "seconds")
    document: dict[str, Any] = {
        "dataset": first.dataset,
        "method": first.method,
        "options": first.options,
        "view": first.view,
        "metric": first.metric,
        "splits": [{name: getattr(one, name) for name in names} for one in results],
        "test_mean": results.mean,
        "test_std": results.std,
        "seconds": results.seconds,
        "peak_memory_mb": first.peak_memory_mb,
        "device": first.device,
        "command": command_line(first, splits=splits, dataset=dataset),
    }
    if predicts_numbers(output.experiment.graph):
        document["root_mean_squared_errors"] = output.root_mean_squared_errors
    if calibrate:
        document["calibration"] = [
            {
                "temperature": one.temperature,
                "error": 100 * one.raw.error,
                "error_calibrated": 100 * one.calibrated.error,
            }
            for one in output.calibrations
        ]
    if figures is not None:
        paths = save_prediction_figures(output, figures, calibrate=calibrate)
        document["figures"] = list(map(str, paths))
    if save is not None:
        document["model"] = model_to_json(output, save, calibrate, refit)
    return document


def model_to_json(
    output: ExperimentOutput, file: Path, calibrate: bool, refit: bool
) -> dict[str, Any]:
    """The saved model, with epochs and nodes if it was trained again."""
    best = output.best_index
    document: dict[str, Any] = {
        "file": str(file),
        "bytes": file.stat().st_size,
        "split": output.results[best].split,
    }
    if calibrate:
        document["temperature"] = output.calibrations[best].temperature
    if refit and output.refit_epochs:
        nodes = int((output.experiment.graph.labels >= 0).sum())
        document["refit"] = {"epochs": output.refit_epochs, "nodes": nodes}
    return document


def print_output(results: Runs, document: dict[str, Any]) -> None:
    """Print the results as a table of splits with a summary."""
    headings = ("split", *PARTS, "best epoch")
    rows = []
    for result in results:
        scores = (f"{getattr(result, part):.2f}" for part in PARTS)
        rows.append([str(result.split), *scores, str(result.best_epoch or "–")])
    OUT.print(TextTable.from_rows("", headings, rows, right=headings))
    first = results[0]
    score = f"{first.dataset} {first.method}: {first.metric} {results.format_score()}"
    cost = f"{results.seconds:.1f} s, {first.peak_memory_mb:,.0f} MB, {first.device}"
    OUT.print(bold(f"\n{score}", f" on the test nodes, {cost}"))
    for line in extra_lines(document):
        OUT.print(line, soft_wrap=True)


def extra_lines(document: dict[str, Any]) -> Iterator[str]:
    """Lines about errors of numbers, calibration, figures and the saved model."""
    if errors := document.get("root_mean_squared_errors"):
        yield f"root mean squared error {mean(errors):.4g}, in the unit of the label"
    if rows := document.get("calibration"):
        temperature, before, after = (mean(r[name] for r in rows) for name in rows[0])
        yield (
            f"temperature {temperature:.2f}: the calibration error of the test nodes "
            f"goes from {before:.1f} % to {after:.1f} %"
        )
    for path in document.get("figures", []):
        yield f"wrote {path}"
    if model := document.get("model"):
        refit = model.get("refit")
        what = f"split {model['split']}"
        if refit:
            what = (
                f"a model of all {refit['nodes']:,} labelled nodes, trained for "
                f"{refit['epochs']} epochs,"
            )
        line = f"{what} is saved in {model['file']}"
        if "temperature" in model:
            line += f" with its temperature of {model['temperature']:.2f}"
        yield f"{line}, {model['bytes']:,} bytes"
