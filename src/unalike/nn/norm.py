"""BatchNorm + ReLU + dropout block (fused on CUDA, folded in eval), dropout with per-run rate, bias layer."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import Function

from unalike.nn.dropout import Dropout
from unalike.nn.init import Init
from unalike.nn.linear import (
    DeferredLinear,
    TensorOrDeferred,
    Weight,
    linear_sum_relu,
    matmul_like,
    matmul_padded,
)
from unalike.nn.sparse import pad_last_dim
from unalike.nn.sparse_linear import DenseLinear

# Kernels of bridges: batch norm, ReLU and dropout between two layers.


BATCH_NORM_EPS = 1e-5
"""Added to variances, as batch norm does."""

Relu = Literal["before", "after", "none"]
"""Where a ReLU stands, seen from the norm."""


class FusedNormParams(NamedTuple):
    """The numbers of a norm and of the dropout behind it, for each run of a stack."""

    mean: Float[Tensor, "runs width"]
    inv_std: Float[Tensor, "runs width"]
    """One over the standard deviation."""
    bias_in: Float[Tensor, "runs width"]
    """Added to the numbers before anything else."""
    weight: Float[Tensor, "runs width"]
    bias: Float[Tensor, "runs width"]
    dropout_p: Float[Tensor, " runs"]
    seed: Int[Tensor, " runs"]

    @classmethod
    def of(
        cls,
        mean: Float[Tensor, "runs width"],
        variance: Float[Tensor, "runs width"],
        *others: Tensor,
    ) -> FusedNormParams:
        """The norm of columns with these moments, and the other numbers in order."""
        return cls(mean, (variance + BATCH_NORM_EPS).rsqrt(), *others)


# Batch norm, ReLU and dropout as one block, with the linear layers around it.


Offset = Float[Tensor, " _"]


class NormActDrop(nn.Module):
    """dropout(relu(norm(x))), with the ReLU before or behind the norm.

    In evaluation the batch norm is folded into the weights around it; in training on a
    GPU all is one fused kernel.
    """

    def __init__(
        self, norm: nn.Module, dropout: float, *, relu: Relu = "after"
    ) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.relu: Relu = relu

    def forward(self, x: Float[Tensor, "nodes _"]) -> Float[Tensor, "nodes _"]:
        return self._between(x)

    def _between(
        self,
        x: Float[Tensor, "nodes _"],
        *,
        weight_in: Weight | None = None,
        bias_in: Offset | None = None,
        weight_out: Weight | None = None,
    ) -> Float[Tensor, "nodes _"]:
        """The block between two linear layers: block(x W_in + b_in) W_out."""
        if isinstance(self.norm, nn.BatchNorm1d) and not self.training:
            linear = DeferredLinear(x, weight_in, bias_in)
            return self._eval_folded(linear, weight_out, self.norm)
        if isinstance(self.norm, nn.BatchNorm1d) and x.is_cuda:
            return self._fused_cuda(x, weight_in, bias_in, weight_out, self.norm)
        x = DeferredLinear(x, weight_in, bias_in).materialize()
        x = torch.relu(x) if self.relu == "before" else x
        x = self.norm(x)
        x = torch.relu(x) if self.relu == "after" else x
        return matmul_padded(self.dropout(x), weight_out)

    def _eval_folded(
        self, x: DeferredLinear, out_of: Weight | None, norm: nn.BatchNorm1d
    ) -> Float[Tensor, "nodes _"]:
        """The block in evaluation: the norm is folded into the products."""
        gain, shift = folded_batch_norm(norm)
        if self.relu == "before":
            rows = linear_sum_relu(None, x)
            if out_of is not None:
                return fold_norm_into_linear(rows, norm, out_of, None).materialize()
            return torch.addcmul(shift.to(rows.dtype), rows, gain.to(rows.dtype))
        if x.weight is not None and self.relu == "after":
            moved = None if x.bias is None else x.bias * gain
            normed = DeferredLinear(x.rows, x.weight * gain, moved)
            return matmul_padded(linear_sum_relu(shift, normed), out_of)
        rows = x.materialize()
        rows = torch.addcmul(shift.to(rows.dtype), rows, gain.to(rows.dtype))
        return matmul_padded(torch.relu(rows) if self.relu == "after" else rows, out_of)

    def _fused_cuda(
        self,
        x: Float[Tensor, "nodes _"],
        into: Weight | None,
        offset: Offset | None,
        out_of: Weight | None,
        norm: nn.BatchNorm1d,
    ) -> Float[Tensor, "nodes _"]:

        seed = torch.randint(2**31 - 1, (1,), device=x.device)
        crossed, mean, variance = FusedNormActDrop.apply(
            x[None],
            None if into is None else into[None],
            (torch.zeros_like(norm.bias) if offset is None else offset)[None],
            norm.weight[None],
            norm.bias[None],
            self.dropout.p[None],
            seed,
            None if out_of is None else out_of[None],
            self.relu,
        )
        update_running_stats(norm, mean[0], variance[0] * (len(x) / max(1, len(x) - 1)))
        return crossed[0]


class LinearNormActDrop(NormActDrop):
    """dropout(relu(norm(x W))) for a weight that the caller has."""

    def forward(
        self, x: Float[Tensor, "nodes _"], weight: Weight | None = None
    ) -> Float[Tensor, "nodes _"]:
        return self._between(x, weight_in=weight)


class Bias(nn.Module):
    """A bias, for layers without a batch norm.

    In front of a batch norm it would do nothing: the norm subtracts it again, its
    gradient is rounding error, and AdamW follows that faster than averages can.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
        return x + self.bias.to(x.dtype)


def norm_or_bias(width: int, *, normed: bool) -> nn.Module:
    """What follows a layer that has no bias of its own."""
    return nn.BatchNorm1d(width) if normed else Bias(width)


class NormActDropLinear(nn.Module):
    """dropout(relu(norm(x))) W + b.

    `act` says whether the ReLU is before or behind the norm. Without `batch_norm` a
    bias takes the place of the norm. With `init="glorot"` W has no bias behind it.
    """

    linear: nn.Linear | DenseLinear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        dropout: float,
        *,
        act: Relu = "after",
        batch_norm: bool = True,
        init: Init = "linear",
        defer: bool = False,
    ) -> None:
        super().__init__()
        norm = norm_or_bias(in_features, normed=batch_norm)
        self.norm_act_drop = NormActDrop(norm, dropout, relu=act)
        self.linear = (
            nn.Linear(in_features, out_features)
            if init == "linear"
            else DenseLinear(in_features, out_features, bias=False, init=init)
        )
        self.deferred = defer
        """Is the product left to the next layer in training too?"""

    def forward(self, x: Float[Tensor, "nodes _"]) -> Float[Tensor, "nodes _"]:
        return self.defer(x).materialize()

    def with_hidden(
        self, x: Float[Tensor, "nodes _"]
    ) -> tuple[Float[Tensor, "nodes _"], Float[Tensor, "nodes _"]]:
        """relu(norm(x)) before dropout, and the output."""
        hidden = torch.relu(self.norm_act_drop.norm(x))
        return hidden, self.norm_act_drop.dropout(hidden) @ self._weight

    def defer(self, x: TensorOrDeferred) -> DeferredLinear:
        """The output with its bias, and mostly its product, still to be computed."""
        before, block = DeferredLinear.of(x), self.norm_act_drop
        norm, weight, bias = block.norm, self._weight, self.linear.bias
        early = block.relu == "before"
        if isinstance(norm, nn.BatchNorm1d) and not self.training and early:
            return fold_norm_into_linear(
                linear_sum_relu(None, before), norm, weight, bias
            )
        taken = before.product()
        if self.deferred:
            hidden = block._between(taken.rows, bias_in=taken.bias)
            return DeferredLinear(hidden, weight, bias)
        out = block._between(taken.rows, bias_in=taken.bias, weight_out=weight)
        return DeferredLinear(out, None, bias)

    @property
    def _weight(self) -> Weight:
        weight = self.linear.weight
        return weight.T if isinstance(self.linear, nn.Linear) else weight


def folded_batch_norm(
    norm: nn.BatchNorm1d,
) -> tuple[Float[Tensor, " width"], Float[Tensor, " width"]]:
    """The scale and the bias that a batch norm amounts to in evaluation."""
    gain = norm.weight * (norm.get_buffer("running_var") + norm.eps).rsqrt()
    return gain, norm.bias - norm.get_buffer("running_mean") * gain


def fold_norm_into_linear(
    rows: Float[Tensor, "nodes _"],
    norm: nn.BatchNorm1d,
    weight: Weight,
    offset: Offset | None,
) -> DeferredLinear:
    """A linear layer with the batch norm in front folded into it."""
    gain, shift = folded_batch_norm(norm)
    moved = shift @ weight
    moved = moved if offset is None else moved + offset
    return DeferredLinear(rows, gain[:, None] * weight, moved)


@torch.no_grad()
def update_running_stats(
    norm: nn.BatchNorm1d,
    mean: Float[Tensor, " width"],
    variance: Float[Tensor, " width"],
) -> None:
    """Update the running statistics of a batch norm as its forward pass does."""
    share = 0.0 if norm.momentum is None else norm.momentum
    for name, now in (("running_mean", mean), ("running_var", variance)):
        norm.get_buffer(name).mul_(1 - share).add_(share * now)
    norm.get_buffer("num_batches_tracked").add_(1)


# Crossing: a product, norm, ReLU, dropout and a product, of which little is kept.


class FusedNormActDrop(Function):
    """dropout(relu(norm(x W + b))) V on a card; x is kept, the rest is found again.

    A small product and a pass over memory cost less than the memory they spare.
    Tensors have an axis of runs in front.
    """

    @staticmethod
    def forward(
        x: Float[Tensor, "runs nodes _"],
        into: Float[Tensor, "runs _ width"] | None,
        offset: Float[Tensor, "runs width"],
        gain: Float[Tensor, "runs width"],
        shift: Float[Tensor, "runs width"],
        rate: Float[Tensor, " runs"],
        seed: Tensor,
        out_of: Float[Tensor, "runs width _"] | None,
        relu: Relu,
    ) -> tuple[Tensor, Tensor, Tensor]:
        from unalike.nn import cuda

        raw = matmul_padded(x, into)
        mean, variance = cuda.batch_norm_stats(raw, offset, relu)
        norm = FusedNormParams.of(mean, variance, offset, gain, shift, rate, seed)
        crossed = cuda.norm_act_drop_forward(raw, norm, relu)
        return matmul_padded(crossed, out_of), mean, variance

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]
    ) -> None:
        x, into, offset, gain, shift, rate, seed, out_of, ctx.relu = inputs
        _, mean, variance = output
        ctx.mark_non_differentiable(mean, variance)
        norm = FusedNormParams.of(mean, variance, offset, gain, shift, rate, seed)
        ctx.save_for_backward(x, into, out_of, *norm)

    @staticmethod
    def backward(ctx: Any, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        from unalike.nn import cuda

        x, into, out_of, *vectors = ctx.saved_tensors
        norm = FusedNormParams(*vectors)
        raw = matmul_padded(x, into)
        to_out_of = None
        if out_of is not None:
            crossed = cuda.norm_act_drop_forward(raw, norm, ctx.relu)
            width, slope = out_of.shape[-1], pad_last_dim(slope)
            wide = pad_last_dim(out_of.to(slope.dtype))
            found = matmul_like(wide, crossed.mT.to(slope.dtype), slope)
            to_out_of = found[..., :width].to(out_of.dtype)
            del crossed
            slope = slope @ wide.mT
        to_raw, *to_vectors = cuda.norm_act_drop_backward(raw, slope, norm, ctx.relu)
        to_into = None
        if into is not None:
            to_into = (x.mT.to(to_raw.dtype) @ to_raw).to(into.dtype)
        to_x = matmul_padded(to_raw, None if into is None else into.mT).to(x.dtype)
        return to_x, to_into, *to_vectors, None, None, to_out_of, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Runs that one call has in front are joined by those of the stack."""
        stacked = [
            given
            if not isinstance(given, Tensor)
            else (
                given.expand(info.batch_size, *given.shape)
                if dim is None
                else given.movedim(dim, 0)
            ).flatten(0, 1)
            for given, dim in zip(inputs, in_dims, strict=True)
        ]
        found = FusedNormActDrop.apply(*stacked)
        shape = (info.batch_size, -1)
        return tuple(part.unflatten(0, shape) for part in found), (0, 0, 0)
