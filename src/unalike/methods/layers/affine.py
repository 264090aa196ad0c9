"""Linear layers whose product is deferred, so that a later step can fold into it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.matrix_units import padded

Weight: TypeAlias = Float[Tensor, "inputs hidden"]


@dataclass(frozen=True, eq=False)
class Affine:
    """x W + b that is not multiplied yet; weight and bias may be absent."""

    rows: Float[Tensor, "nodes inputs"]
    weight: Weight | None = None
    offset: Float[Tensor, " hidden"] | None = None
    constant: Float[Tensor, "nodes inputs"] | None = None
    """The stored features that `rows` are equal to, where they do not change."""

    @classmethod
    def of(cls, hidden: Hidden) -> Affine:
        """A tensor as it is, or what is deferred already."""
        return hidden if isinstance(hidden, Affine) else cls(hidden)

    def chunk(self, count: int) -> list[Affine]:
        """Equal blocks of the output columns."""
        assert self.weight is not None
        weights = self.weight.chunk(count, 1)
        biases = [None] * count if self.offset is None else self.offset.chunk(count)
        return [
            replace(self, weight=weight, offset=bias)
            for weight, bias in zip(weights, biases, strict=True)
        ]

    @property
    def factors(self) -> tuple[Tensor, ...]:
        """Rows and weight, where there is one."""
        return (self.rows,) if self.weight is None else (self.rows, self.weight)

    def product(self) -> Affine:
        """The same with the product computed; the bias is still to be added."""
        return Affine(times(self.rows, self.weight), None, self.offset)

    def value(self) -> Float[Tensor, "nodes hidden"]:
        found = times(self.rows, self.weight)
        return found if self.offset is None else found + self.offset.to(found.dtype)

    def times(self, further: Float[Tensor, "hidden wider"]) -> Affine:
        """The product with a further matrix, computed between the two weights."""
        weight = further if self.weight is None else self.weight @ further
        return Affine(
            self.rows, weight, None if self.offset is None else self.offset @ further
        )


Hidden: TypeAlias = Affine | Float[Tensor, "nodes hidden"]


def value(hidden: Hidden) -> Float[Tensor, "nodes hidden"]:
    """The tensor, computed now if it was deferred."""
    return Affine.of(hidden).value()


def times(
    x: Float[Tensor, "*runs nodes _"], weight: Float[Tensor, "*runs _ _"] | None
) -> Float[Tensor, "*runs nodes _"]:
    """The product with a weight, where there is one, in the precision of x."""
    if weight is None:
        return x
    wide, width = padded(weight.to(x.dtype)), weight.shape[-1]
    product = x @ wide
    return product if wide.shape[-1] == width else product[..., :width].contiguous()


def product_like(
    x: Float[Tensor, "*runs nodes _"],
    one: Float[Tensor, "*runs nodes _"],
    other: Float[Tensor, "*runs _ _"],
) -> Float[Tensor, "*runs nodes _"]:
    """A product laid out in memory as x is, so that its slope need not be copied."""
    product = torch.mm if x.dim() == 2 else torch.bmm
    return product(one, other, out=torch.empty_like(x))
