"""Matrix units: what a card wants of factors that it multiplies with rounding."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

ALIGNED = 8
"""Numbers that begin at a multiple of this are read without detour."""


def rounded(kind: torch.dtype) -> bool:
    """Are products of such numbers rounded, as matrix units do?"""
    exact = torch.get_float32_matmul_precision() == "highest"
    return kind == torch.bfloat16 or (kind == torch.float32 and not exact)


def room_behind(count: int) -> int:
    """The numbers between the end of some and the next aligned place."""
    return -count % ALIGNED


def padded(x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows aligned"]:
    """Rows of which each begins at an aligned place, where that pays."""
    room = room_behind(x.shape[-1])
    wanted = room and x.is_cuda and rounded(x.dtype)
    return F.pad(x, (0, room)) if wanted else x
