"""Weights larger than memory: uninitialised tensors in unnamed temporary files."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from math import prod
from tempfile import NamedTemporaryFile

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.errors import UserError
from unalike.files import allocate, write_errors
from unalike.system import cache_dir, free_memory

COPIES = 4
"""Training has the weights, the best weights so far and two moments."""
MAX_MEMORY_SHARE = 0.6
"""Fraction of the free memory that these copies of a weight may take."""
MIN_FILE_BYTES = 2**24
"""Smaller weights are always in memory."""


def empty_weights(shape: Sequence[int]) -> Float[Tensor, ...]:
    """An uninitialised weight, in a file if its copies would not fit in memory."""
    size, on_meta = 4 * prod(shape), torch.get_default_device().type == "meta"
    if on_meta or size <= MIN_FILE_BYTES:
        return torch.empty(*shape)
    fits = COPIES * size <= MAX_MEMORY_SHARE * free_memory(torch.device("cpu"))
    return torch.empty(*shape) if fits else empty_in_file(shape)


def empty_like(other: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """An uninitialised weight of the same shape, in a file if the other is in one."""
    in_file = not other.is_cuda and other.untyped_storage().filename is not None
    return empty_in_file(other.shape) if in_file else torch.empty_like(other)


def empty_in_file(shape: Sequence[int], what: str = "Weights") -> Float[Tensor, ...]:
    """An uninitialised tensor in an unnamed file, which vanishes with the process."""
    folder, size = cache_dir() / "weights", 4 * prod(shape)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if size > free:
        raise UserError(
            f"{what} of {size / 2**30:.1f} GiB fit neither into memory nor into "
            f"{folder}, which has {free / 2**30:.1f} GiB left."
        )
    with write_errors(folder), NamedTemporaryFile(dir=folder) as file:
        allocate(file, size)
        numbers = torch.from_file(file.name, shared=True, size=size // 4)
    return numbers.view(*shape)
