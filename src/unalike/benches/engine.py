"""The engine bench: an epoch of LINKX, ours beside its peers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from unalike.benches.clock import bandwidth, held_bytes, peak_gib, seconds
from unalike.benches.ours import MANY, Ours, ours_epoch
from unalike.benches.peers import PEERS, Epoch, peer_epoch
from unalike.graph import Graph
from unalike.methods.linkx import LINKX
from unalike.progress import SILENT, Progress
from unalike.split import Split
from unalike.training.settings import Precision, Training

Maker = Callable[[], tuple[Epoch, Ours | None]]
POKEC_SIZED = {"nodes": 1_632_803, "pairs": 22_300_000, "features": 65}


@dataclass(frozen=True, kw_only=True)
class EngineBench:
    """What to measure, where, and whom to tell."""

    hidden: tuple[int, ...] = (128,)
    """Widths of LINKX for single epochs."""
    stacks: tuple[int, ...] = (1, 10, 40, 200)
    """Numbers of runs to train at once."""
    stack_hidden: int = 64
    """Width of LINKX in stacks."""
    repeats: int = 10
    """Epochs to take the median of."""
    device: torch.device
    progress: Progress = SILENT

    def epochs(self, graph: Graph, split: Split) -> dict[str, Any]:
        """Time, memory and floor of an epoch for every contender and width."""
        self.progress.stage("epochs", None, "contenders")
        copy = bandwidth(self.device)
        rows = []
        for hidden in self.hidden:
            for name, make in contenders(graph, split, hidden, self.device).items():
                row = self._row(make, copy)
                rows.append({"hidden": hidden, "what": name, **row})
                self.progress.advance(1, f"{name}, hidden {hidden}")
        return {
            "nodes": graph.num_nodes,
            "entries": graph.adjacency.num_entries,
            "features": graph.num_features,
            "copy_gb_per_second": copy / 1e9,
            "epochs": rows,
        }

    def stacked(self, graph: Graph, splits: Sequence[Split]) -> list[dict[str, Any]]:
        """Model-epochs a second for every size of a stack."""
        self.progress.stage("stacks", len(self.stacks), "stacks")
        rows = []
        for runs in self.stacks:
            taken = self._stack(graph, [splits[i % len(splits)] for i in range(runs)])
            rate = {"ms": 1e3 * taken, "model_epochs_per_second": runs / taken}
            rows.append({"hidden": self.stack_hidden, "runs": runs, **rate})
            release(self.device)
            self.progress.advance(1, f"{runs} runs")
        return rows

    def _row(self, make: Maker, copy: float) -> dict[str, Any]:
        try:
            row = self._measure(make, copy)
        except torch.OutOfMemoryError:
            row = {"ms": None, "gib": None}
        release(self.device)
        return row

    def _measure(self, make: Maker, copy: float) -> dict[str, Any]:
        before = held_bytes(self.device)
        epoch, ours = make()
        taken = seconds(epoch, self.device, self.repeats)
        row = {"ms": 1e3 * taken, "gib": peak_gib(self.device, before)}
        if ours is None:
            return row
        part = seconds(ours.sparse_part(), self.device, self.repeats)
        floor = ours.sparse_bytes() / copy
        return {**row, "sparse_ms": 1e3 * part, "sparse_floor_ms": 1e3 * floor}

    def _stack(self, graph: Graph, splits: Sequence[Split]) -> float:
        training = Training(epochs=MANY)
        method = LINKX(hidden=self.stack_hidden, training=training)
        ours = Ours.begin(graph, splits, method, device=self.device)
        return seconds(ours.epoch(), self.device, self.repeats)


def contenders(
    graph: Graph, split: Split, hidden: int, device: torch.device
) -> dict[str, Maker]:
    """Everything to be timed, made when its turn comes."""
    found: dict[str, Maker] = {
        name: partial(theirs_epoch, make, graph, split, hidden, device)
        for name, make in PEERS.items()
    }
    on_card = device.type == "cuda"
    precisions: tuple[Precision, ...] = ("float32", "tf32", "bf16")
    for precision in precisions if on_card else precisions[:1]:
        for every_row, told in ((False, ""), (True, ", every row scored")):
            found[f"unalike {precision}{told}"] = partial(
                ours_epoch,
                graph,
                split,
                hidden,
                device=device,
                precision=precision,
                every_row=every_row,
            )
    return found


def theirs_epoch(
    make: Callable[[Graph, int], tuple[torch.nn.Module, torch.Tensor]],
    graph: Graph,
    split: Split,
    hidden: int,
    device: torch.device,
) -> tuple[Epoch, None]:
    """An epoch of a peer."""
    return peer_epoch(make, graph.to(device), split, hidden), None


def release(device: torch.device) -> None:
    """Give back what the last contender held."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


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
