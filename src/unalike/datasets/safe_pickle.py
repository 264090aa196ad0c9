"""Restricted unpickler for old NumPy and SciPy pickles."""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse
from numpy._core.multiarray import _reconstruct, scalar

from unalike.datasets.readers import first_line
from unalike.errors import UserError

ALLOWED_GLOBALS: dict[tuple[str, str], Any] = {
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "scalar"): scalar,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.multiarray", "scalar"): scalar,
    ("scipy.sparse._csr", "csr_matrix"): scipy.sparse.csr_matrix,
    ("scipy.sparse.csr", "csr_matrix"): scipy.sparse.csr_matrix,
}


class ArrayUnpickler(pickle.Unpickler):
    """Refuses every global that is not needed for arrays, lists and dicts of them."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED_GLOBALS:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, which is not allowed"
            )
        return ALLOWED_GLOBALS[module, name]


def read_pickle(path: Path) -> Any:
    """The object in a pickle file of Python 2 or 3."""
    with path.open("rb") as file:
        return _load(file, path)


def read_object_array(path: Path) -> Any:
    """The object array in a .npy file, without `allow_pickle` of NumPy."""
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            if version != (1, 0):
                raise ValueError(f"npy version {version}")
            np.lib.format.read_array_header_1_0(file)
        except ValueError as error:
            raise UserError(f"{path} is not a .npy file: {error}.") from None
        return _load(file, path)


def _load(file: BinaryIO, path: Path) -> Any:
    try:
        return ArrayUnpickler(file, encoding="latin1").load()
    except Exception as error:
        # A damaged pickle can raise nearly any exception.
        raise UserError(f"{path} cannot be unpickled: {first_line(error)}.") from None
