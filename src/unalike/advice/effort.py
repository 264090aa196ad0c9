"""Effort: how much of a graph is tried, and how often, by what computes."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Effort:
    """What keeps trials short."""

    entries: int
    """Entries of an adjacency past which it is sampled, or drawn from fewer times."""
    nodes: int
    """Nodes past which a graph is sampled."""
    draws: int
    """Draws at most."""


EFFORTS = {
    "cpu": Effort(entries=2**20, nodes=2**16, draws=6),
    "cuda": Effort(entries=2**25, nodes=2**20, draws=20),
}


def effort(device: str) -> Effort:
    """What a device can try in a minute."""
    return EFFORTS[torch.device(device).type]
