"""Graph convolutions, with batch norm, ReLU and dropout between them."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.normalised import Normalised
from unalike.training.network import glorot


class Convolutions(nn.Module):
    """Â x W + b again and again; the first product x W is an entry's."""

    def __init__(self, sizes: Sequence[int], dropout: float, *, normed: bool) -> None:
        super().__init__()
        hidden = sizes[1:-1]
        norm = nn.BatchNorm1d if normed else nn.Identity
        self.offsets = nn.ParameterList(torch.zeros(width) for width in sizes[1:])
        self.weights = nn.ParameterList(glorot(*ends) for ends in pairwise(sizes[1:]))
        self.norms = nn.ModuleList(norm(width) for width in hidden)
        self.dropout = Dropout(dropout)

    def forward(
        self, adjacency: Normalised, x: Float[Tensor, "nodes _"]
    ) -> list[Float[Tensor, "nodes _"]]:
        """The output of every layer: hidden ones before dropout, the last one raw."""
        outputs = []
        layers = zip(self.offsets, self.norms, self.weights, strict=False)
        for offset, norm, weight in layers:
            outputs.append(torch.relu(norm(adjacency @ x + offset)))
            x = self.dropout(outputs[-1]) @ weight
        return [*outputs, adjacency @ x + self.offsets[-1]]
