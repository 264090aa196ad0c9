"""Draws: random entries of sparse rows, and random steps along them."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from unalike.adjacency import Adjacency, Ids
from unalike.errors import UserError


def uniform(size: int, count: int, chance: torch.Generator) -> Ids:
    """Numbers below `size`, each as likely as any other; none if there are none."""
    return torch.randint(max(1, size), (count if size else 0,), generator=chance)


def entries(rows: Adjacency, count: int, chance: torch.Generator) -> Ids:
    """Places of random entries."""
    require_edges(rows)
    return uniform(rows.num_entries, count, chance).to(rows.columns.device)


def sources_of(rows: Adjacency, places: Ids) -> Ids:
    """The rows in which entries stand."""
    return torch.searchsorted(rows.starts, places, right=True) - 1


def step(
    rows: Adjacency, nodes: Int[Tensor, " walks"], chance: torch.Generator
) -> Int[Tensor, " walks"]:
    """A random neighbour of each node; a node without any stays where it is."""
    share = torch.rand(len(nodes), dtype=torch.float64, generator=chance)
    degrees = rows.degrees[nodes]
    moves = degrees > 0
    places = rows.starts[nodes] + (share.to(nodes.device) * degrees).long()
    reached = nodes.clone()
    reached[moves] = rows.columns[places[moves]].to(nodes.dtype)
    return reached


def require_edges(rows: Adjacency) -> None:
    """Refuse a graph without edges, from which none can be drawn."""
    if not rows.num_entries:
        raise UserError("The graph has no edges, and these batches draw edges.")
