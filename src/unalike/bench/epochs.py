"""Time an epoch of unalike beside PyTorch Geometric."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch

from unalike.bench.baselines import (
    LINKX_BASELINES,
    METHOD_BASELINES,
    Epoch,
    PyGBaseline,
    baseline_epoch,
)
from unalike.bench.timing import bandwidth, median_seconds, peak_gib, reset_peak_memory
from unalike.data.graph import Graph
from unalike.data.metrics import ACCURACY
from unalike.data.split import Split
from unalike.data.task import Task
from unalike.errors import lookup
from unalike.methods import METHODS
from unalike.methods.base import TrainedMethod
from unalike.methods.linkx import LINKX
from unalike.nn.sparse import backend
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.full_batch import FullBatchEpochs
from unalike.training.loop import FitSpec, init_state, matmul_precision
from unalike.training.masks import RowPlan, merged_labels
from unalike.training.settings import Precision, Training
from unalike.training.state import State

# Ours: an epoch of our own engine, and the fewest bytes its sparse part moves.


MAX_EPOCHS = 10_000
"""Epochs that no measurement uses up."""


@dataclass(frozen=True, eq=False)
class EngineEpoch:
    """A stack in training, and one epoch of it."""

    state: State
    plan: RowPlan

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
        """A run for each split, ready for its first epoch."""
        graph = method.prepare(graph)
        tasks = [
            Task.from_split(graph, split, ACCURACY, seed)
            for seed, split in enumerate(splits)
        ]
        shown = merged_labels(tasks)
        runs = [
            FitSpec(method.network, task, method.training, row_wise=method.row_wise)
            for task in tasks
        ]
        state = init_state(runs, shown, device)
        plan = RowPlan.of(state.stack, tasks, shown, every_row=every_row)
        return cls(state, plan.to(device))

    def epoch(self) -> Epoch:
        """A step, then the validation grade, as `fit` takes them."""
        return FullBatchEpochs(
            self.state, self.plan, ACCURACY, self.plan.rows
        ).run_epoch

    def sparse_step(self) -> Epoch:
        """The gather of the rows, and the gather of the gradient with its step."""
        stack, plan = self.state.stack, self.plan
        weights = stack.sparse_weight("adjacency")
        slope = torch.rand(
            plan.train_rows.num_nodes,
            *weights.weight.shape[1:],
            device=weights.weight.device,
        ).to(weights.read_weight.dtype)
        kernels = backend(weights.weight.device)
        table = weights.read_weight.flatten(1)
        step = self.state.next_step()

        def part() -> None:
            plan.rows.adjacency @ table
            kernels.spmm_adamw(weights, plan.train_rows.adjacency.T, slope, step)

        return part

    def sparse_bytes(self) -> int:
        """The fewest bytes that the sparse part moves, with no luck in caches."""
        weights = self.state.stack.sparse_weight("adjacency")
        rows, learn = self.plan.rows.adjacency, self.plan.train_rows.adjacency
        width = weights.weight[0].numel()
        gathered = (rows.nnz + learn.nnz) * (
            width * weights.read_weight.element_size() + rows.indices.element_size()
        )
        written = rows.num_rows * width * 4
        state = weights.weight.numel() * (
            6 * 4 + (2 if weights.weight_bf16 is not None else 0)
        )
        return gathered + written + state


def ours_epoch(
    graph: Graph,
    split: Split,
    method: TrainedMethod,
    *,
    device: torch.device,
    every_row: bool = False,
) -> tuple[Epoch, EngineEpoch]:
    """An epoch of one run in the precision of its method."""
    ours = EngineEpoch.begin(graph, [split], method, device=device, every_row=every_row)
    epoch = ours.epoch()

    def precise_epoch() -> None:
        with matmul_precision(method.training):
            epoch()

    return precise_epoch, ours


def ours_only_epoch(
    graph: Graph, split: Split, method: TrainedMethod, *, device: torch.device
) -> tuple[Epoch, None]:
    """The same of a method whose sparse part is not timed alone."""
    return ours_epoch(graph, split, method, device=device)[0], None


# Bench: contenders that take turns, each for the time and memory of an epoch.


EpochFactory = Callable[[], tuple[Epoch, EngineEpoch | None]]
"""Makes an epoch, and what has a sparse part to be timed alone."""
PRECISIONS: dict[str, tuple[Precision, ...]] = {
    "cpu": ("float32",),
    "cuda": ("float32", "tf32", "bf16"),
}
"""The precisions that a kind of device is timed in."""


@dataclass(frozen=True)
class BenchmarkCase:
    """Somebody's epoch of a method, made when its turn comes."""

    method: str
    hidden: int
    what: str
    make: EpochFactory
    ours: bool


@dataclass(frozen=True, kw_only=True)
class EpochBenchmark(ABC):
    """What to measure, where, and whom to tell."""

    usual_hidden: ClassVar[int]
    usual_graph: ClassVar[str]
    """What a CPU is given unless told otherwise."""
    stackable: ClassVar[bool] = False
    """Are runs that train at once timed too?"""

    hidden: tuple[int, ...] = ()
    """Widths for single epochs; without any, the usual one."""
    layers: int | None = None
    """Layers of every method; without it, those that each is known for."""
    only: tuple[str, ...] = ()
    """The methods to time; without any, all of them."""
    stacks: tuple[int, ...] = (1, 10, 40, 200)
    """Numbers of runs to train at once."""
    repeats: int = 10
    """Epochs to take the median of."""
    device: torch.device
    progress: Progress = NO_PROGRESS

    @abstractmethod
    def cases(self, graph: Graph, split: Split, hidden: int) -> list[BenchmarkCase]:
        """Everybody who takes part at some width."""

    def stacked(self, graph: Graph, splits: Sequence[Split]) -> list[dict[str, Any]]:
        """Model-epochs a second for every size of a stack; none unless stackable."""
        return []

    def epochs(self, graph: Graph, split: Split) -> dict[str, Any]:
        """Time, memory and floor of an epoch for every contender and width."""
        everybody = [
            contender
            for hidden in self.hidden or (self.usual_hidden,)
            for contender in self.cases(graph, split, hidden)
        ]
        self.progress.stage("epochs", len(everybody), "contenders")
        copy = bandwidth(self.device)
        rows = []
        for one in everybody:
            about = {"method": one.method, "hidden": one.hidden, "what": one.what}
            rows.append({**about, "ours": one.ours, **self._row(one.make, copy)})
            told = f"{one.method}, {one.what}, hidden {one.hidden}"
            self.progress.advance(1, told)
        return {
            "nodes": graph.num_nodes,
            "entries": graph.adjacency.nnz,
            "features": graph.num_features,
            "copy_gb_per_second": copy / 1e9,
            "epochs": [{**row, **relative_to_fastest(row, rows)} for row in rows],
        }

    def _row(self, make: EpochFactory, copy: float) -> dict[str, Any]:
        try:
            row = self._measure(make, copy)
        except torch.OutOfMemoryError:
            row = {"ms": None, "gib": None, "out_of_memory": True}
        empty_cache(self.device)
        return row

    def _measure(self, make: EpochFactory, copy: float) -> dict[str, Any]:
        before = reset_peak_memory(self.device)
        epoch, ours = make()
        # What is made once and kept counts; the room it took to make it does not.
        epoch()
        reset_peak_memory(self.device)
        taken = median_seconds(epoch, self.device, self.repeats)
        row = {"ms": 1e3 * taken, "gib": peak_gib(self.device, before)}
        if ours is None:
            return row
        part = median_seconds(ours.sparse_step(), self.device, self.repeats)
        floor = ours.sparse_bytes() / copy
        return {**row, "sparse_ms": 1e3 * part, "sparse_floor_ms": 1e3 * floor}


def relative_to_fastest(
    row: dict[str, Any], rows: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """How many epochs fit into one of the fastest peer, and the share of its memory."""
    peers = [
        peer
        for peer in rows
        if not peer["ours"]
        and (peer["method"], peer["hidden"]) == (row["method"], row["hidden"])
        and peer["ms"] is not None
    ]
    if not peers or row["ms"] is None:
        return {"times_fastest_peer": None, "share_of_its_memory": None}
    fastest = min(peers, key=lambda peer: peer["ms"])
    known = row["gib"] is not None and fastest["gib"]
    return {
        "times_fastest_peer": fastest["ms"] / row["ms"],
        "share_of_its_memory": row["gib"] / fastest["gib"] if known else None,
    }


def empty_cache(device: torch.device) -> None:
    """Give back what the last contender held."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


# The engine bench: an epoch of LINKX, ours beside its peers.


POKEC_SIZED = {"nodes": 1_632_803, "pairs": 22_300_000, "features": 65}


@dataclass(frozen=True, kw_only=True)
class LinkxBenchmark(EpochBenchmark):
    """LINKX, by a COO layer, by PyTorch Geometric and by our engine."""

    usual_hidden = 128
    usual_graph = "penn94-twin"
    stackable = True

    stack_hidden: int = 64
    """Width of LINKX in stacks."""

    def cases(self, graph: Graph, split: Split, hidden: int) -> list[BenchmarkCase]:
        peers = [
            BenchmarkCase(
                method="linkx",
                hidden=hidden,
                what=name,
                make=partial(
                    baseline_epoch,
                    partial(make, hidden=hidden),
                    graph,
                    split,
                    self.device,
                ),
                ours=False,
            )
            for name, make in LINKX_BASELINES.items()
        ]
        return [*peers, *self._ours(graph, split, hidden)]

    def _ours(self, graph: Graph, split: Split, hidden: int) -> list[BenchmarkCase]:
        found = []
        for precision in PRECISIONS[self.device.type]:
            method = LINKX(
                hidden=hidden, training=Training(precision=precision, epochs=MAX_EPOCHS)
            )
            for every_row, told in ((False, ""), (True, ", every row scored")):
                make = partial(
                    ours_epoch,
                    graph,
                    split,
                    method,
                    device=self.device,
                    every_row=every_row,
                )
                what = f"unalike {precision}{told}"
                found.append(BenchmarkCase("linkx", hidden, what, make, ours=True))
        return found

    def time_stacks(
        self, graph: Graph, splits: Sequence[Split]
    ) -> list[dict[str, Any]]:
        self.progress.stage("stacks", len(self.stacks), "stacks")
        rows = []
        for runs in self.stacks:
            taken = self._stack(graph, [splits[i % len(splits)] for i in range(runs)])
            rate = {"ms": 1e3 * taken, "model_epochs_per_second": runs / taken}
            rows.append({"hidden": self.stack_hidden, "runs": runs, **rate})
            empty_cache(self.device)
            self.progress.advance(1, f"{runs} runs")
        return rows

    def _stack(self, graph: Graph, splits: Sequence[Split]) -> float:
        training = Training(epochs=MAX_EPOCHS)
        method = LINKX(hidden=self.stack_hidden, training=training)
        ours = EngineEpoch.begin(graph, splits, method, device=self.device)
        return median_seconds(ours.epoch(), self.device, self.repeats)


def random_graph(nodes: int, pairs: int, features: int) -> Graph:
    """A graph without structure, of a given size."""
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


# The methods bench: an epoch of message-passing methods, ours beside PyG's.


@dataclass(frozen=True, kw_only=True)
class MethodsBenchmark(EpochBenchmark):
    """Every method that PyTorch Geometric has the layers for."""

    usual_hidden = 64
    usual_graph = "arxiv-year-twin"

    def cases(self, graph: Graph, split: Split, hidden: int) -> list[BenchmarkCase]:
        there = {
            name: rival for name, rival in METHOD_BASELINES.items() if name in METHODS
        }
        found = []
        for name in self.only or there:
            rival = lookup(there, name, "timed method")
            method = self.method(name, rival, hidden)
            found += self._theirs(name, rival, method, graph, split, hidden)
            found += self._ours(name, method, graph, split, hidden)
        return found

    def method(self, name: str, rival: PyGBaseline, hidden: int) -> TrainedMethod:
        """A method with the options it is timed with."""
        options = rival.options(hidden)
        if self.layers is not None:
            options["layers"] = self.layers
        method = METHODS[name](**options)
        assert isinstance(method, TrainedMethod)
        return method

    def _theirs(
        self,
        name: str,
        rival: PyGBaseline,
        method: TrainedMethod,
        graph: Graph,
        split: Split,
        hidden: int,
    ) -> list[BenchmarkCase]:
        return [
            BenchmarkCase(
                name,
                hidden,
                what,
                partial(
                    baseline_epoch,
                    partial(rival.make, form, method),
                    graph,
                    split,
                    self.device,
                ),
                ours=False,
            )
            for what, form in rival.edge_formats.items()
        ]

    def _ours(
        self, name: str, method: TrainedMethod, graph: Graph, split: Split, hidden: int
    ) -> list[BenchmarkCase]:
        found = []
        for precision in PRECISIONS[self.device.type]:
            training = Training(precision=precision, epochs=MAX_EPOCHS)
            make = partial(
                ours_only_epoch,
                graph,
                split,
                replace(method, training=training),
                device=self.device,
            )
            found.append(
                BenchmarkCase(name, hidden, f"unalike {precision}", make, True)
            )
        return found
