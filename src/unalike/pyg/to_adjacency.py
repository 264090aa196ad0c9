"""ToAdjacency: a transform of PyG's `Data` that stores its edges as an `Adjacency`."""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.errors import InputError


class ToAdjacency:
    """Store edges as `adj_t`, an `Adjacency`, like `T.ToSparseTensor`.

    Row i of the matrix holds the sources of the edges that point at node i. Edges that
    are given twice become one entry, whose value is the sum of their weights.
    """

    def __init__(
        self, attr: str | None = "edge_weight", remove_edge_index: bool = True
    ) -> None:
        self.attr, self.remove_edge_index = attr, remove_edge_index

    def __call__(self, data: Any) -> Any:
        """A shallow copy of a `Data` or `HeteroData` with the matrices."""
        data = copy(data)
        for store in data.edge_stores:
            if "edge_index" in store:
                self._convert(store)
        return data

    def _convert(self, store: Any) -> None:
        source, target = store.edge_index
        num_sources, num_targets = store.size()
        weight = store.get(self.attr, None)
        store.adj_t = Adjacency.from_edges(
            target,
            source,
            shape=(num_targets, num_sources),
            values=_values(weight, source),
        ).to(source.device)
        if self.remove_edge_index:
            del store["edge_index"]
            if weight is not None:
                del store[self.attr]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _values(weight: Tensor | None, source: Tensor) -> Tensor:
    """A weight for each edge, so that edges that are given twice add up."""
    if weight is None:
        return torch.ones(len(source))
    if weight.numel() != len(source):
        shape = list(weight.shape)
        raise InputError(
            f"Edge weights have the shape {shape}; give one for each edge."
        )
    return weight.flatten()
