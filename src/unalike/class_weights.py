"""Class weights: what a node of each class counts for in the loss."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

ClassWeights = Float[Tensor, " classes"]


def balanced(labels: Int[Tensor, " nodes"], num_classes: int) -> ClassWeights:
    """n / (k n_c): each of the k classes that occur counts as much as any other.

    A node counts for 1 on average. A class that does not occur counts for nothing.
    """
    sizes = labels[labels >= 0].bincount(minlength=num_classes)
    there = sizes > 0
    shares = sizes.sum() / (there.sum() * sizes.clamp(min=1))
    return torch.where(there, shares, 0.0)


CLASS_WEIGHTS: dict[str, Callable[[Int[Tensor, " nodes"], int], ClassWeights]] = {
    "balanced": balanced,
}
