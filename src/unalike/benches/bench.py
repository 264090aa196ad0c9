"""Bench: contenders that take turns, each for the time and memory of an epoch."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unalike.benches.clock import bandwidth, held_bytes, peak_gib, seconds
from unalike.benches.ours import Ours
from unalike.benches.peers import Epoch
from unalike.graph import Graph
from unalike.progress import SILENT, Progress
from unalike.split import Split
from unalike.training.settings import Precision

Maker = Callable[[], tuple[Epoch, Ours | None]]
"""Makes an epoch, and what has a sparse part to be timed alone."""
PRECISIONS: dict[str, tuple[Precision, ...]] = {
    "cpu": ("float32",),
    "cuda": ("float32", "tf32", "bf16"),
}
"""The precisions that a kind of device is timed in."""


@dataclass(frozen=True)
class Contender:
    """Somebody's epoch of a method, made when its turn comes."""

    method: str
    hidden: int
    what: str
    make: Maker
    ours: bool


@dataclass(frozen=True, kw_only=True)
class Bench(ABC):
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
    progress: Progress = SILENT

    @abstractmethod
    def contenders(self, graph: Graph, split: Split, hidden: int) -> list[Contender]:
        """Everybody who takes part at some width."""

    def stacked(self, graph: Graph, splits: Sequence[Split]) -> list[dict[str, Any]]:
        """Model-epochs a second for every size of a stack; none unless stackable."""
        return []

    def epochs(self, graph: Graph, split: Split) -> dict[str, Any]:
        """Time, memory and floor of an epoch for every contender and width."""
        everybody = [
            contender
            for hidden in self.hidden or (self.usual_hidden,)
            for contender in self.contenders(graph, split, hidden)
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
            "entries": graph.adjacency.num_entries,
            "features": graph.num_features,
            "copy_gb_per_second": copy / 1e9,
            "epochs": [{**row, **ratios(row, rows)} for row in rows],
        }

    def _row(self, make: Maker, copy: float) -> dict[str, Any]:
        try:
            row = self._measure(make, copy)
        except torch.OutOfMemoryError:
            row = {"ms": None, "gib": None, "out_of_memory": True}
        release(self.device)
        return row

    def _measure(self, make: Maker, copy: float) -> dict[str, Any]:
        before = held_bytes(self.device)
        epoch, ours = make()
        # What is made once and kept counts; the room it took to make it does not.
        epoch()
        held_bytes(self.device)
        taken = seconds(epoch, self.device, self.repeats)
        row = {"ms": 1e3 * taken, "gib": peak_gib(self.device, before)}
        if ours is None:
            return row
        part = seconds(ours.sparse_part(), self.device, self.repeats)
        floor = ours.sparse_bytes() / copy
        return {**row, "sparse_ms": 1e3 * part, "sparse_floor_ms": 1e3 * floor}


def ratios(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
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


def release(device: torch.device) -> None:
    """Give back what the last contender held."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
