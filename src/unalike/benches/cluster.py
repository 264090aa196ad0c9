"""Cluster: hosts that nobody has measured, and a graph that is larger than any here."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from unalike.benches.cost_model import HELD, MemoryModel, SecondsModel
from unalike.benches.workload import Workload
from unalike.errors import UserError

TIMES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4)
"""Other numbers of hosts to look at, in those that are asked for."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What to predict: a graph, the hosts that train on it, and their network."""

    nodes: int = 1_000_000_000
    """Nodes of the graph to predict for."""
    edges: int = 100_000_000_000
    """Undirected edges of the graph to predict for."""
    hosts: int = 64
    """Hosts to predict for, a process on each."""
    cores: int = 16
    """Cores of a host; they are taken to share the work evenly."""
    bandwidth: float = 10.0
    """Gbit a second that a host sends and receives."""
    latency: float = 50.0
    """Microseconds until a message arrives."""
    batch: int = 1_000_000
    """Train nodes in a batch of the prediction."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                told = getattr(self, field.name)
                raise UserError(f"--{field.name} is {told}; it must be above 0.")

    def load(self, like: Workload, hosts: int) -> Workload:
        """An epoch of so many hosts, with the width and shares of a measured one."""
        return replace(
            like,
            nodes=self.nodes,
            entries=2 * self.edges,
            train=max(1, self.nodes * like.train // like.nodes),
            valid=self.nodes * like.valid // like.nodes,
            rows=self.batch,
            processes=hosts,
            crowd=1.0,
        )

    def counts(self) -> list[int]:
        """Some numbers of hosts around the one that is asked for."""
        return sorted({max(1, int(self.hosts * times)) for times in TIMES})

    def predict(
        self, seconds: SecondsModel, memory: MemoryModel, like: Workload
    ) -> dict[str, Any]:
        """Seconds and bytes on several numbers of hosts, by what takes them."""
        there = seconds.on(
            cores=self.cores,
            bandwidth=1e9 * self.bandwidth,
            latency=1e-6 * self.latency,
        )
        loads = [self.load(like, hosts) for hosts in self.counts()]
        return {
            **vars(self),
            "features": like.features,
            "hidden": like.hidden,
            "steps": loads[0].steps,
            "by_hosts": [self._row(there, memory, load) for load in loads],
        }

    def _row(
        self, seconds: SecondsModel, memory: MemoryModel, load: Workload
    ) -> dict[str, Any]:
        taken, held = seconds.parts(load), memory.parts(load)
        return {
            "hosts": load.processes,
            "seconds": sum(taken.values()),
            "seconds_by": taken,
            "held_bytes": sum(held[part] for part in HELD),
            "bytes_by": held,
        }
