"""Dropout, deferred linear layers, relu of their sum, concat-residual of LINKX."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import Function

from unalike.errors import UserError
from unalike.nn.sparse import backend, move_runs, pad_last_dim

Weight: TypeAlias = Float[Tensor, "inputs hidden"]


class Dropout(nn.Module):
    """`nn.Dropout` with its probability p as a buffer, which may differ by run."""

    p: Float[Tensor, ""]

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise UserError(f"The dropout is {p}; it must be at least 0 and below 1.")
        self.register_buffer("p", torch.tensor(p))

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return apply_dropout(x, self.sample_mask(x), self.p) if self.training else x

    def sample_mask(self, x: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
        return torch.rand_like(x) >= self.p


def apply_dropout(
    x: Float[Tensor, "*shape"], mask: Bool[Tensor, "*shape"], p: Float[Tensor, ""]
) -> Float[Tensor, "*shape"]:
    """x * mask / (1 - p)."""
    return x * mask / (1 - p)


@dataclass(frozen=True, eq=False)
class DeferredLinear:
    """x W + b that is not computed yet, so that a later layer can be folded into W."""

    x: Float[Tensor, "nodes inputs"]
    weight: Weight | None = None
    bias: Float[Tensor, " hidden"] | None = None
    constant: Float[Tensor, "nodes inputs"] | None = None
    """The stored features that `x` is equal to, where they are constant."""

    @classmethod
    def of(cls, hidden: TensorOrDeferred) -> DeferredLinear:
        """A deferred layer as it is, or a tensor without weight and bias."""
        return hidden if isinstance(hidden, DeferredLinear) else cls(hidden)

    def chunk(self, count: int) -> list[DeferredLinear]:
        """Equal blocks of the output columns."""
        assert self.weight is not None
        weights = self.weight.chunk(count, 1)
        biases = [None] * count if self.bias is None else self.bias.chunk(count)
        return [
            replace(self, weight=weight, bias=bias)
            for weight, bias in zip(weights, biases, strict=True)
        ]

    @property
    def factors(self) -> tuple[Tensor, ...]:
        """x, and the weight unless it is None."""
        return (self.x,) if self.weight is None else (self.x, self.weight)

    def product(self) -> DeferredLinear:
        """The same with the product computed; the bias is still to be added."""
        return DeferredLinear(matmul_padded(self.x, self.weight), None, self.bias)

    def materialize(self) -> Float[Tensor, "nodes hidden"]:
        product = matmul_padded(self.x, self.weight)
        return product if self.bias is None else product + self.bias.to(product.dtype)

    def times(self, further: Float[Tensor, "hidden wider"]) -> DeferredLinear:
        """The product with a further matrix, computed between the two weights."""
        weight = further if self.weight is None else self.weight @ further
        return DeferredLinear(
            self.x, weight, None if self.bias is None else self.bias @ further
        )


TensorOrDeferred: TypeAlias = DeferredLinear | Float[Tensor, "nodes hidden"]


def value(hidden: TensorOrDeferred) -> Float[Tensor, "nodes hidden"]:
    """The tensor, computed now if it was deferred."""
    return DeferredLinear.of(hidden).materialize()


def matmul_padded(
    x: Float[Tensor, "*runs nodes _"], weight: Float[Tensor, "*runs _ _"] | None
) -> Float[Tensor, "*runs nodes _"]:
    """x @ weight in the precision of x; x itself if the weight is None."""
    if weight is None:
        return x
    padded, width = pad_last_dim(weight.to(x.dtype)), weight.shape[-1]
    product = x @ padded
    return product if padded.shape[-1] == width else product[..., :width].contiguous()


def matmul_like(
    x: Float[Tensor, "*runs nodes _"],
    a: Float[Tensor, "*runs nodes _"],
    b: Float[Tensor, "*runs _ _"],
) -> Float[Tensor, "*runs nodes _"]:
    """a @ b in the memory layout of x, so that the gradient need not be copied."""
    product = torch.mm if x.dim() == 2 else torch.bmm
    return product(a, b, out=torch.empty_like(x))


def linear_sum_relu(
    bias: Float[Tensor, " hidden"], *terms: DeferredLinear
) -> Float[Tensor, "nodes hidden"]:
    """relu(bias + x W + y V + ...)."""
    biases = [bias, *(term.bias for term in terms if term.bias is not None)]
    x = terms[0].x
    device = x.device.type
    autocast = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if autocast else x.dtype
    factors = [factor.to(dtype) for term in terms for factor in term.factors]
    return LinearSumReLU.apply(torch.stack(biases).sum(0), *factors)


class LinearSumReLU(Function):
    """relu(bias + x W + y V + ...), summed inside the matrix kernels (`addmm_`).

    Written out, each sum and the ReLU would read and write all of the nodes again.
    """

    @staticmethod
    def forward(bias: Tensor, *factors: Tensor) -> Tensor:
        first, *further = _pairs(factors)
        total = first[0] @ first[1]
        for x, weight in further:
            add = total.addmm_ if total.dim() == 2 else total.baddbmm_
            add(x, weight)
        return backend(total.device).bias_relu_(total, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(output, *inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        total, *factors = ctx.saved_tensors
        grad, grad_bias = backend(grad_out.device).bias_relu_backward(grad_out, total)
        needed = ctx.needs_input_grad[1:]
        grads: list[Tensor | None] = [grad_bias]
        for i, (x, weight) in enumerate(_pairs(factors)):
            x_needed, weight_needed = needed[2 * i : 2 * i + 2]
            grads.append(matmul_like(x, grad, weight.mT) if x_needed else None)
            grads.append(matmul_like(weight, x.mT, grad) if weight_needed else None)
        return tuple(grads)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor
    ) -> tuple[Tensor, int]:
        """A stack of runs is a batch of matrices; shared ones are not copied."""
        stacked = [
            move_runs(tensor, dim, info.batch_size)
            for tensor, dim in zip(inputs, in_dims, strict=True)
        ]
        return LinearSumReLU.apply(*stacked), 0


def _pairs(factors: tuple[Tensor, ...] | list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(factors[::2], factors[1::2], strict=True))


class ConcatResidual(nn.Module):
    """relu(W [a; x] + a + x) of LINKX; dropout and ReLU on W [a; x] are optional."""

    def __init__(self, hidden: int, dropout: float, *, activation: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * hidden, hidden)
        inner_dropout = [Dropout(dropout)] if dropout else []
        self.inner = nn.Sequential(*inner_dropout, *[nn.ReLU()] * activation)

    def forward(
        self, a: TensorOrDeferred, x: TensorOrDeferred
    ) -> Float[Tensor, "nodes hidden"]:
        if len(self.inner):
            a, x = value(a), value(x)
            combined = self.inner(self.linear(torch.cat([a, x], 1)))
            return torch.relu(combined + a + x)
        # Without an inner layer all is linear: (W_a + 1) a + (W_x + 1) x + b needs
        # neither the concatenation nor a and x, where these are products themselves.
        weights = [half.T for half in self.linear.weight.chunk(2, 1)]
        eye = torch.eye(self.linear.out_features, device=self.linear.weight.device)
        terms = [
            DeferredLinear.of(hidden).times(weight + eye)
            for hidden, weight in zip((a, x), weights, strict=True)
        ]
        return linear_sum_relu(self.linear.bias, *terms)
