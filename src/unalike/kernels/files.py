"""Files: runs of bytes read at many places of a file, side by side."""

from __future__ import annotations

import numba
import numpy as np
from numba import types

from unalike.kernels.compiled import compiled

pread = types.ExternalFunction(
    "pread", types.intp(types.int32, types.uintp, types.uintp, types.int64)
)


@compiled(parallel=True)
def read_runs(
    file: int, places: np.ndarray, begins: np.ndarray, out: np.ndarray
) -> int:
    """Fill out[begins[i] : begins[i + 1]] from each place; counts those that fail."""
    failed = 0
    address = out.ctypes.data
    for run in numba.prange(len(places)):
        done, end = begins[run], begins[run + 1]
        while done < end:
            place = places[run] + done - begins[run]
            got = pread(file, address + done, end - done, place)
            if got <= 0:
                failed += 1
                break
            done += got
    return failed
