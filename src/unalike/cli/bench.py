"""`unalike bench`: speed and memory, beside those of others, in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import tyro

from unalike.benches.bench import Bench
from unalike.benches.engine import POKEC_SIZED, EngineBench, random_graph
from unalike.benches.methods import MethodsBench
from unalike.cli.console import OUT, answer, progress_bar
from unalike.datasets import find
from unalike.errors import lookup
from unalike.experiments.machine import best_device, device_name
from unalike.graph import Graph
from unalike.reports.canvas import check_path, keep
from unalike.reports.speed import draw_speed, epoch_table, stack_table
from unalike.split import Split, random_splits

BENCHES: dict[str, type[Bench]] = {"engine": EngineBench, "methods": MethodsBench}


def command(
    what: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="WHAT")
    ] = "engine",
    *,
    graph: str | None = None,
    hidden: tuple[int, ...] = (),
    layers: int | None = None,
    only: tuple[str, ...] = (),
    stacks: tuple[int, ...] = (1, 10, 40, 200),
    stacked_graph: str = "chameleon-twin",
    repeats: int = 10,
    device: str = "auto",
    data: Path | None = None,
    plot: Path | None = None,
    json: bool = False,
) -> None:
    """Time an epoch, ours beside PyTorch Geometric's: of LINKX, or of other methods.

    An epoch is a step on the training nodes and the grades that choose an epoch. Our
    engine scores train and valid rows of LINKX; `every row scored` adds the test rows,
    as the others do. PyTorch Geometric must be installed.

    Example: unalike bench methods --graph arxiv-year-twin --only gcn appnp

    Args:
        what: What to time: engine (LINKX), or methods (those that pass messages).
        graph: A dataset or the folder of a stored graph; without one, a random graph of
            the size of pokec on a GPU, and on a CPU penn94-twin for the engine,
            arxiv-year-twin for methods.
        hidden: Widths; without any, 128 for the engine, 64 for methods.
        layers: Layers of the methods; without it, 8 of gcnii and 2 of others.
        only: The methods to time; without any, all.
        stacks: Numbers of runs to train at once, hidden 64; `--stacks` alone for none.
        stacked_graph: A small graph for the stacks of the engine.
        repeats: Epochs to take the median of.
        device: cpu, cuda, or auto: a GPU where there is one.
        data: Folder of the raw files and stored graphs.
        plot: Draw the result to this file: .png, .svg or .pdf.
        json: Print one JSON document instead of tables.
    """
    if plot is not None:
        check_path(plot)
    chosen = best_device() if device == "auto" else device
    with progress_bar() as bar:
        bench = lookup(BENCHES, what, "bench")(
            hidden=hidden,
            layers=layers,
            only=only,
            stacks=stacks,
            repeats=repeats,
            device=torch.device(chosen),
            progress=bar,
        )
        large, splits = subject(graph, bench, data)
        found = {"device": device_name(chosen), **bench.epochs(large, splits[0])}
        if bench.stackable and stacks:
            small = find(stacked_graph, data)
            found["stacks"] = bench.stacked(small.prepared(), small.splits())
    if plot is not None:
        keep(draw_speed(found), plot)
    if json:
        answer(found)
        return
    OUT.print(epoch_table(found))
    if "stacks" in found:
        OUT.print()
        OUT.print(stack_table(found))


def subject(
    name: str | None, bench: Bench, data: Path | None
) -> tuple[Graph, list[Split]]:
    """The graph to run on."""
    if name is None and bench.device.type == "cuda":
        graph = random_graph(**POKEC_SIZED)
        return graph, random_splits(graph.labels, count=1)
    source = find(name or bench.usual_graph, data)
    return source.prepared(), source.splits()
