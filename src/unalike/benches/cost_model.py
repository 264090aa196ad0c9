"""Cost model: seconds and bytes of an epoch, fitted to a few that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

from unalike.benches.workload import NUMBER, Workload
from unalike.spacious import COPIES
from unalike.training.room import ACTIVATION_COPIES

TERMS = ("gather", "move", "dense", "step", "byte", "message")
"""What takes time; the first two divide among processes, the others do not."""
HELD = ("table", "nodes", "batch", "program")
"""What must be in memory; the first divides among processes. The rest is mapped."""


@dataclass(frozen=True)
class SecondsModel:
    """Seconds = sum over terms of a rate times the amount in a workload."""

    rates: Mapping[str, float]

    @classmethod
    def fit(cls, loads: Sequence[Workload], seconds: Sequence[float]) -> SecondsModel:
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

    def on(self, *, cores: int, bandwidth: float, latency: float) -> SecondsModel:
        """The same work by hosts of so many cores, in bits and seconds of a network."""
        own = {term: rate / cores for term, rate in self.rates.items()}
        return SecondsModel({**own, "byte": 8 / bandwidth, "message": latency})


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
        table = NUMBER * COPIES * load.nodes * load.hidden
        return {
            "table": table / load.processes,
            "nodes": self.bytes_per_node * load.nodes,
            "batch": self.batch_copies * batch_bytes(load),
            "program": self.program,
            "edges": NUMBER * load.entries / load.processes,
            "features": NUMBER * load.features * load.nodes,
        }

    def peak(self, load: Workload) -> float:
        """The bytes of a process."""
        return sum(self.parts(load).values())


def batch_bytes(load: Workload) -> float:
    """One copy of the hidden numbers of the largest piece that is worked on."""
    rows = max(min(load.rows, load.train), load.scored_at_once)
    return float(NUMBER * rows * load.hidden)


def least_squares(
    wanted: Float[np.ndarray, "cases terms"], found: Float[np.ndarray, " cases"]
) -> Float[np.ndarray, " terms"]:
    """Factors of columns, none below 0, by the squares of relative errors."""
    relative = wanted / found[:, None]
    scale = np.linalg.norm(relative, axis=0)
    scale[scale == 0] = 1.0
    factors, _ = nnls(relative / scale, np.ones(len(found)))
    return np.asarray(factors / scale)
