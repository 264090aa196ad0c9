"""`unalike bench`: time epochs of unalike, of other libraries and of processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import tyro

from unalike.bench.cost_model import Cluster
from unalike.bench.epochs import (
    POKEC_SIZED,
    EpochBenchmark,
    LinkxBenchmark,
    MethodsBenchmark,
    random_graph,
)
from unalike.bench.scaling import ScalingBenchmark
from unalike.cli.console import OUT, print_json, print_table, progress_bar
from unalike.data.graph import Graph
from unalike.data.split import Split, random_splits
from unalike.datasets import find
from unalike.device import choose_device, device_name
from unalike.display import TextTable
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

EPOCH_REPEATS, SCALE_REPEATS = 10, 4
SCALE_HIDDEN = (32, 128)


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """The options that all benchmarks share."""

    what: str
    graph: str | None
    hidden: tuple[int, ...]
    repeats: int | None
    data: Path | None
    progress: Progress


class BenchReport(NamedTuple):
    """The result of a benchmark, its text output and its plot."""

    result: dict[str, Any]
    output: Sequence[TextTable | str]
    plot: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, kw_only=True)
class EpochOptions:
    """Options of bench engine and bench methods."""

    layers: int | None = None
    """Layers of the methods; by default 8 of gcnii and 2 of others."""
    only: tuple[str, ...] = ()
    """Methods to time; all of them by default."""
    stacks: tuple[int, ...] = (1, 10, 40, 200)
    """Numbers of runs to train at once, hidden 64; `--stacks` alone for none."""
    stacked_graph: str = "chameleon-twin"
    """A small graph for the stacks of the engine."""
    device: str = "auto"
    """cpu, cuda, cuda:N, or auto: a GPU where there is one."""

    def run(self, request: BenchRequest) -> BenchReport:
        """Time epochs of unalike and of baselines."""
        device = choose_device(self.device)
        bench = BENCHES[request.what](
            hidden=request.hidden,
            layers=self.layers,
            only=self.only,
            stacks=self.stacks,
            repeats=request.repeats or EPOCH_REPEATS,
            device=torch.device(device),
            progress=request.progress,
        )
        graph, splits = load_graph(request.graph, bench, request.data)
        result = {"device": device_name(device), **bench.epochs(graph, splits[0])}
        output: list[TextTable | str] = [epoch_table(result)]
        if bench.stackable and self.stacks:
            small = find(self.stacked_graph, request.data)
            result["stacks"] = bench.time_stacks(small.prepared(), small.splits())
            output += ["", stack_table(result)]
        return BenchReport(result, output, plot_epoch_times)


@dataclass(frozen=True, kw_only=True)
class ScalingOptions:
    """Options of bench scale."""

    processes: tuple[int, ...] = (1, 2, 4)
    """Numbers of processes to measure, one thread each."""
    rows: tuple[int, ...] = (2_000, 10_000)
    """Train nodes in a batch."""
    cluster: Cluster = field(default_factory=Cluster)

    def run(self, request: BenchRequest) -> BenchReport:
        """Measure, fit and predict."""
        bench = ScalingBenchmark(
            processes=self.processes,
            hidden=request.hidden or SCALE_HIDDEN,
            rows=self.rows,
            repeats=request.repeats or SCALE_REPEATS,
            cluster=self.cluster,
            progress=request.progress,
        )
        source = None if request.graph is None else find(request.graph, request.data)
        result = bench.run(source)
        tables = (time_table(result), "", memory_table(result))
        return BenchReport(result, (*tables, *predicted_lines(result)), plot_scaling)


DEFAULT_EPOCHS, DEFAULT_SCALING = EpochOptions(), ScalingOptions()


def command(
    what: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="WHAT")
    ] = "engine",
    *,
    graph: str | None = None,
    hidden: tuple[int, ...] = (),
    repeats: int | None = None,
    peers: EpochOptions = DEFAULT_EPOCHS,
    scale: ScalingOptions = DEFAULT_SCALING,
    data: Path | None = None,
    plot: Path | None = None,
    json: bool = False,
) -> None:
    """Time epochs of unalike and PyTorch Geometric, or of several processes.

    An epoch is a step on the train nodes and the validation score. unalike scores the
    train and valid rows of LINKX; `every row scored` adds the test rows, as the
    baselines do. PyTorch Geometric must be installed. `scale` trains LINKX with
    several processes of this machine and predicts the time on many hosts.

    Example: unalike bench methods --graph arxiv-year-twin --only gcn appnp

    Args:
        what: What to time: engine (LINKX), methods (message passing), or scale (LINKX
            with several processes).
        graph: A dataset or the folder of a stored graph; by default a random graph of
            the size of pokec on a GPU, and on a CPU penn94-twin for the engine,
            arxiv-year-twin for methods, a small random graph for scale.
        hidden: Hidden widths; by default 128 for the engine, 64 for methods, 32 and 128
            for scale.
        repeats: Timed epochs: the median of 10 by default, for scale the minimum of 4.
        peers: Of engine and methods.
        scale: Of scale.
        data: Folder of the raw files and stored graphs.
        plot: Write a plot of the result to this file: .png, .svg or .pdf.
        json: Print one JSON document instead of tables.
    """
    if plot is not None:
        check_figure_path(plot)
        require_matplotlib()
    kinds: dict[str, EpochOptions | ScalingOptions] = dict.fromkeys(BENCHES, peers)
    options = lookup({**kinds, "scale": scale}, what, "bench")
    with progress_bar() as bar:
        report = options.run(
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
        save_figure(report.plot(report.result), plot)
    if json:
        print_json(report.result)
        return
    for part in report.output:
        if isinstance(part, TextTable):
            print_table(part)
        else:
            OUT.print(part)


def load_graph(
    name: str | None, bench: EpochBenchmark, data: Path | None
) -> tuple[Graph, list[Split]]:
    """The named graph, or the default one for the device."""
    if name is None and bench.device.type == "cuda":
        graph = random_graph(**POKEC_SIZED)
        return graph, random_splits(graph.labels, count=1)
    source = find(name or bench.default_graph, data)
    return source.prepared(), source.splits()
