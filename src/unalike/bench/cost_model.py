"""Fitted model of the time and memory of an epoch, and prediction for a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from statistics import fmean
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

from unalike.errors import UserError
from unalike.nn.weights_on_disk import COPIES
from unalike.training.distributed import chunk_rows
from unalike.training.stack import ACTIVATION_COPIES
from unalike.training.step import MAX_NNZ, MAX_NUMEL

FLOAT_BYTES = 4

TERMS = {
    "gather": "gathering table rows",
    "move": "AdamW on the table",
    "dense": "dense layers",
    "step": "starting steps",
    "byte": "sending bytes",
    "message": "waiting for messages",
}
"""Terms of the time of an epoch; the first two divide among processes."""
RESIDENT = {
    "table": "table and optimizer",
    "nodes": "labels, degrees, scores",
    "batch": "batch",
    "program": "program",
}
"""Parts of the memory of a process; the first divides among processes."""
MAPPED = {"edges": "edges", "features": "features"}
"""Parts that are mapped from files."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Sizes of a LINKX epoch: steps on batches of train rows, then validation."""

    nodes: int
    entries: int
    """Stored edges: undirected ones in both directions."""
    features: int
    train: int
    valid: int
    hidden: int
    rows: int
    """Train nodes in a batch."""
    processes: int
    oversubscription: float = 1.0
    """Processes for each core, at least 1."""

    @property
    def steps(self) -> int:
        return ceil(self.train / self.rows)

    @property
    def inference_rows(self) -> int:
        max_rows = MAX_NUMEL["cpu"] // (self.hidden + 128)
        rows_of_nnz = int(MAX_NNZ * self.nodes / max(1, self.entries))
        return max(1, min(self.valid, max_rows, rows_of_nnz))

    @property
    def step_bytes(self) -> int:
        """Upper bound of the bytes that a process receives in a step."""
        return 2 * min(self.rows, self.train) * self.hidden * FLOAT_BYTES

    def products(self) -> list[tuple[int, float]]:
        """How many sparse products of how many rows: of the steps, of validation."""
        num_batches = ceil(self.valid / self.inference_rows)
        validation = (num_batches, self.valid / max(1, num_batches))
        return [(self.steps, self.train / self.steps), validation]

    def amounts(self) -> dict[str, float]:
        """The amount of each term of the time, for each process.

        N processes form a pipeline: each adds the product of its columns to a chunk
        and sends it on. With k chunks a product takes (k + N - 1) / k times as long as
        the chunks of one process. Totals are broadcast by a tree of log2(N) hops.
        """
        degree = self.entries / max(1, self.nodes)
        gathered = self.train * degree
        sent = messages = 0.0
        hops = (self.processes - 1).bit_length()
        for repeats, rows in self.products():
            num_rows = max(1, ceil(rows))
            chunks = ceil(num_rows / chunk_rows(num_rows, self.hidden, self.processes))
            slowdown = (chunks + self.processes - 1) / chunks
            gathered += repeats * rows * degree * slowdown
            if self.processes > 1:
                sent += repeats * rows * (slowdown + hops)
                messages += repeats * (chunks + self.processes - 1 + hops)
        per_process = self.hidden * self.oversubscription / self.processes
        dense = self.hidden * (2 * self.hidden + self.features)
        num_products = sum(repeats for repeats, _ in self.products())
        return {
            "gather": gathered * per_process,
            "move": self.steps * self.nodes * per_process,
            "dense": (3 * self.train + self.valid) * dense * self.oversubscription,
            "step": num_products * self.oversubscription,
            "byte": sent * self.hidden * FLOAT_BYTES,
            "message": messages,
        }


# Models of time and memory.


@dataclass(frozen=True)
class TimeModel:
    """Seconds = sum over terms of a rate times the amount in a workload."""

    rates: Mapping[str, float]

    @classmethod
    def fit(cls, loads: Sequence[Workload], seconds: Sequence[float]) -> TimeModel:
        """Fit the rates by non-negative least squares of relative errors."""
        amounts = np.array([[load.amounts()[term] for term in TERMS] for load in loads])
        rates = least_squares(amounts, np.array(seconds))
        return cls(dict(zip(TERMS, rates.tolist(), strict=True)))

    def parts(self, load: Workload) -> dict[str, float]:
        return {term: self.rates[term] * n for term, n in load.amounts().items()}

    def seconds(self, load: Workload) -> float:
        return sum(self.parts(load).values())

    def on(self, *, cores: int, bandwidth: float, latency: float) -> TimeModel:
        """The rates of other hosts; bandwidth in bit/s, latency in seconds."""
        rates = {term: rate / cores for term, rate in self.rates.items()}
        return TimeModel({**rates, "byte": 8 / bandwidth, "message": latency})


@dataclass(frozen=True)
class MemoryModel:
    """Bytes = table * copies / N + edges / N + nodes + features + batch + program."""

    bytes_per_node: float
    """Bytes of each node in every process, without features; counted."""
    batch_copies: float
    """Activations of a step for each row and hidden unit; fitted."""
    program: float
    """Bytes of a process before training; fitted."""

    @classmethod
    def fit(
        cls, loads: Sequence[Workload], peaks: Sequence[float], bytes_per_node: float
    ) -> MemoryModel:
        """Fit the parts that cannot be counted to measured peaks.

        If all batches have one size, their memory is not fitted but assumed to be
        `ACTIVATION_COPIES`.
        """
        counted = cls(bytes_per_node, 0.0, 0.0)
        residuals = [
            peak - sum(counted.parts(load).values())
            for load, peak in zip(loads, peaks, strict=True)
        ]
        if len({batch_bytes(load) for load in loads}) == 1:
            copies = float(ACTIVATION_COPIES)
            program = fmean(residuals) - copies * batch_bytes(loads[0])
            return cls(bytes_per_node, copies, program)
        columns = np.array([[batch_bytes(load), 1.0] for load in loads])
        copies, program = least_squares(columns, np.array(residuals)).tolist()
        return cls(bytes_per_node, copies, program)

    def parts(self, load: Workload) -> dict[str, float]:
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
        return sum(self.parts(load).values())


def batch_bytes(load: Workload) -> float:
    """The bytes of one hidden layer of the largest batch."""
    rows = max(min(load.rows, load.train), load.inference_rows)
    return float(FLOAT_BYTES * rows * load.hidden)


def least_squares(
    columns: Float[np.ndarray, "cases terms"], measured: Float[np.ndarray, " cases"]
) -> Float[np.ndarray, " terms"]:
    """Non-negative least squares of relative errors."""
    relative = columns / measured[:, None]
    scale = np.linalg.norm(relative, axis=0)
    scale[scale == 0] = 1.0
    factors, _ = nnls(relative / scale, np.ones(len(measured)))
    return np.asarray(factors / scale)


HOST_FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4)
"""Numbers of hosts to predict for, as multiples of the requested number."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A graph, the hosts that train on it, and their network."""

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
            if not (value := getattr(self, field.name)) > 0:
                raise UserError(f"--{field.name} is {value}; it must be above 0.")

    def load(self, like: Workload, hosts: int) -> Workload:
        """The workload of some hosts, with the split and width of a measured one."""
        return replace(
            like,
            nodes=self.nodes,
            entries=2 * self.edges,
            train=max(1, self.nodes * like.train // like.nodes),
            valid=self.nodes * like.valid // like.nodes,
            rows=self.batch,
            processes=hosts,
            oversubscription=1.0,
        )

    def counts(self) -> list[int]:
        return sorted({max(1, int(self.hosts * factor)) for factor in HOST_FACTORS})

    def predict(
        self, seconds: TimeModel, memory: MemoryModel, like: Workload
    ) -> dict[str, Any]:
        """Seconds and bytes on several numbers of hosts, by term and part."""
        on_cluster = seconds.on(
            cores=self.cores,
            bandwidth=1e9 * self.bandwidth,
            latency=1e-6 * self.latency,
        )
        loads = [self.load(like, hosts) for hosts in self.counts()]
        rows = []
        for load in loads:
            seconds_by, bytes_by = on_cluster.parts(load), memory.parts(load)
            row = {
                "hosts": load.processes,
                "seconds": sum(seconds_by.values()),
                "seconds_by": seconds_by,
                "held_bytes": sum(bytes_by[part] for part in RESIDENT),
                "bytes_by": bytes_by,
            }
            rows.append(row)
        return {
            **vars(self),
            "features": like.features,
            "hidden": like.hidden,
            "steps": loads[0].steps,
            "by_hosts": rows,
        }
