"""`unalike bench`: time epochs and layers next to other libraries, and processes."""

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
from unalike.bench.layers import LayerBenchmark, sized_graphs
from unalike.bench.scaling import ScalingBenchmark
from unalike.cli.console import OUT, print_json, print_table, progress_bar
from unalike.data.split import random_splits
from unalike.datasets import GraphSource, find
from unalike.device import choose_device, commit, device_name, versions
from unalike.display import TextTable
from unalike.errors import lookup
from unalike.reports.benchmarks import (
    epoch_table,
    layer_notes,
    layer_table,
    memory_table,
    plot_epoch_times,
    plot_layer_times,
    plot_scaling,
    predicted_lines,
    stack_table,
    time_table,
)
from unalike.reports.plotting import check_figure_path, save_figure

BENCHES: dict[str, type[EpochBenchmark]] = {
    "engine": LinkxBenchmark,
    "methods": MethodsBenchmark,
}


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
    stacks: tuple[int, ...] = (1, 10, 40, 200)
    """Numbers of runs to train at once, hidden 64; `--stacks` alone for none."""
    stacked_graph: str = "chameleon-twin"
    """A small graph for the stacks of the engine."""

    def run(
        self, what: str, source: GraphSource | None, data: Path | None, **shared: Any
    ) -> BenchReport:
        bench = BENCHES[what](layers=self.layers, stacks=self.stacks, **shared)
        if source is None and bench.device.type == "cuda":
            graph = random_graph(**POKEC_SIZED)
            splits = random_splits(graph.labels, count=1)
        else:
            source = source or find(bench.default_graph, data)
            graph, splits = source.prepared(), source.splits()
        result = bench.epochs(graph, splits[0])
        output: list[TextTable | str] = [epoch_table(result)]
        if bench.stackable and self.stacks:
            small = find(self.stacked_graph, data)
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

    def run(
        self,
        what: str,
        source: GraphSource | None,
        data: Path | None,
        device: torch.device,
        only: tuple[str, ...] = (),
        **shared: Any,
    ) -> BenchReport:
        bench = ScalingBenchmark(
            processes=self.processes, rows=self.rows, cluster=self.cluster, **shared
        )
        result = bench.run(source)
        tables = (time_table(result), "", memory_table(result))
        return BenchReport(result, (*tables, *predicted_lines(result)), plot_scaling)


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """Options of bench layers."""

    sizes: tuple[str, ...] = ()
    """Random graphs: cora (2,708 nodes, 10 thousand entries), dense (20 thousand, 800
    thousand), arxiv (170 thousand, 2.4 million), pokec (1.6 million, 44.6 million); by
    default all of them on a GPU, and the first three on a CPU."""
    compiled: bool = False
    """Time the layers under torch.compile too."""

    def run(
        self, what: str, source: GraphSource | None, data: Path | None, **shared: Any
    ) -> BenchReport:
        bench = LayerBenchmark(compiled=self.compiled, **shared)
        if source is None:
            graphs = sized_graphs(self.sizes, bench.device)
        else:
            graphs = [(source.name, source.prepared())]
        result = bench.run(graphs)
        output: list[TextTable | str] = [layer_table(result), *layer_notes(result)]
        return BenchReport(result, output, plot_layer_times)


DEFAULT_EPOCHS, DEFAULT_SCALING = EpochOptions(), ScalingOptions()
DEFAULT_LAYERS = LayerOptions()


def command(
    what: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="WHAT")
    ] = "engine",
    *,
    graph: str | None = None,
    hidden: tuple[int, ...] = (),
    repeats: int | None = None,
    only: tuple[str, ...] = (),
    device: str = "auto",
    peers: EpochOptions = DEFAULT_EPOCHS,
    layers_of_pyg: LayerOptions = DEFAULT_LAYERS,
    scale: ScalingOptions = DEFAULT_SCALING,
    data: Path | None = None,
    plot: Path | None = None,
    json: bool = False,
) -> None:
    """Time epochs or layers of unalike and PyTorch Geometric, or several processes.

    An epoch is a step on the train nodes and the validation score. unalike scores the
    train and valid rows of LINKX; `every row scored` adds the test rows, as the
    baselines do. PyTorch Geometric must be installed. `layers` times networks of each
    layer of unalike.pyg: a forward pass, a training step and its peak memory. `scale`
    trains LINKX with several processes of this machine and predicts the time on many
    hosts.

    Example: unalike bench methods --graph arxiv-year-twin --only gcn appnp

    Args:
        what: What to time: engine (LINKX), methods (message passing), layers (those of
            unalike.pyg), or scale (LINKX with several processes).
        graph: A dataset or the folder of a stored graph; by default a random graph of
            the size of pokec on a GPU, and on a CPU penn94-twin for the engine,
            arxiv-year-twin for methods, a small random graph for scale; layers are
            timed on random graphs of several sizes.
        hidden: Hidden widths; by default 128 for the engine, 64 for methods and layers,
            32 and 128 for scale.
        repeats: Timed epochs or steps: the median of 10 by default, for scale the
            minimum of 4.
        only: Methods or layers to time; all of them by default.
        device: For engine, methods and layers: cpu, cuda, cuda:N, or auto, a GPU
            where there is one.
        peers: Options of engine and methods.
        layers_of_pyg: Options of layers.
        scale: Options of scale.
        data: Folder of the raw files and stored graphs.
        plot: Write a plot of the result to this file: .png, .svg or .pdf.
        json: Print one JSON document instead of tables.
    """
    if plot is not None:
        check_figure_path(plot)
    kinds: dict[str, EpochOptions | LayerOptions | ScalingOptions] = {
        **dict.fromkeys(BENCHES, peers),
        "layers": layers_of_pyg,
        "scale": scale,
    }
    options = lookup(kinds, what, "bench")
    given: dict[str, Any] = {"hidden": hidden, "repeats": repeats, "only": only}
    shared = {name: value for name, value in given.items() if value not in (None, ())}
    chosen = choose_device(device)
    with progress_bar() as bar:
        report = options.run(
            what,
            None if graph is None else find(graph, data),
            data,
            device=torch.device(chosen),
            progress=bar,
            **shared,
        )
    named = {} if what == "scale" else {"device": device_name(chosen)}
    result = {"commit": commit(), "versions": versions(), **named, **report.result}
    if plot is not None:
        save_figure(report.plot(result), plot)
    if json:
        print_json(result)
        return
    for part in report.output:
        if isinstance(part, TextTable):
            print_table(part)
        else:
            OUT.print(part)
