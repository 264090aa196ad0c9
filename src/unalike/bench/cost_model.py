"""Fitted model of time and memory; prediction for a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

from unalike.data.memmap import COPIES
from unalike.errors import UserError
from unalike.training.distributed import chunk_rows
from unalike.training.stack import ACTIVATION_COPIES
from unalike.training.step import MAX_NNZ, MAX_NUMEL

# Workload: what an epoch of LINKX asks of each process, as it can be counted.


FLOAT_BYTES = 4
"""Bytes of a number."""


class Products(NamedTuple):
    """Products of the first layer that are alike."""

    times: int
    rows: float


@dataclass(frozen=True, kw_only=True)
class Workload:
    """An epoch in batches of rows: steps on train nodes, a grade of valid nodes."""

    nodes: int
    entries: int
    """Edges as they are stored: undirected ones both ways."""
    features: int
    train: int
    valid: int
    hidden: int
    rows: int
    """Train nodes in a batch."""
    processes: int
    crowd: float = 1.0
    """Processes for each core that one of them could have."""

    @property
    def steps(self) -> int:
        return ceil(self.train / self.rows)

    @property
    def scored_at_once(self) -> int:
        """Rows that are scored together, as far as memory is planned for them."""
        most = MAX_NUMEL["cpu"] // (self.hidden + 128)
        return max(1, min(self.valid, most, self.rows_with(MAX_NNZ)))

    @property
    def step_bytes(self) -> int:
        """The most that a process is sent in a step: sums, and then their totals."""
        return 2 * min(self.rows, self.train) * self.hidden * FLOAT_BYTES

    def rows_with(self, entries: int) -> int:
        """Rows that have so many entries, on average."""
        return int(entries * self.nodes / max(1, self.entries))

    def products(self) -> list[Products]:
        """The products of an epoch: those of steps, those of the grade."""
        pieces = ceil(self.valid / self.scored_at_once)
        graded = Products(pieces, self.valid / max(1, pieces))
        return [Products(self.steps, self.train / self.steps), graded]

    def amounts(self) -> dict[str, float]:
        """How much there is of everything that takes time, for each process.

        Processes add their columns in turn, piece by piece. So the last of N begins
        when N - 1 have had the first of k pieces: all wait (k + N - 1) / k of the time
        that their own share takes. Totals come back along a tree of log2(N) hops.
        """
        degree, crowd = self.entries / max(1, self.nodes), self.crowd
        gathered = self.train * degree
        sent = messages = 0.0
        for times, rows in self.products():
            turns, hops = self.turns(rows)
            gathered += times * rows * degree * turns.stretch
            if self.processes > 1:
                sent += times * rows * (turns.stretch + hops)
                messages += times * (turns.pieces + self.processes - 1 + hops)
        own = self.hidden * crowd / self.processes
        mixed = self.hidden * (2 * self.hidden + self.features)
        return {
            "gather": gathered * own,
            "move": self.steps * self.nodes * own,
            "dense": (3 * self.train + self.valid) * mixed * crowd,
            "step": sum(times for times, _ in self.products()) * crowd,
            "byte": sent * self.hidden * FLOAT_BYTES,
            "message": messages,
        }

    def turns(self, rows: float) -> tuple[Pipeline, int]:
        """How a product of so many rows goes through the processes, and back."""
        whole = max(1, ceil(rows))
        size = chunk_rows(whole, self.hidden, self.processes)
        pieces = ceil(whole / size)
        stretch = (pieces + self.processes - 1) / pieces
        return Pipeline(pieces, stretch), (self.processes - 1).bit_length()


class Pipeline(NamedTuple):
    """Pieces of a product, and how much longer it takes for waiting in line."""

    pieces: int
    stretch: float


# Cost model: seconds and bytes of an epoch, fitted to a few that were measured.


TERMS = ("gather", "move", "dense", "step", "byte", "message")
"""What takes time; the first two divide among processes, the others do not."""
HELD = ("table", "nodes", "batch", "program")
"""What must be in memory; the first divides among processes. The rest is mapped."""


@dataclass(frozen=True)
class TimeModel:
    """Seconds = sum over terms of a rate times the amount in a workload."""

    rates: Mapping[str, float]

    @classmethod
    def fit(cls, loads: Sequence[Workload], seconds: Sequence[float]) -> TimeModel:
        """The rates, none below 0, with the least squares of relative errors."""
        wanted = np.array([[load.amounts()[term] for term in TERMS] for load in loads])
        rates = least_squares(wanted, np.array(seconds))
        return cls(dict(zip(TERMS, rates.tolist(), strict=True)))

    def parts(self, load: Workload) -> dict[str, float]:
        """The seconds of an epoch, by what takes them."""
        return {term: self.rates[term] * n for term, n in load.amounts().items()}

    def seconds(self, load: Workload) -> float:
        """The seconds of an epoch."""
        return sum(self.parts(load).values())

    def on(self, *, cores: int, bandwidth: float, latency: float) -> TimeModel:
        """The same work by hosts of so many cores, in bits and seconds of a network."""
        own = {term: rate / cores for term, rate in self.rates.items()}
        return TimeModel({**own, "byte": 8 / bandwidth, "message": latency})


@dataclass(frozen=True)
class MemoryModel:
    """Bytes = table * copies / N + edges / N + nodes + features + batch + program."""

    bytes_per_node: float
    """What every process holds of each node, its features apart; counted."""
    batch_copies: float
    """Hidden numbers that a step holds for each row and unit; fitted."""
    program: float
    """Bytes of a process that has not begun; fitted."""

    @classmethod
    def fit(
        cls, loads: Sequence[Workload], peaks: Sequence[float], bytes_per_node: float
    ) -> MemoryModel:
        """Fit what cannot be counted to what was resident at its peak.

        Batches of one size cannot be told from the program; they are then planned for.
        """
        counted = cls(bytes_per_node, 0.0, 0.0)
        left = [
            peak - sum(counted.parts(load).values())
            for load, peak in zip(loads, peaks, strict=True)
        ]
        if len({batch_bytes(load) for load in loads}) == 1:
            planned = ACTIVATION_COPIES * batch_bytes(loads[0])
            return cls(bytes_per_node, float(ACTIVATION_COPIES), fmean(left) - planned)
        wanted = np.array([[batch_bytes(load), 1.0] for load in loads])
        copies, program = least_squares(wanted, np.array(left)).tolist()
        return cls(bytes_per_node, copies, program)

    def parts(self, load: Workload) -> dict[str, float]:
        """The bytes of a process, by what they hold."""
        table = FLOAT_BYTES * COPIES * load.nodes * load.hidden
        return {
            "table": table / load.processes,
            "nodes": self.bytes_per_node * load.nodes,
            "batch": self.batch_copies * batch_bytes(load),
            "program": self.program,
            "edges": FLOAT_BYTES * load.entries / load.processes,
            "features": FLOAT_BYTES * load.features * load.nodes,
        }

    def peak(self, load: Workload) -> float:
        """The bytes of a process."""
        return sum(self.parts(load).values())


def batch_bytes(load: Workload) -> float:
    """One copy of the hidden numbers of the largest piece that is worked on."""
    rows = max(min(load.rows, load.train), load.scored_at_once)
    return float(FLOAT_BYTES * rows * load.hidden)


def least_squares(
    wanted: Float[np.ndarray, "cases terms"], found: Float[np.ndarray, " cases"]
) -> Float[np.ndarray, " terms"]:
    """Factors of columns, none below 0, by the squares of relative errors."""
    relative = wanted / found[:, None]
    scale = np.linalg.norm(relative, axis=0)
    scale[scale == 0] = 1.0
    factors, _ = nnls(relative / scale, np.ones(len(found)))
    return np.asarray(factors / scale)


# Cluster: hosts that nobody has measured, and a graph that is larger than any here.


HOST_FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4)
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
        return sorted({max(1, int(self.hosts * times)) for times in HOST_FACTORS})

    def predict(
        self, seconds: TimeModel, memory: MemoryModel, like: Workload
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
        self, seconds: TimeModel, memory: MemoryModel, load: Workload
    ) -> dict[str, Any]:
        taken, held = seconds.parts(load), memory.parts(load)
        return {
            "hosts": load.processes,
            "seconds": sum(taken.values()),
            "seconds_by": taken,
            "held_bytes": sum(held[part] for part in HELD),
            "bytes_by": held,
        }
