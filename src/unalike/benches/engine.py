"""The engine bench: an epoch of LINKX, ours beside its peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from unalike.benches.bench import PRECISIONS, Bench, Contender, release
from unalike.benches.clock import seconds
from unalike.benches.ours import MANY, Ours, ours_epoch
from unalike.benches.peers import PEERS, theirs_epoch
from unalike.graph import Graph
from unalike.methods.linkx import LINKX
from unalike.split import Split
from unalike.training.settings import Training

POKEC_SIZED = {"nodes": 1_632_803, "pairs": 22_300_000, "features": 65}


@dataclass(frozen=True, kw_only=True)
class EngineBench(Bench):
    """LINKX, by a COO layer, by PyTorch Geometric and by our engine."""

    usual_hidden = 128
    usual_graph = "penn94-twin"
    stackable = True

    stack_hidden: int = 64
    """Width of LINKX in stacks."""

    def contenders(self, graph: Graph, split: Split, hidden: int) -> list[Contender]:
        peers = [
            Contender(
                method="linkx",
                hidden=hidden,
                what=name,
                make=partial(
                    theirs_epoch,
                    partial(make, hidden=hidden),
                    graph,
                    split,
                    self.device,
                ),
                ours=False,
            )
            for name, make in PEERS.items()
        ]
        return [*peers, *self._ours(graph, split, hidden)]

    def _ours(self, graph: Graph, split: Split, hidden: int) -> list[Contender]:
        found = []
        for precision in PRECISIONS[self.device.type]:
            method = LINKX(
                hidden=hidden, training=Training(precision=precision, epochs=MANY)
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
                found.append(Contender("linkx", hidden, what, make, ours=True))
        return found

    def stacked(self, graph: Graph, splits: Sequence[Split]) -> list[dict[str, Any]]:
        self.progress.stage("stacks", len(self.stacks), "stacks")
        rows = []
        for runs in self.stacks:
            taken = self._stack(graph, [splits[i % len(splits)] for i in range(runs)])
            rate = {"ms": 1e3 * taken, "model_epochs_per_second": runs / taken}
            rows.append({"hidden": self.stack_hidden, "runs": runs, **rate})
            release(self.device)
            self.progress.advance(1, f"{runs} runs")
        return rows

    def _stack(self, graph: Graph, splits: Sequence[Split]) -> float:
        training = Training(epochs=MANY)
        method = LINKX(hidden=self.stack_hidden, training=training)
        ours = Ours.begin(graph, splits, method, device=self.device)
        return seconds(ours.epoch(), self.device, self.repeats)


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
