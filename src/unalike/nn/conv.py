"""GCN convolution layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.nn.module import glorot_uniform
from unalike.nn.norm import Bias, NormActDrop, norm_or_bias
from unalike.nn.normalized_adjacency import GCNNorm


class GCNLayers(nn.Module):
    """Â x W + b again and again; the first product Â x W is an entry's."""

    def __init__(self, sizes: Sequence[int], dropout: float, *, normed: bool) -> None:
        super().__init__()
        self.weights = nn.ParameterList(
            glorot_uniform(*ends) for ends in pairwise(sizes[1:])
        )
        self.bridges = nn.ModuleList(
            NormActDrop(norm_or_bias(width, normed=normed), dropout)
            for width in sizes[1:-1]
        )
        self.last = Bias(sizes[-1])

    def forward(
        self, adjacency: GCNNorm, flown: Float[Tensor, "nodes _"]
    ) -> Float[Tensor, "nodes _"]:
        """The output of the last layer; the first product is there and has flown."""
        for bridge, weight in self._hidden():
            flown = adjacency @ bridge(flown, out_of=weight)
        return self.last(flown)

    def outputs(
        self, adjacency: GCNNorm, flown: Float[Tensor, "nodes _"]
    ) -> list[Float[Tensor, "nodes _"]]:
        """The output of every layer: hidden ones before dropout, the last one raw."""
        found = []
        for bridge, weight in self._hidden():
            found.append(torch.relu(bridge.norm(flown)))
            flown = adjacency @ (bridge.dropout(found[-1]) @ weight)
        return [*found, self.last(flown)]

    def _hidden(self) -> Iterator[tuple[Any, Tensor]]:
        return zip(self.bridges, self.weights, strict=True)
