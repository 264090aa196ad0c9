"""Attention layers, with batch norm, ELU and dropout between them."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.adjacency import Adjacency
from unalike.errors import UserError
from unalike.methods.layers.attended_sum import attended_sum
from unalike.methods.layers.bridge import Shift, batch_norm_or_shift
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.mlp import widths
from unalike.training.network import glorot


def head_widths(
    inputs: int, hidden: int, outputs: int, layers: int, heads: int
) -> list[int]:
    """The widths between the linear maps, all heads together; two layers at least."""
    if heads < 1:
        raise UserError(f"The layers have {heads} heads; they have at least 1.")
    _, *further = widths(inputs, hidden, outputs, max(layers, 2))
    return [inputs, *(heads * width for width in further)]


class Attentions(nn.Module):
    """Attention layers; the linear map x W of the first one is an input layer.

    The heads of a layer are concatenated; those of the last may be averaged.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        heads: int,
        dropout: float,
        *,
        normed: bool,
        averaged: bool,
    ) -> None:
        super().__init__()
        *hidden, last = sizes[1:]
        self.heads, self.averaged = heads, averaged
        self.weights = nn.ParameterList(glorot(*ends) for ends in pairwise(sizes[1:]))
        self.att_src = nn.ParameterList(_vector(heads, width) for width in sizes[1:])
        self.att_dst = nn.ParameterList(_vector(heads, width) for width in sizes[1:])
        self.norms = nn.ModuleList(
            batch_norm_or_shift(width, normed=normed) for width in hidden
        )
        self.bias = Shift(last // heads if averaged else last)
        self.dropout = Dropout(dropout)

    def forward(
        self, adjacency: Adjacency, x: Float[Tensor, "nodes _"]
    ) -> list[Float[Tensor, "nodes _"]]:
        """The output of every layer: hidden ones before dropout, the last one raw."""
        outputs = []
        for layer, (norm, weight) in enumerate(
            zip(self.norms, self.weights, strict=True)
        ):
            attended = self.attend(layer, adjacency, x).flatten(1)
            outputs.append(F.elu(norm(attended)))
            x = self.dropout(outputs[-1]) @ weight
        attended = self.attend(-1, adjacency, x)
        last = attended.mean(1) if self.averaged else attended.flatten(1)
        return [*outputs, self.bias(last)]

    def attend(
        self, layer: int, adjacency: Adjacency, x: Float[Tensor, "nodes columns"]
    ) -> Float[Tensor, "nodes heads width"]:
        """The attention-weighted sum of x W over neighbours, for each head."""
        vectors = torch.cat(
            [by_head(part[layer], self.heads) for part in (self.att_src, self.att_dst)],
            1,
        )
        scores = (x @ vectors.to(x.dtype)).chunk(2, 1)
        return attended_sum(adjacency, x.unflatten(1, (self.heads, -1)), *scores)


def by_head(
    vector: Float[Tensor, " columns"], heads: int
) -> Float[Tensor, "columns heads"]:
    """A column for each head, with the numbers of that head and zeros.

    One product with it scores all heads: cards are slow at many small ones.
    """
    one = torch.eye(heads, dtype=vector.dtype, device=vector.device)
    return vector[:, None] * one.repeat_interleave(len(vector) // heads, 0)


def _vector(heads: int, columns: int) -> nn.Parameter:
    """A number for each column, drawn for the heads as rows."""
    return nn.Parameter(glorot(heads, columns // heads).detach().flatten())
