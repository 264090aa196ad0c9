"""Kernels of bridges: batch norm, ReLU and dropout between two layers."""

from typing import Literal, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

EPSILON = 1e-5
"""Added to variances, as batch norm does."""

Relu = Literal["before", "after", "none"]
"""Where a ReLU stands, seen from the norm."""


class Norm(NamedTuple):
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
    ) -> "Norm":
        """The norm of columns with these moments, and the other numbers in order."""
        return cls(mean, (variance + EPSILON).rsqrt(), *others)
