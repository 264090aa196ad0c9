"""Spacious: room for weights, in memory or, where they would fill it, in a file."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from math import prod
from tempfile import NamedTemporaryFile

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.cache import cache_folder
from unalike.errors import UserError
from unalike.memory import free_memory

COPIES = 4
"""Training keeps the weights, the best so far and two moments."""
SHARE = 0.6
"""Share of the free memory that these copies of a table may take."""
LITTLE = 2**24
"""Bytes that are never worth a file."""


def room(shape: Sequence[int]) -> Float[Tensor, ...]:
    """Unset numbers, in a file if memory could not hold their copies as well."""
    size = 4 * prod(shape)
    if size > LITTLE and COPIES * size > SHARE * free_memory(torch.device("cpu")):
        return room_in_file(shape)
    return torch.empty(*shape)


def room_like(other: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Unset numbers of the same shape, in memory or in a file as the others are."""
    in_file = not other.is_cuda and other.untyped_storage().filename is not None
    return room_in_file(other.shape) if in_file else torch.empty_like(other)


def room_in_file(shape: Sequence[int]) -> Float[Tensor, ...]:
    """Unset numbers in a file that has no name, so that nothing is ever left of it."""
    folder, size = cache_folder() / "weights", 4 * prod(shape)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if size > free:
        raise UserError(
            f"Weights of {size / 2**30:.1f} GiB fit neither into memory nor into "
            f"{folder}, which has {free / 2**30:.1f} GiB left."
        )
    with NamedTemporaryFile(dir=folder) as file:
        file.truncate(size)
        numbers = torch.from_file(file.name, shared=True, size=size // 4)
    return numbers.view(*shape)
