"""Deferred linear layer, `relu(sum of linears)`, LINKX's concat-residual layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import Function

from unalike.nn.dropout import Dropout
from unalike.nn.sparse import backend, pad_last_dim

# Linear layers whose product is deferred, so that a later step can fold into it.


Weight: TypeAlias = Float[Tensor, "inputs hidden"]


@dataclass(frozen=True, eq=False)
class DeferredLinear:
    """x W + b that is not multiplied yet; weight and bias may be absent."""

    rows: Float[Tensor, "nodes inputs"]
    weight: Weight | None = None
    bias: Float[Tensor, " hidden"] | None = None
    constant: Float[Tensor, "nodes inputs"] | None = None
    """The stored features that `rows` are equal to, where they do not change."""

    @classmethod
    def of(cls, hidden: TensorOrDeferred) -> DeferredLinear:
        """A tensor as it is, or what is deferred already."""
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
        """Rows and weight, where there is one."""
        return (self.rows,) if self.weight is None else (self.rows, self.weight)

    def product(self) -> DeferredLinear:
        """The same with the product computed; the bias is still to be added."""
        return DeferredLinear(matmul_padded(self.rows, self.weight), None, self.bias)

    def materialize(self) -> Float[Tensor, "nodes hidden"]:
        found = matmul_padded(self.rows, self.weight)
        return found if self.bias is None else found + self.bias.to(found.dtype)

    def times(self, further: Float[Tensor, "hidden wider"]) -> DeferredLinear:
        """The product with a further matrix, computed between the two weights."""
        weight = further if self.weight is None else self.weight @ further
        return DeferredLinear(
            self.rows, weight, None if self.bias is None else self.bias @ further
        )


TensorOrDeferred: TypeAlias = DeferredLinear | Float[Tensor, "nodes hidden"]


def value(hidden: TensorOrDeferred) -> Float[Tensor, "nodes hidden"]:
    """The tensor, computed now if it was deferred."""
    return DeferredLinear.of(hidden).materialize()


def matmul_padded(
    x: Float[Tensor, "*runs nodes _"], weight: Float[Tensor, "*runs _ _"] | None
) -> Float[Tensor, "*runs nodes _"]:
    """The product with a weight, where there is one, in the precision of x."""
    if weight is None:
        return x
    wide, width = pad_last_dim(weight.to(x.dtype)), weight.shape[-1]
    product = x @ wide
    return product if wide.shape[-1] == width else product[..., :width].contiguous()


def matmul_like(
    x: Float[Tensor, "*runs nodes _"],
    one: Float[Tensor, "*runs nodes _"],
    other: Float[Tensor, "*runs _ _"],
) -> Float[Tensor, "*runs nodes _"]:
    """A product laid out in memory as x is, so that its slope need not be copied."""
    product = torch.mm if x.dim() == 2 else torch.bmm
    return product(one, other, out=torch.empty_like(x))


# Rectified sum: relu(b + x W + y V + …) with as few passes over memory as it takes.


KERNELS = "unalike.nn.linear"


def linear_sum_relu(
    offset: Float[Tensor, " hidden"] | None, *terms: DeferredLinear
) -> Float[Tensor, "nodes hidden"]:
    """relu of an offset and a sum of products.

    A single term may be without a weight, all others have one.
    """
    rows, weight = terms[0].rows, terms[0].weight
    if weight is None:
        return torch.relu(terms[0].materialize())
    given = [offset, *(term.bias for term in terms)]
    offsets = [one for one in given if one is not None]
    total = torch.stack(offsets or [weight.new_zeros(weight.shape[1])]).sum(0)
    factors = [one.to(autocast_dtype(rows)) for term in terms for one in term.factors]
    return LinearSumReLU.apply(total, *factors)


def autocast_dtype(rows: Float[Tensor, "nodes _"]) -> torch.dtype:
    """The precision of a product: that of its rows, or the one that is set for all."""
    device = rows.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return rows.dtype


class LinearSumReLU(Function):
    """The products add up inside the matrix kernels, and the result is cut in place.

    Written out, each sum and the relu would read and write all of the nodes again.
    """

    @staticmethod
    def forward(offset: Tensor, *factors: Tensor) -> Tensor:
        first, *further = _pairs(factors)
        total = first[0] @ first[1]
        for x, weight in further:
            add = total.addmm_ if total.dim() == 2 else total.baddbmm_
            add(x, weight)
        return backend(total.device).bias_relu_(total, offset)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(output, *inputs[1:])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        total, *factors = ctx.saved_tensors
        slope, sums = backend(slope.device).bias_relu_backward(slope, total)
        needed = ctx.needs_input_grad[1:]
        found: list[Tensor | None] = [sums]
        for place, (x, weight) in enumerate(_pairs(factors)):
            to_x, to_weight = needed[2 * place : 2 * place + 2]
            found.append(matmul_like(x, slope, weight.mT) if to_x else None)
            found.append(matmul_like(weight, x.mT, slope) if to_weight else None)
        return tuple(found)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor
    ) -> tuple[Tensor, int]:
        """A stack of runs is a batch of matrices; what they share is not copied."""
        stacked = [
            one.expand(info.batch_size, *one.shape)
            if dim is None
            else one.movedim(dim, 0)
            for one, dim in zip(inputs, in_dims, strict=True)
        ]
        return LinearSumReLU.apply(*stacked), 0


def _pairs(factors: tuple[Tensor, ...] | list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(factors[::2], factors[1::2], strict=True))


# Mix: how LINKX joins what it knows of a node's edges and of its features.


class ConcatResidual(nn.Module):
    """relu(W [a; x] + a + x), with dropout and ReLU on the product where wanted."""

    def __init__(self, hidden: int, dropout: float, *, active: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * hidden, hidden)
        between = [Dropout(dropout)] if dropout else []
        self.inner = nn.Sequential(*between, *[nn.ReLU()] * active)

    def forward(
        self, a: TensorOrDeferred, x: TensorOrDeferred
    ) -> Float[Tensor, "nodes hidden"]:
        if len(self.inner):
            a, x = value(a), value(x)
            mixed = self.inner(self.linear(torch.cat([a, x], 1)))
            return torch.relu(mixed + a + x)
        # Without an inner step all is linear: (W_a + 1) a + (W_x + 1) x + b needs
        # neither the concatenation nor a and x, where these are products themselves.
        weights = [half.T for half in self.linear.weight.chunk(2, 1)]
        one = torch.eye(self.linear.out_features, device=self.linear.weight.device)
        terms = [
            DeferredLinear.of(hidden).times(weight + one)
            for hidden, weight in zip((a, x), weights, strict=True)
        ]
        return linear_sum_relu(self.linear.bias, *terms)
