"""Convert Arrow string arrays to and from arrays of offsets and UTF-8 bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def string_array(offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    """Build an Arrow array whose string i is data[offsets[i]:offsets[i + 1]]."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def string_buffers(strings: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets, from 0 on, and the UTF-8 bytes of an array of strings."""
    if not len(strings):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    strings = strings.cast(pa.large_string())
    _, offsets, data = strings.buffers()
    offsets = np.frombuffer(offsets, np.int64)
    offsets = offsets[strings.offset : strings.offset + len(strings) + 1]
    first, end = offsets[0], offsets[-1]
    data = np.frombuffer(data or b"", np.uint8)[first:end]
    return offsets - first if first else offsets, data
