"""Batch norm + ReLU + dropout in one block, fused on CUDA."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import Function

from unalike.nn.init import Init
from unalike.nn.linear import (
    DeferredLinear,
    Dropout,
    TensorOrDeferred,
    Weight,
    matmul_like,
    matmul_padded,
)
from unalike.nn.sparse import move_runs, pad_last_dim
from unalike.nn.sparse_linear import DenseLinear

BATCH_NORM_EPS = 1e-5
"""Added to variances, as `nn.BatchNorm1d` does."""

Relu = Literal["before", "after", "none"]
"""The position of the ReLU relative to the norm."""
Vector = Float[Tensor, " _"]


class FusedNormParams(NamedTuple):
    """The parameters of batch norm and dropout for each run of a stack."""

    mean: Float[Tensor, "runs width"]
    inv_std: Float[Tensor, "runs width"]
    bias_in: Float[Tensor, "runs width"]
    """Added to the input of the norm."""
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
        """The parameters, with `inv_std` computed from the variance."""
        return cls(mean, (variance + BATCH_NORM_EPS).rsqrt(), *others)


class NormActDrop(nn.Module):
    """dropout(relu(norm(x))), with the ReLU before or after the norm.

    In training on a GPU all is one fused kernel.
    """

    def __init__(
        self, norm: nn.Module, dropout: float, *, relu: Relu = "after"
    ) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.relu: Relu = relu

    def forward(self, x: Float[Tensor, "nodes _"]) -> Float[Tensor, "nodes _"]:
        return self._between(DeferredLinear(x))

    def _between(
        self, linear: DeferredLinear, weight_out: Weight | None = None
    ) -> Float[Tensor, "nodes _"]:
        """The block between two linear layers: block(x W + b) W_out."""
        x = linear.x
        if self.training and x.is_cuda and isinstance(self.norm, nn.BatchNorm1d):
            return self._fused_cuda(linear, weight_out, self.norm)
        x = linear.materialize()
        x = torch.relu(x) if self.relu == "before" else x
        x = self.norm(x)
        x = torch.relu(x) if self.relu == "after" else x
        return matmul_padded(self.dropout(x), weight_out)

    def _fused_cuda(
        self, linear: DeferredLinear, weight_out: Weight | None, norm: nn.BatchNorm1d
    ) -> Float[Tensor, "nodes _"]:
        """The block in training on a GPU: one fused kernel each way."""
        x, weight, bias = linear.x, linear.weight, linear.bias
        seed = torch.randint(2**31 - 1, (1,), device=x.device)
        hidden, mean, variance = FusedNormActDrop.apply(
            x[None],
            None if weight is None else weight[None],
            (torch.zeros_like(norm.bias) if bias is None else bias)[None],
            norm.weight[None],
            norm.bias[None],
            self.dropout.p[None],
            seed,
            None if weight_out is None else weight_out[None],
            self.relu,
        )
        update_running_stats(norm, mean[0], variance[0] * (len(x) / max(1, len(x) - 1)))
        return hidden[0]


class LinearNormActDrop(NormActDrop):
    """dropout(relu(norm(x W))) for a weight that the caller passes in."""

    def forward(
        self, x: Float[Tensor, "nodes _"], weight: Weight | None = None
    ) -> Float[Tensor, "nodes _"]:
        return self._between(DeferredLinear(x, weight))


class Bias(nn.Module):
    """A bias, for layers without a batch norm.

    In front of a batch norm it would do nothing: the norm subtracts it again, its
    gradient is rounding error, and AdamW follows that faster than the running
    statistics can.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
        return x + self.bias.to(x.dtype)


def bias_before_norm(width: int, *, use: bool) -> nn.Module:
    """A bias in front of a batch norm, where the paper's code has one; or nothing."""
    return Bias(width) if use else nn.Identity()


def norm_or_bias(width: int, *, batch_norm: bool) -> nn.Module:
    """The batch norm or the bias that follows a layer without a bias."""
    return nn.BatchNorm1d(width) if batch_norm else Bias(width)


class NormActDropLinear(nn.Module):
    """dropout(relu(norm(x))) W + b.

    `act` says whether the ReLU is before or after the norm. Without `batch_norm` a
    bias replaces the norm. `init="glorot"` has no b.
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
        norm = norm_or_bias(in_features, batch_norm=batch_norm)
        self.norm_act_drop = NormActDrop(norm, dropout, relu=act)
        self.linear = (
            nn.Linear(in_features, out_features)
            if init == "linear"
            else DenseLinear(in_features, out_features, bias=False, init=init)
        )
        self.deferred = defer
        """Is the product with W left to the next layer in training too?"""

    def forward(self, x: Float[Tensor, "nodes _"]) -> Float[Tensor, "nodes _"]:
        return self.defer(x).materialize()

    def with_hidden(
        self, x: Float[Tensor, "nodes _"]
    ) -> tuple[Float[Tensor, "nodes _"], Float[Tensor, "nodes _"]]:
        """relu(norm(x)) before dropout, and the output."""
        hidden = torch.relu(self.norm_act_drop.norm(x))
        return hidden, self.norm_act_drop.dropout(hidden) @ self._weight

    def defer(self, x: TensorOrDeferred) -> DeferredLinear:
        """The output without its bias, and in part without its product."""
        product, block = DeferredLinear.of(x).product(), self.norm_act_drop
        weight, bias = self._weight, self.linear.bias
        if self.deferred:
            return DeferredLinear(block._between(product), weight, bias)
        return DeferredLinear(block._between(product, weight), None, bias)

    @property
    def _weight(self) -> Weight:
        weight = self.linear.weight
        return weight.T if isinstance(self.linear, nn.Linear) else weight


@torch.no_grad()
def update_running_stats(
    norm: nn.BatchNorm1d,
    mean: Float[Tensor, " width"],
    variance: Float[Tensor, " width"],
) -> None:
    """Update the running statistics of a batch norm as its forward pass does."""
    momentum = 0.0 if norm.momentum is None else norm.momentum
    for name, value in (("running_mean", mean), ("running_var", variance)):
        norm.get_buffer(name).mul_(1 - momentum).add_(momentum * value)
    norm.get_buffer("num_batches_tracked").add_(1)


class FusedNormActDrop(Function):
    """dropout(relu(norm(x W + b))) V on a GPU; x is saved, the rest is recomputed.

    A small product and a pass over memory cost less than the memory they save.
    Tensors have an axis of runs in front.
    """

    @staticmethod
    def forward(
        x: Float[Tensor, "runs nodes _"],
        weight_in: Float[Tensor, "runs _ width"] | None,
        bias_in: Float[Tensor, "runs width"],
        weight: Float[Tensor, "runs width"],
        bias: Float[Tensor, "runs width"],
        p: Float[Tensor, " runs"],
        seed: Tensor,
        weight_out: Float[Tensor, "runs width _"] | None,
        relu: Relu,
    ) -> tuple[Tensor, Tensor, Tensor]:
        from unalike.nn import cuda

        pre_norm = matmul_padded(x, weight_in)
        mean, variance = cuda.batch_norm_stats(pre_norm, bias_in, relu)
        norm = FusedNormParams.of(mean, variance, bias_in, weight, bias, p, seed)
        hidden = cuda.norm_act_drop_forward(pre_norm, norm, relu)
        return matmul_padded(hidden, weight_out), mean, variance

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]
    ) -> None:
        x, weight_in, *params, weight_out, ctx.relu = inputs
        _, mean, variance = output
        ctx.mark_non_differentiable(mean, variance)
        norm = FusedNormParams.of(mean, variance, *params)
        ctx.save_for_backward(x, weight_in, weight_out, *norm)

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        from unalike.nn import cuda

        x, weight_in, weight_out, *params = ctx.saved_tensors
        norm = FusedNormParams(*params)
        pre_norm = matmul_padded(x, weight_in)
        grad_weight_out = None
        if weight_out is not None:
            hidden = cuda.norm_act_drop_forward(pre_norm, norm, ctx.relu)
            width, grad_out = weight_out.shape[-1], pad_last_dim(grad_out)
            padded = pad_last_dim(weight_out.to(grad_out.dtype))
            padded_grad = matmul_like(padded, hidden.mT.to(grad_out.dtype), grad_out)
            grad_weight_out = padded_grad[..., :width].to(weight_out.dtype)
            del hidden
            grad_out = grad_out @ padded.mT
        grad_pre_norm, *grad_params = cuda.norm_act_drop_backward(
            pre_norm, grad_out, norm, ctx.relu
        )
        grad_weight_in = None
        if weight_in is not None:
            grad_weight_in = x.mT.to(grad_pre_norm.dtype) @ grad_pre_norm
            grad_weight_in = grad_weight_in.to(weight_in.dtype)
        weight_t = None if weight_in is None else weight_in.mT
        grad_x = matmul_padded(grad_pre_norm, weight_t).to(x.dtype)
        return grad_x, grad_weight_in, *grad_params, None, None, grad_weight_out, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """The runs of the stack are added to the axis of runs."""
        runs = info.batch_size
        stacked = [
            move_runs(value, dim, runs).flatten(0, 1)
            if isinstance(value, Tensor)
            else value
            for value, dim in zip(inputs, in_dims, strict=True)
        ]
        outputs = FusedNormActDrop.apply(*stacked)
        return tuple(out.unflatten(0, (runs, -1)) for out in outputs), (0, 0, 0)
