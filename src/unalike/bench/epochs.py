"""Time and memory of an epoch, compared with PyTorch Geometric."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch

from unalike.bench.baselines import (
    LINKX_BASELINES,
    METHOD_BASELINES,
    Epoch,
    ModelFactory,
    PyGBaseline,
    reference_epoch,
)
from unalike.bench.timing import (
    allocated_bytes,
    bandwidth,
    measured_peers,
    median_seconds,
    peak_gib,
)
from unalike.data.graph import Graph
from unalike.data.metrics import ACCURACY
from unalike.data.split import Split
from unalike.data.task import Task
from unalike.device import reset_peak_memory
from unalike.errors import lookup
from unalike.methods import METHODS
from unalike.methods.base import TrainedMethod
from unalike.methods.linkx import LINKX
from unalike.nn.sparse import backend
from unalike.options import check_options
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.loop import FitSpec, FullBatchEpochs, init_state, matmul_precision
from unalike.training.masks import RowPlan, merged_labels
from unalike.training.state import Precision, State, Training

Baselines = Mapping[str, ModelFactory]
"""Networks of other libraries by name."""
MAX_EPOCHS = 10_000
"""More epochs than any measurement takes."""


@dataclass(frozen=True, eq=False)
class EngineEpoch:
    """A stack of runs in full-batch training."""

    state: State
    plan: RowPlan
    training: Training

    @classmethod
    def begin(
        cls,
        graph: Graph,
        splits: Sequence[Split],
        method: TrainedMethod,
        *,
        device: torch.device,
        every_row: bool = False,
    ) -> EngineEpoch:
        """A run for each split, before its first epoch."""
        graph = method.prepare(graph)
        tasks = [
            Task.from_split(graph, split, ACCURACY, seed)
            for seed, split in enumerate(splits)
        ]
        labels = merged_labels(tasks)
        runs = [
            FitSpec(method.network, task, method.training, row_wise=method.row_wise)
            for task in tasks
        ]
        state = init_state(runs, labels, device)
        plan = RowPlan.of(state.stack, tasks, labels, every_row=every_row)
        return cls(state, plan.to(device), method.training)

    def epoch(self) -> Epoch:
        """A step and the validation score, as in `fit`."""
        epochs = FullBatchEpochs(self.state, self.plan, ACCURACY, self.plan.rows)

        def epoch_in_precision() -> None:
            with matmul_precision(self.training):
                epochs.run_epoch()

        return epoch_in_precision

    def sparse_step(self) -> Epoch:
        """The sparse product, and its backward product fused with AdamW."""
        stack, plan = self.state.stack, self.plan
        weights = stack.sparse_weight("adjacency")
        grad = torch.rand(
            plan.train_rows.num_nodes,
            *weights.weight.shape[1:],
            device=weights.weight.device,
        ).to(weights.read_weight.dtype)
        kernels = backend(weights.weight.device)
        table = weights.read_weight.flatten(1)
        step = self.state.next_step()

        def forward_and_backward() -> None:
            plan.rows.adjacency @ table
            kernels.spmm_adamw(weights, plan.train_rows.adjacency.T, grad, step)

        return forward_and_backward

    def sparse_bytes(self) -> int:
        """Bytes that the sparse step reads and writes if nothing is cached."""
        weights = self.state.stack.sparse_weight("adjacency")
        rows, train_rows = self.plan.rows.adjacency, self.plan.train_rows.adjacency
        width = weights.weight[0].numel()
        gathered = (rows.nnz + train_rows.nnz) * (
            width * weights.read_weight.element_size() + rows.indices.element_size()
        )
        written = rows.num_rows * width * 4
        state = weights.weight.numel() * (
            6 * 4 + (2 if weights.weight_bf16 is not None else 0)
        )
        return gathered + written + state


PRECISIONS: dict[str, tuple[Precision, ...]] = {
    "cpu": ("float32",),
    "cuda": ("float32", "tf32", "bf16"),
}
"""Precisions to time by type of device."""


@dataclass(frozen=True)
class BenchmarkCase:
    """An epoch of one implementation of a method."""

    method: str
    hidden: int
    what: str
    make: Callable[[], Epoch | EngineEpoch]
    ours: bool


@dataclass(frozen=True, kw_only=True)
class EpochBenchmark:
    """Times epochs of several implementations on one device."""

    default_hidden: ClassVar[int]
    default_graph: ClassVar[str]
    """The dataset on a CPU."""
    stackable: ClassVar[bool] = False
    """Are stacks of runs timed too?"""

    hidden: tuple[int, ...] = ()
    """Hidden widths; the default one if empty."""
    layers: int | None = None
    """Layers of every method; its default ones if None."""
    only: tuple[str, ...] = ()
    """Methods to time; all of them if empty."""
    stacks: tuple[int, ...] = (1, 10, 40, 200)
    repeats: int = 10
    """Epochs to take the median of."""
    device: torch.device
    progress: Progress = NO_PROGRESS

    def __post_init__(self) -> None:
        check_options(self)

    def methods(self, hidden: int) -> Iterator[tuple[str, TrainedMethod, Baselines]]:
        """The names of the methods to time at a width, with their baselines."""
        raise NotImplementedError

    def time_stacks(
        self, graph: Graph, splits: Sequence[Split]
    ) -> list[dict[str, Any]]:
        """Model-epochs per second for every size of a stack; none unless stackable."""
        return []

    def cases(self, graph: Graph, split: Split, hidden: int) -> list[BenchmarkCase]:
        """The baselines of the methods, then unalike in every precision.

        Where stacks are timed, the sparse step and an epoch that scores all rows too.
        """
        cases = []
        make: Callable[[], Epoch | EngineEpoch]
        for name, method, baselines in self.methods(hidden):
            for what, model in baselines.items():
                make = partial(_reference, model, graph, split, self.device)
                cases.append(BenchmarkCase(name, hidden, what, make, ours=False))
            for precision in PRECISIONS[self.device.type]:
                training = Training(precision=precision, epochs=MAX_EPOCHS)
                timed = replace(method, training=training)
                for every_row in (False, True)[: 1 + self.stackable]:
                    make = partial(
                        EngineEpoch.begin,
                        graph,
                        [split],
                        timed,
                        device=self.device,
                        every_row=every_row,
                    )
                    what = f"unalike {precision}{', every row scored' * every_row}"
                    cases.append(BenchmarkCase(name, hidden, what, make, ours=True))
        return cases

    def epochs(self, graph: Graph, split: Split) -> dict[str, Any]:
        """Time, memory and bandwidth bound of an epoch for every case and width."""
        cases = [
            case
            for hidden in self.hidden or (self.default_hidden,)
            for case in self.cases(graph, split, hidden)
        ]
        self.progress.stage("epochs", len(cases), "cases")
        copy_rate = bandwidth(self.device)
        rows = []
        for case in cases:
            names = {"method": case.method, "hidden": case.hidden, "what": case.what}
            try:
                measured = self._measure(case.make, copy_rate)
            except torch.OutOfMemoryError:
                measured = {"ms": None, "gib": None, "out_of_memory": True}
            free_memory(self.device)
            rows.append({**names, "ours": case.ours, **measured})
            note = f"{case.method}, {case.what}, hidden {case.hidden}"
            self.progress.advance(1, note)
        return {
            "nodes": graph.num_nodes,
            "entries": graph.adjacency.nnz,
            "features": graph.num_features,
            "copy_gb_per_second": copy_rate / 1e9,
            "epochs": [{**row, **relative_to_fastest(row, rows)} for row in rows],
        }

    def _measure(
        self, make: Callable[[], Epoch | EngineEpoch], copy_rate: float
    ) -> dict[str, Any]:
        before = allocated_bytes(self.device)
        made = make()
        epoch = made.epoch() if isinstance(made, EngineEpoch) else made
        # Temporary memory of the preparation does not count, what it leaves does.
        epoch()
        reset_peak_memory(str(self.device))
        seconds = median_seconds(epoch, self.device, self.repeats)
        row = {"ms": 1e3 * seconds, "gib": peak_gib(self.device, before)}
        if not (self.stackable and isinstance(made, EngineEpoch)):
            return row
        sparse = median_seconds(made.sparse_step(), self.device, self.repeats)
        bound = made.sparse_bytes() / copy_rate
        return {**row, "sparse_ms": 1e3 * sparse, "sparse_floor_ms": 1e3 * bound}


def relative_to_fastest(
    row: dict[str, Any], rows: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Speed-up over the fastest baseline, and memory as a fraction of its memory."""
    peers = measured_peers(row, rows, "ms", ("method", "hidden"))
    if not peers:
        return {"times_fastest_peer": None, "share_of_its_memory": None}
    fastest = min(peers, key=lambda peer: peer["ms"])
    has_memory = row["gib"] is not None and fastest["gib"]
    return {
        "times_fastest_peer": fastest["ms"] / row["ms"],
        "share_of_its_memory": row["gib"] / fastest["gib"] if has_memory else None,
    }


def free_memory(device: torch.device) -> None:
    """Free the memory of the previous case."""
    gc.collect()
    reset_peak_memory(str(device))


def _reference(
    model: ModelFactory, graph: Graph, split: Split, device: torch.device
) -> Epoch:
    return reference_epoch(model, graph.to(device), split)


POKEC_SIZED = {"nodes": 1_632_803, "pairs": 22_300_000, "features": 65}


@dataclass(frozen=True, kw_only=True)
class LinkxBenchmark(EpochBenchmark):
    """LINKX by a COO linear layer, by PyTorch Geometric and by unalike."""

    default_hidden = 128
    default_graph = "penn94-twin"
    stackable = True

    stack_hidden: int = 64
    """Hidden width of LINKX in stacks."""

    def methods(self, hidden: int) -> Iterator[tuple[str, TrainedMethod, Baselines]]:
        baselines = {
            what: partial(make, hidden=hidden) for what, make in LINKX_BASELINES.items()
        }
        yield "linkx", LINKX(hidden=hidden), baselines

    def time_stacks(
        self, graph: Graph, splits: Sequence[Split]
    ) -> list[dict[str, Any]]:
        self.progress.stage("stacks", len(self.stacks), "stacks")
        rows = []
        method = LINKX(hidden=self.stack_hidden, training=Training(epochs=MAX_EPOCHS))
        for runs in self.stacks:
            splits_of_runs = [splits[i % len(splits)] for i in range(runs)]
            engine = EngineEpoch.begin(
                graph, splits_of_runs, method, device=self.device
            )
            seconds = median_seconds(engine.epoch(), self.device, self.repeats)
            del engine
            rows.append(
                {
                    "hidden": self.stack_hidden,
                    "runs": runs,
                    "ms": 1e3 * seconds,
                    "model_epochs_per_second": runs / seconds,
                }
            )
            free_memory(self.device)
            self.progress.advance(1, f"{runs} runs")
        return rows


def random_graph(nodes: int, pairs: int, features: int) -> Graph:
    """A random graph of a given size."""
    torch.manual_seed(0)
    source, target = torch.randint(nodes, (2, pairs))
    return Graph.from_edges(
        source,
        target,
        num_nodes=nodes,
        features=torch.randn(nodes, features),
        labels=torch.randint(2, (nodes,)),
        num_classes=2,
    )


@dataclass(frozen=True, kw_only=True)
class MethodsBenchmark(EpochBenchmark):
    """Message-passing methods by the layers of PyTorch Geometric and by unalike."""

    default_hidden = 64
    default_graph = "arxiv-year-twin"

    def methods(self, hidden: int) -> Iterator[tuple[str, TrainedMethod, Baselines]]:
        for name in self.only or METHOD_BASELINES:
            baseline = lookup(METHOD_BASELINES, name, "timed method")
            method = self.method(name, baseline, hidden)
            yield (
                name,
                method,
                {
                    what: partial(baseline.make, edge_format, method)
                    for what, edge_format in baseline.edge_formats.items()
                },
            )

    def method(self, name: str, baseline: PyGBaseline, hidden: int) -> TrainedMethod:
        options = baseline.options(hidden)
        if self.layers is not None:
            options["layers"] = self.layers
        method = METHODS[name](**options)
        assert isinstance(method, TrainedMethod)
        return method
