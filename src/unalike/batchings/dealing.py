"""Dealing: nodes handed out to parts, each node to one part."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from unalike.adjacency import Ids
from unalike.graph import Graph


def members(part_of_node: Int[Tensor, " nodes"], parts: int) -> tuple[Ids, ...]:
    """The nodes of each part, in ascending order."""
    order = part_of_node.argsort(stable=True)
    return order.split(part_of_node.bincount(minlength=parts).tolist())


def deal(graph: Graph, parts: int, chance: torch.Generator) -> tuple[Ids, ...]:
    """The nodes of parts, where every node falls into any part alike."""
    drawn = torch.randint(parts, (graph.num_nodes,), generator=chance)
    return members(drawn.to(graph.labels.device), parts)
