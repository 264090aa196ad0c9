"""Kernels of bridges: batch norm, ReLU and dropout between two layers."""

from typing import Literal, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

Relu = Literal["before", "after", "none"]
"""Where a ReLU stands, seen from the norm."""


class Norm(NamedTuple):
    """The numbers of a norm and of the dropout behind it, for each run of a stack."""

    mean: Float[Tensor, "runs width"]
    spread: Float[Tensor, "runs width"]
    """One over the standard deviation."""
    gain: Float[Tensor, "runs width"]
    shift: Float[Tensor, "runs width"]
    rate: Float[Tensor, " runs"]
    seed: Int[Tensor, " runs"]
