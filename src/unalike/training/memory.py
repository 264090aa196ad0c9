"""How many runs fit; does the graph fit on the GPU."""

from __future__ import annotations

import torch

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph
from unalike.system import memory_used_by_others

# Carry: bring batches to where they are needed, while others are worked on.


MAX_GRAPH_SHARE = 0.4
"""Share of a card's free memory that a graph may take; a larger one is streamed."""


def move_if_fits(graph: Graph, device: torch.device) -> Graph | None:
    """The graph on the device, where that has room for it."""
    if device.type != "cuda":
        return graph
    free, _ = torch.cuda.mem_get_info(device)
    return graph.to(device) if graph_nbytes(graph) < MAX_GRAPH_SHARE * free else None


def graph_nbytes(graph: Graph) -> int:
    """Bytes that the arrays of a graph take."""
    return sum(tensor.nbytes for tensor in _tensors(graph))


def _tensors(graph: Graph) -> list[torch.Tensor]:
    return [*_parts(graph.adjacency), *_parts(graph.features), graph.labels, graph.ids]


def _parts(matrix: Features) -> list[torch.Tensor]:
    if not isinstance(matrix, Adjacency):
        return [matrix]
    values = [] if matrix.values is None else [matrix.values]
    return [matrix.indptr, matrix.indices, *values]


# Fit: the one training loop, over a stack of runs.


def out_of_memory_message(device: torch.device) -> str:
    """What to say where not even one run fits."""
    held = memory_used_by_others(device)
    others = f" beside other programs, which hold {held / 1e9:,.0f} GB" if held else ""
    return (
        f"The device has too little memory for one run{others}; "
        "choose a smaller width or batches of rows."
    )
