"""Carry: bring batches to where they are needed, while others are worked on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from unalike.adjacency import Adjacency
from unalike.batchings.batching import Batch
from unalike.features import Features
from unalike.graph import Graph

RESIDENT_SHARE = 0.4
"""Share of a card's free memory that a graph may take; a larger one is streamed."""


def reside(graph: Graph, device: torch.device) -> Graph | None:
    """The graph on the device, where that has room for it."""
    if device.type != "cuda":
        return graph
    free, _ = torch.cuda.mem_get_info(device)
    return graph.to(device) if size_of(graph) < RESIDENT_SHARE * free else None


def size_of(graph: Graph) -> int:
    """Bytes that the arrays of a graph take."""
    return sum(tensor.nbytes for tensor in _tensors(graph))


def carried(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """The same batches on the device, fetched from pinned memory beside other work."""
    if device.type != "cuda":
        yield from batches
        return
    main, side = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    for batch in batches:
        with torch.cuda.stream(side):
            graph = _brought(batch.graph, device)
            moved = replace(batch, graph=graph, weight=batch.weight.to(device))
            side.synchronize()
        for tensor in (*_tensors(graph), moved.weight):
            tensor.record_stream(main)
        yield moved


def _brought(graph: Graph, device: torch.device) -> Graph:
    if graph.labels.is_cuda:
        return graph
    pinned = replace(
        graph,
        adjacency=graph.adjacency.pin_memory(),
        features=graph.features.pin_memory(),
        labels=graph.labels.pin_memory(),
        parent_ids=graph.ids.pin_memory(),
    )
    return pinned.to(device)


def _tensors(graph: Graph) -> list[torch.Tensor]:
    return [*_parts(graph.adjacency), *_parts(graph.features), graph.labels, graph.ids]


def _parts(matrix: Features) -> list[torch.Tensor]:
    if not isinstance(matrix, Adjacency):
        return [matrix]
    values = [] if matrix.values is None else [matrix.values]
    return [matrix.starts, matrix.columns, *values]
