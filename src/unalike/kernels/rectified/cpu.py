"""Sums that are cut at 0, on processor cores."""

import torch
from jaxtyping import Float
from torch import Tensor

Sums = Float[Tensor, "*runs nodes width"]


def rectify(total: Sums, offset: Float[Tensor, "*runs width"]) -> Sums:
    """relu of sums and an offset, in place."""
    return total.add_(offset.unsqueeze(-2)).relu_()


def rectify_back(slope: Sums, total: Sums) -> tuple[Sums, Float[Tensor, "*runs width"]]:
    """The slopes of the sums, and of the offset."""
    cut = torch.ops.aten.threshold_backward(slope, total, 0)
    return cut, cut.sum(-2)
