"""GAT layers and the fused attention autograd function."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency
from unalike.data.csr import CSRMatrix
from unalike.errors import UserError
from unalike.nn.dropout import Dropout
from unalike.nn.init import glorot_uniform
from unalike.nn.mlp import layer_sizes
from unalike.nn.norm import Bias, norm_or_bias
from unalike.nn.sparse import backend

# Kernels of attention: weighted sums of neighbours, where the scores give the weights.
#
# `plain` says what they mean and is the oracle of the tests; torch finds its gradients.


NEGATIVE_SLOPE = 0.2
"""What is kept of negative scores (Veličković et al. 2018)."""

AttentionOutput = tuple[Tensor, Tensor, Tensor]
"""What nodes gather, the logs of the sums of their weights, and how it leans.

The last is the slope of what a node gathers by its own target: the sum over neighbours
of weight, x and what the slope of LeakyReLU is above its mean. It has no width where no
slopes are wanted.
"""

# Attended sum: what a node gathers from neighbours that it weighs by scores.


def gat_aggregate(
    rows: CSRMatrix,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
) -> Float[Tensor, "nodes heads width"]:
    """Node i gathers x_j from itself and those that point at it, weighed by softmax.

    The weight of j is exp(LeakyReLU(source_j + target_i)), over the sum of all of i's.
    """
    return GATAggregate.apply(rows, torch.is_grad_enabled(), x, source, target)[0]


class GATAggregate(Function):
    """Weights are never stored: backward finds them again from the logs of their sums.

    Forward gathers along edges that enter a node, and what the slope of its target
    needs with it; the slopes of x and source gather along edges that leave it.
    """

    @staticmethod
    def forward(
        rows: CSRMatrix, learning: bool, x: Tensor, source: Tensor, target: Tensor
    ) -> AttentionOutput:
        kernels = backend(x.device)
        return kernels.gat_forward(rows, x, source, target, learning=learning)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: AttentionOutput
    ) -> None:
        ctx.rows = inputs[0]
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[2:], *output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        kernels = backend(slope.device)
        return None, None, *kernels.gat_backward(ctx.rows, *ctx.saved_tensors, slope)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        rows: CSRMatrix,
        learning: bool,
        *inputs: Tensor,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """A stack of runs is more heads."""
        runs = info.batch_size
        heads = [
            one[:, None].expand(-1, runs, *one.shape[1:])
            if dim is None
            else one.movedim(dim, 1)
            for one, dim in zip(inputs, in_dims[2:], strict=True)
        ]
        found = GATAggregate.apply(
            rows, learning, *(one.flatten(1, 2) for one in heads)
        )
        return tuple(one.unflatten(1, (runs, -1)) for one in found), (1, 1, 1)


# Attention layers, with batch norm, ELU and dropout between them.


def head_widths(
    inputs: int, hidden: int, outputs: int, layers: int, heads: int
) -> list[int]:
    """The widths between the linear maps, all heads together; two layers at least."""
    if heads < 1:
        raise UserError(f"The layers have {heads} heads; they have at least 1.")
    _, *further = layer_sizes(inputs, hidden, outputs, max(layers, 2))
    return [inputs, *(heads * width for width in further)]


class GATLayers(nn.Module):
    """Attention layers; the linear map x W of the first one is an input layer.

    The heads of a layer are concatenated; those of the last may be mean_last_heads.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        heads: int,
        dropout: float,
        *,
        normed: bool,
        mean_last_heads: bool,
    ) -> None:
        super().__init__()
        *hidden, last = sizes[1:]
        self.heads, self.mean_last_heads = heads, mean_last_heads
        self.weights = nn.ParameterList(
            glorot_uniform(*ends) for ends in pairwise(sizes[1:])
        )
        self.att_src = nn.ParameterList(
            _attention_vector(heads, width) for width in sizes[1:]
        )
        self.att_dst = nn.ParameterList(
            _attention_vector(heads, width) for width in sizes[1:]
        )
        self.norms = nn.ModuleList(
            norm_or_bias(width, normed=normed) for width in hidden
        )
        self.bias = Bias(last // heads if mean_last_heads else last)
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
        last = attended.mean(1) if self.mean_last_heads else attended.flatten(1)
        return [*outputs, self.bias(last)]

    def attend(
        self, layer: int, adjacency: Adjacency, x: Float[Tensor, "nodes columns"]
    ) -> Float[Tensor, "nodes heads width"]:
        """The attention-weighted sum of x W over neighbours, for each head."""
        vectors = torch.cat(
            [
                block_diagonal(part[layer], self.heads)
                for part in (self.att_src, self.att_dst)
            ],
            1,
        )
        scores = (x @ vectors.to(x.dtype)).chunk(2, 1)
        return gat_aggregate(adjacency, x.unflatten(1, (self.heads, -1)), *scores)


def block_diagonal(
    vector: Float[Tensor, " columns"], heads: int
) -> Float[Tensor, "columns heads"]:
    """A column for each head, with the numbers of that head and zeros.

    One product with it scores all heads: cards are slow at many small ones.
    """
    one = torch.eye(heads, dtype=vector.dtype, device=vector.device)
    return vector[:, None] * one.repeat_interleave(len(vector) // heads, 0)


def _attention_vector(heads: int, columns: int) -> nn.Parameter:
    """A number for each column, drawn for the heads as rows."""
    return nn.Parameter(glorot_uniform(heads, columns // heads).detach().flatten())
