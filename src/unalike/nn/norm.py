"""BatchNorm + ReLU + dropout block (fused on CUDA, folded in eval), dropout with per-run rate, bias layer."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import Function

from unalike.nn.dropout import Dropout
from unalike.nn.linear import (
    DeferredLinear,
    Weight,
    linear_sum_relu,
    matmul_like,
    matmul_padded,
)
from unalike.nn.sparse import pad_last_dim

# Kernels of bridges: batch norm, ReLU and dropout between two layers.


BATCH_NORM_EPS = 1e-5
"""Added to variances, as batch norm does."""

Relu = Literal["before", "after", "none"]
"""Where a ReLU stands, seen from the norm."""


class FusedNormParams(NamedTuple):
    """The numbers of a norm and of the dropout behind it, for each run of a stack."""

    mean: Float[Tensor, "runs width"]
    spread: Float[Tensor, "runs width"]
    """One over the standard deviation."""
    offset: Float[Tensor, "runs width"]
    """Added to the numbers before anything else."""
    gain: Float[Tensor, "runs width"]
    shift: Float[Tensor, "runs width"]
    rate: Float[Tensor, " runs"]
    seed: Int[Tensor, " runs"]

    @classmethod
    def of(
        cls,
        mean: Float[Tensor, "runs width"],
        variance: Float[Tensor, "runs width"],
        *others: Tensor,
    ) -> "FusedNormParams":
        """The norm of columns with these moments, and the other numbers in order."""
        return cls(mean, (variance + BATCH_NORM_EPS).rsqrt(), *others)


# Bridge: what lies between two layers: batch norm, ReLU and dropout.


Offset = Float[Tensor, " _"]


class NormActDrop(nn.Module):
    """A norm, mostly a batch norm, with a ReLU before or after it, and dropout."""

    def __init__(
        self, norm: nn.Module, dropout: float, *, relu: Relu = "after"
    ) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.relu: Relu = relu

    def forward(
        self,
        x: Float[Tensor, "nodes _"],
        *,
        into: Weight | None = None,
        offset: Offset | None = None,
        out_of: Weight | None = None,
    ) -> Float[Tensor, "nodes _"]:
        """Cross from the product with one weight, where given, to that with another.

        An offset is added to the first product.
        """
        if isinstance(self.norm, nn.BatchNorm1d) and not self.training:
            return self._settled(DeferredLinear(x, into, offset), out_of, self.norm)
        if isinstance(self.norm, nn.BatchNorm1d) and x.is_cuda:
            return self._on_card(x, into, offset, out_of, self.norm)
        x = DeferredLinear(x, into, offset).value()
        x = torch.relu(x) if self.relu == "before" else x
        x = self.norm(x)
        x = torch.relu(x) if self.relu == "after" else x
        return matmul_padded(self.dropout(x), out_of)

    def _settled(
        self, x: DeferredLinear, out_of: Weight | None, norm: nn.BatchNorm1d
    ) -> Float[Tensor, "nodes _"]:
        """The same when nothing is learned: products take the norm along."""
        gain, shift = folded_batch_norm(norm)
        if self.relu == "before":
            rows = linear_sum_relu(None, x)
            if out_of is not None:
                return fold_norm_into_linear(rows, norm, out_of, None).value()
            return torch.addcmul(shift.to(rows.dtype), rows, gain.to(rows.dtype))
        if x.weight is not None and self.relu == "after":
            moved = None if x.offset is None else x.offset * gain
            normed = DeferredLinear(x.rows, x.weight * gain, moved)
            return matmul_padded(linear_sum_relu(shift, normed), out_of)
        rows = x.value()
        rows = torch.addcmul(shift.to(rows.dtype), rows, gain.to(rows.dtype))
        return matmul_padded(torch.relu(rows) if self.relu == "after" else rows, out_of)

    def _on_card(
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
            self.dropout.rate[None],
            seed,
            None if out_of is None else out_of[None],
            self.relu,
        )
        update_running_stats(norm, mean[0], variance[0] * (len(x) / max(1, len(x) - 1)))
        return crossed[0]


class Bias(nn.Module):
    """An offset, for where no batch norm has one.

    Before a batch norm it would do nothing: the norm takes it away again, its gradient
    is made of rounding errors, and AdamW follows those faster than averages can.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
        return x + self.offset.to(x.dtype)


def norm_or_bias(width: int, *, normed: bool) -> nn.Module:
    """What stands behind a layer that has no offset of its own."""
    return nn.BatchNorm1d(width) if normed else Bias(width)


def folded_batch_norm(
    norm: nn.BatchNorm1d,
) -> tuple[Float[Tensor, " width"], Float[Tensor, " width"]]:
    """What a batch norm that does not learn multiplies by, and what it adds."""
    gain = norm.weight * (norm.get_buffer("running_var") + norm.eps).rsqrt()
    return gain, norm.bias - norm.get_buffer("running_mean") * gain


def fold_norm_into_linear(
    rows: Float[Tensor, "nodes _"],
    norm: nn.BatchNorm1d,
    weight: Weight,
    offset: Offset | None,
) -> DeferredLinear:
    """A linear map of rows that a settled batch norm has yet to see."""
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
    """Move the running statistics of a batch norm as its own forward pass would."""
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
