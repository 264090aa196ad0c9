"""GAT layers, and their attention-weighted sum as one autograd function."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency
from unalike.data.csr import CSRMatrix
from unalike.errors import UserError
from unalike.nn.init import glorot_uniform
from unalike.nn.linear import Dropout
from unalike.nn.mlp import layer_sizes
from unalike.nn.norm import Bias, bias_before_norm, norm_or_bias
from unalike.nn.sparse import backend, move_runs

NEGATIVE_SLOPE = 0.2
"""Factor of negative attention scores in the LeakyReLU (Veličković et al. 2018)."""

Heads = Float[Tensor, "nodes heads width"]
Scores = Float[Tensor, "nodes heads"]
AttentionOutput = tuple[Tensor, Tensor, Tensor]
"""Output, logsumexp of the scores, and the derivative of the output by the target.

The last has no columns where no gradient is needed.
"""


class AttentionOptions(NamedTuple):
    """What PyTorch Geometric's GATConv can change; the defaults are those of GAT."""

    negative_slope: float = NEGATIVE_SLOPE
    num_self_loops: int | None = None
    """Nodes that get one self-loop instead of their own; 0: all edges as they are."""
    keep: Tensor | None = None
    """uint8 [nnz + self-loops, heads]: attention weights that dropout keeps, in the
    order of the incoming entries."""
    keep_scale: float = 1.0
    """Factor of the weights that dropout keeps."""
    positions: Tensor | None = None
    """For each outgoing entry its position among the incoming ones."""


DEFAULT_ATTENTION = AttentionOptions()


def gat_aggregate(rows: CSRMatrix, x: Heads, source: Scores, target: Scores) -> Heads:
    """Sum softmax_j(LeakyReLU(source_j + target_i)) x_j over j -> i and j = i."""
    return GATAggregate.apply(rows, torch.is_grad_enabled(), x, source, target)[0]


class GATAggregate(Function):
    """The attention-weighted sum; backward recomputes the weights from the logsumexp.

    The forward pass sums along incoming edges, and computes the derivative by the
    target with it; the gradients of x and source are sums along outgoing edges.
    """

    @staticmethod
    def forward(
        rows: CSRMatrix, needs_grad: bool, x: Tensor, source: Tensor, target: Tensor
    ) -> AttentionOutput:
        kernels = backend(x.device)
        return kernels.gat_forward(rows, x, source, target, needs_grad=needs_grad)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: AttentionOutput
    ) -> None:
        ctx.rows = inputs[0]
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[2:], *output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        kernels = backend(grad_out.device)
        return None, None, *kernels.gat_backward(ctx.rows, *ctx.saved_tensors, grad_out)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        rows: CSRMatrix,
        needs_grad: bool,
        *inputs: Tensor,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """A stack of runs is more heads."""
        runs = info.batch_size
        heads = (
            move_runs(tensor, dim, runs, 1).flatten(1, 2)
            for tensor, dim in zip(inputs, in_dims[2:], strict=True)
        )
        outputs = GATAggregate.apply(rows, needs_grad, *heads)
        return tuple(out.unflatten(1, (runs, -1)) for out in outputs), (1, 1, 1)


def head_widths(
    inputs: int, hidden: int, outputs: int, layers: int, heads: int
) -> list[int]:
    """The sizes between the linear layers, all heads together; at least two layers."""
    if heads < 1:
        raise UserError(f"The layers have {heads} heads; at least 1 is needed.")
    _, *rest = layer_sizes(inputs, hidden, outputs, max(layers, 2))
    return [inputs, *(heads * width for width in rest)]


class GATLayers(nn.Module):
    """GAT layers with batch norm, ELU and dropout, behind an input layer x W.

    The heads of a layer are concatenated; those of the last may be averaged.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        heads: int,
        dropout: float,
        *,
        batch_norm: bool,
        conv_bias: bool = False,
        mean_last_heads: bool,
    ) -> None:
        super().__init__()
        *hidden, last = sizes[1:]
        self.heads, self.mean_last_heads = heads, mean_last_heads
        self.weights = nn.ParameterList(
            glorot_uniform(*ends) for ends in pairwise(sizes[1:])
        )
        self.att_src, self.att_dst = (
            nn.ParameterList(_attention_vector(heads, width) for width in sizes[1:])
            for _ in range(2)
        )
        self.conv_biases = nn.ModuleList(
            bias_before_norm(width, use=conv_bias and batch_norm) for width in hidden
        )
        self.norms = nn.ModuleList(
            norm_or_bias(width, batch_norm=batch_norm) for width in hidden
        )
        self.bias = Bias(last // heads if mean_last_heads else last)
        self.dropout = Dropout(dropout)

    def forward(
        self, adjacency: Adjacency, x: Float[Tensor, "nodes _"]
    ) -> list[Float[Tensor, "nodes _"]]:
        """The output of every layer: hidden ones before dropout, the last one raw."""
        outputs = []
        for layer, (bias, norm, weight) in enumerate(
            zip(self.conv_biases, self.norms, self.weights, strict=True)
        ):
            attended = bias(self.attend(layer, adjacency, x).flatten(1))
            outputs.append(F.elu(norm(attended)))
            x = self.dropout(outputs[-1]) @ weight
        attended = self.attend(-1, adjacency, x)
        last = attended.mean(1) if self.mean_last_heads else attended.flatten(1)
        return [*outputs, self.bias(last)]

    def attend(
        self, layer: int, adjacency: Adjacency, x: Float[Tensor, "nodes columns"]
    ) -> Heads:
        """The attention-weighted sum of x W over neighbours, for each head."""
        vectors = (self.att_src[layer], self.att_dst[layer])
        return attention_sum(adjacency, x, vectors, self.heads)


class Attention(nn.Module):
    """The attention-weighted sum over neighbours and the node itself, heads joined."""

    def __init__(self, heads: int, columns: int) -> None:
        super().__init__()
        self.heads = heads
        self.att_src = _attention_vector(heads, columns)
        self.att_dst = _attention_vector(heads, columns)

    def forward(
        self, adjacency: Adjacency, x: Float[Tensor, "nodes columns"]
    ) -> Float[Tensor, "nodes columns"]:
        vectors = (self.att_src, self.att_dst)
        return attention_sum(adjacency, x, vectors, self.heads).flatten(1)


def attention_sum(
    adjacency: Adjacency,
    x: Float[Tensor, "nodes columns"],
    vectors: tuple[Tensor, Tensor],
    heads: int,
) -> Heads:
    """The attention-weighted sum of x over neighbours, by vectors of each head."""
    weight = torch.cat([block_diagonal(vector, heads) for vector in vectors], 1)
    scores = (x @ weight.to(x.dtype)).chunk(2, 1)
    return gat_aggregate(adjacency, x.unflatten(1, (heads, -1)), *scores)


def block_diagonal(
    vector: Float[Tensor, " columns"], heads: int
) -> Float[Tensor, "columns heads"]:
    """A column for each head, with its part of the vector and zeros.

    One product with it scores all heads: GPUs are slow at many small ones.
    """
    eye = torch.eye(heads, dtype=vector.dtype, device=vector.device)
    return vector[:, None] * eye.repeat_interleave(len(vector) // heads, 0)


def _attention_vector(heads: int, columns: int) -> nn.Parameter:
    """A weight for each column, sampled as a matrix with a row for each head."""
    return nn.Parameter(glorot_uniform(heads, columns // heads).detach().flatten())
