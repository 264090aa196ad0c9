"""Workload: what an epoch of LINKX asks of each process, as it can be counted."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from unalike.training.joint import rows_of_piece
from unalike.training.scoring import ENTRIES_AT_ONCE, NUMBERS_AT_ONCE

NUMBER = 4
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
        most = NUMBERS_AT_ONCE["cpu"] // (self.hidden + 128)
        return max(1, min(self.valid, most, self.rows_with(ENTRIES_AT_ONCE)))

    @property
    def step_bytes(self) -> int:
        """The most that a process is sent in a step: sums, and then their totals."""
        return 2 * min(self.rows, self.train) * self.hidden * NUMBER

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
            "byte": sent * self.hidden * NUMBER,
            "message": messages,
        }

    def turns(self, rows: float) -> tuple[Turns, int]:
        """How a product of so many rows goes through the processes, and back."""
        whole = max(1, ceil(rows))
        size = rows_of_piece(whole, self.hidden, self.processes)
        pieces = ceil(whole / size)
        stretch = (pieces + self.processes - 1) / pieces
        return Turns(pieces, stretch), (self.processes - 1).bit_length()


class Turns(NamedTuple):
    """Pieces of a product, and how much longer it takes for waiting in line."""

    pieces: int
    stretch: float
