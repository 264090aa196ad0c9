"""Graph convolutions, with batch norm, ReLU and dropout between them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.methods.layers.bridge import Bridge
from unalike.methods.layers.normalised import Normalised
from unalike.training.network import glorot


class Convolutions(nn.Module):
    """Â x W + b again and again; the first product Â x W is an entry's."""

    def __init__(self, sizes: Sequence[int], dropout: float, *, normed: bool) -> None:
        super().__init__()
        self.offsets = nn.ParameterList(torch.zeros(width) for width in sizes[1:])
        self.weights = nn.ParameterList(glorot(*ends) for ends in pairwise(sizes[1:]))
        self.bridges = nn.ModuleList(
            Bridge(width, dropout, normed=normed) for width in sizes[1:-1]
        )

    def forward(
        self, adjacency: Normalised, flown: Float[Tensor, "nodes _"]
    ) -> Float[Tensor, "nodes _"]:
        """The output of the last layer; the first product is there and has flown."""
        for offset, bridge, weight in self._hidden():
            flown = adjacency @ bridge(flown + offset.to(flown.dtype), out_of=weight)
        return flown + self.offsets[-1]

    def outputs(
        self, adjacency: Normalised, flown: Float[Tensor, "nodes _"]
    ) -> list[Float[Tensor, "nodes _"]]:
        """The output of every layer: hidden ones before dropout, the last one raw."""
        found = []
        for offset, bridge, weight in self._hidden():
            found.append(torch.relu(bridge.norm(flown + offset)))
            flown = adjacency @ (bridge.dropout(found[-1]) @ weight)
        return [*found, flown + self.offsets[-1]]

    def _hidden(self) -> Iterator[tuple[Tensor, Any, Tensor]]:
        return zip(self.offsets, self.bridges, self.weights, strict=False)
