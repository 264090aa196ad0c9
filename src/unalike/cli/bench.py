"""`unalike bench`: speed and memory, beside those of others or of more processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import tyro
from rich.console import RenderableType

from unalike.bench.cost_model import Cluster
from unalike.bench.epochs import (
    POKEC_SIZED,
    EpochBenchmark,
    LinkxBenchmark,
    MethodsBenchmark,
    random_graph,
)
from unalike.bench.scaling import ScalingBenchmark
from unalike.cli.console import OUT, print_json, progress_bar
from unalike.data.graph import Graph
from unalike.data.split import Split, random_splits
from unalike.datasets import find
from unalike.device import best_device, device_name
from unalike.errors import lookup
from unalike.progress import Progress
from unalike.reports.benchmarks import (
    epoch_table,
    memory_table,
    plot_epoch_times,
    plot_scaling,
    predicted_lines,
    stack_table,
    time_table,
)
from unalike.reports.plotting import check_figure_path, require_matplotlib, save_figure

BENCHES: dict[str, type[EpochBenchmark]] = {
    "engine": LinkxBenchmark,
    "methods": MethodsBenchmark,
}


USUAL_REPEATS, SCALE_REPEATS = 10, 4
SCALE_HIDDEN = (32, 128)


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """What to measure, and whom to tell how far it is."""

    what: str
    graph: str | None
    hidden: tuple[int, ...]
    repeats: int | None
    data: Path | None
    progress: Progress


class BenchReport(NamedTuple):
    """What was found, and how it is shown."""

    found: dict[str, Any]
    shown: Sequence[RenderableType]
    draw: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, kw_only=True)
class EpochOptions:
    """How bench engine and bench methods are timed."""

    layers: int | None = None
    """Layers of the methods; without it, 8 of gcnii and 2 of others."""
    only: tuple[str, ...] = ()
    """The methods to time; without any, all."""
    stacks: tuple[int, ...] = (1, 10, 40, 200)
    """Numbers of runs to train at once, hidden 64; `--stacks` alone for none."""
    stacked_graph: str = "chameleon-twin"
    """A small graph for the stacks of the engine."""
    device: str = "auto"
    """cpu, cuda, or auto: a GPU where there is one."""

    def run(self, wish: BenchRequest) -> BenchReport:
        """Time epochs, ours beside those of others."""
        chosen = best_device() if self.device == "auto" else self.device
        bench = BENCHES[wish.what](
            hidden=wish.hidden,
            layers=self.layers,
            only=self.only,
            stacks=self.stacks,
            repeats=wish.repeats or USUAL_REPEATS,
            device=torch.device(chosen),
            progress=wish.progress,
        )
        large, splits = load_graph(wish.graph, bench, wish.data)
        found = {"device": device_name(chosen), **bench.epochs(large, splits[0])}
        shown: list[RenderableType] = [epoch_table(found)]
        if bench.stackable and self.stacks:
            small = find(self.stacked_graph, wish.data)
            found["stacks"] = bench.stacked(small.prepared(), small.splits())
            shown += ["", stack_table(found)]
        return BenchReport(found, shown, plot_epoch_times)


@dataclass(frozen=True, kw_only=True)
class ScalingOptions:
    """How bench scale trains here, and the hosts that it predicts for."""

    processes: tuple[int, ...] = (1, 2, 4)
    """Numbers of processes to measure; each uses one thread."""
    rows: tuple[int, ...] = (2_000, 10_000)
    """Train nodes in a batch."""
    cluster: Cluster = field(default_factory=Cluster)

    def run(self, wish: BenchRequest) -> BenchReport:
        """Measure, fit and predict."""
        bench = ScalingBenchmark(
            processes=self.processes,
            hidden=wish.hidden or SCALE_HIDDEN,
            rows=self.rows,
            repeats=wish.repeats or SCALE_REPEATS,
            cluster=self.cluster,
            progress=wish.progress,
        )
        found = bench.run(None if wish.graph is None else find(wish.graph, wish.data))
        tables = (time_table(found), "", memory_table(found))
        return BenchReport(found, (*tables, *predicted_lines(found)), plot_scaling)


PEERS, SCALE = EpochOptions(), ScalingOptions()


def command(
    what: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="WHAT")
    ] = "engine",
    *,
    graph: str | None = None,
    hidden: tuple[int, ...] = (),
    repeats: int | None = None,
    peers: EpochOptions = PEERS,
    scale: ScalingOptions = SCALE,
    data: Path | None = None,
    plot: Path | None = None,
    json: bool = False,
) -> None:
    """Time an epoch: ours beside PyTorch Geometric's, or one of several processes.

    An epoch is a step on the training nodes and the grades that choose an epoch. Our
    engine scores train and valid rows of LINKX; `every row scored` adds the test rows,
    as the others do. PyTorch Geometric must be installed. `scale` divides LINKX among
    processes of this machine and predicts what many hosts would take.

    Example: unalike bench methods --graph arxiv-year-twin --only gcn appnp

    Args:
        what: What to time: engine (LINKX), methods (those that pass messages), or scale
            (LINKX, divided among processes).
        graph: A dataset or the folder of a stored graph; without one, a random graph of
            the size of pokec on a GPU, and on a CPU penn94-twin for the engine,
            arxiv-year-twin for methods, a small random graph for scale.
        hidden: Widths; without any, 128 for the engine, 64 for methods, 32 and 128 for
            scale.
        repeats: Epochs to take the median of, 10 without it; scale takes the fastest
            of 4.
        peers: Of engine and methods.
        scale: Of scale.
        data: Folder of the raw files and stored graphs.
        plot: Draw the result to this file: .png, .svg or .pdf.
        json: Print one JSON document instead of tables.
    """
    if plot is not None:
        check_figure_path(plot)
        require_matplotlib()
    kinds: dict[str, EpochOptions | ScalingOptions] = dict.fromkeys(BENCHES, peers)
    asked = lookup({**kinds, "scale": scale}, what, "bench")
    with progress_bar() as bar:
        told = asked.run(
            BenchRequest(
                what=what,
                graph=graph,
                hidden=hidden,
                repeats=repeats,
                data=data,
                progress=bar,
            )
        )
    if plot is not None:
        save_figure(told.draw(told.found), plot)
    if json:
        print_json(told.found)
        return
    for part in told.shown:
        OUT.print(part)


def load_graph(
    name: str | None, bench: EpochBenchmark, data: Path | None
) -> tuple[Graph, list[Split]]:
    """The graph to run on."""
    if name is None and bench.device.type == "cuda":
        graph = random_graph(**POKEC_SIZED)
        return graph, random_splits(graph.labels, count=1)
    source = find(name or bench.usual_graph, data)
    return source.prepared(), source.splits()
