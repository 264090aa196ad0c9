"""Names: the user's own node ids as tensors, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

SIGNED, UNSIGNED, STARTS, TEXT = NAMES = (
    "names/signed",
    "names/unsigned",
    "names/starts",
    "names/text",
)


def own_names(names: pa.Array) -> pa.Array | None:
    """The same names; None where they are 0, 1, 2, … and need not be kept."""
    if not pa.types.is_integer(names.type):
        return names
    numbers = names.to_numpy(zero_copy_only=False)
    plain = np.array_equal(numbers, np.arange(len(numbers)))
    return None if plain else names


def tensors_of(names: pa.Array | None) -> dict[str, Tensor]:
    """Tensors that hold the names: numbers of 64 bits, or UTF-8 one after the other."""
    if names is None:
        return {}
    if pa.types.is_integer(names.type):
        large = pa.types.is_uint64(names.type)
        bits = names.cast(pa.uint64() if large else pa.int64()).to_numpy()
        whole = torch.from_numpy(bits.view(np.int64).copy())
        return {UNSIGNED if large else SIGNED: whole}
    names = pa.concat_arrays([names.cast(pa.large_string())])
    _, starts, text = names.buffers()
    starts = np.frombuffer(starts, np.int64)[: len(names) + 1]
    letters = np.frombuffer(text or b"", np.uint8)[: starts[-1]]
    return {
        STARTS: torch.from_numpy(starts.copy()),
        TEXT: torch.from_numpy(letters.copy()),
    }


def names_of(tensors: dict[str, Tensor]) -> pa.Array | None:
    """The names that tensors hold; None where there are none."""
    if TEXT in tensors:
        starts, text = tensors[STARTS].numpy(), tensors[TEXT].numpy()
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        names = pa.Array.from_buffers(pa.large_string(), len(starts) - 1, buffers)
        names.validate(full=True)
        return names
    if UNSIGNED in tensors:
        return pa.array(tensors[UNSIGNED].numpy().view(np.uint64))
    return pa.array(tensors[SIGNED].numpy()) if SIGNED in tensors else None
