"""Restricted unpickler for old NumPy and SciPy pickles."""

from __future__ import annotations

import pickle
import pickletools
import re
from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse

from unalike.datasets.readers import (
    check_compressed,
    read_errors,
    read_npy_header,
)
from unalike.errors import UserError, first_line

NUMBER_TYPE = re.compile("[iuf][1248]")
OBJECT_TYPES = ("O", "O8")
MAX_TUPLES = 1_000
"""Tuples of a pickle; Python overflows its stack on the hash of a deeply nested one."""

# Globals of a pickle stand for these classes. The state of an instance is checked, and
# `__setstate__` also refuses the state of a class, for which it lacks an argument.


class PickledDtype:
    """Stand-in for `numpy.dtype`: a type of numbers, or object, without fields."""

    def __init__(self, name: str, align: int = 0, copy: int = 0) -> None:
        if name not in OBJECT_TYPES and not NUMBER_TYPE.fullmatch(name):
            raise pickle.UnpicklingError(f"it has an array of type {name[:20]!r}")
        self.name, self.byteorder = name, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, byteorder, *fields = state
        if byteorder not in ("<", ">", "=", "|") or fields[:3] != [None] * 3:
            raise pickle.UnpicklingError("it has an array type with fields")
        self.byteorder = byteorder

    def numbers(self, data: bytes | str) -> np.ndarray:
        """The numbers in some bytes, which Python 2 pickled as text."""
        if self.name in OBJECT_TYPES:
            raise pickle.UnpicklingError("it has objects in place of numbers")
        raw = data.encode("latin1") if isinstance(data, str) else data
        dtype = np.dtype(self.byteorder + self.name)
        return np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="))


class PickledScalar:
    """Stand-in for `numpy.core.multiarray.scalar`; gives a number of Python."""

    def __new__(cls, dtype: PickledDtype, data: bytes | str) -> Any:
        return dtype.numbers(data).item()

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it has a number with state")


class PickledArray:
    """Stand-in for `numpy.ndarray` and for the function that makes an empty one."""

    def __init__(self, *arguments: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def build(self, built: dict[int, Any]) -> np.ndarray:
        """The array, checked against the number of its bytes or objects."""
        *_, shape, dtype, is_fortran, data = self.state
        order: Literal["F", "C"] = "F" if is_fortran else "C"
        if dtype.name not in OBJECT_TYPES:
            return dtype.numbers(data).reshape(shape, order=order)
        objects = np.empty(len(data), object)
        for index, value in enumerate(data):
            objects[index] = _build(value, built)
        return objects.reshape(shape, order=order)


class PickledCSR:
    """Stand-in for `scipy.sparse.csr_matrix`."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def build(self, built: dict[int, Any]) -> scipy.sparse.csr_array:
        """The matrix of the three arrays, with every index checked."""
        arrays = tuple(
            _build(self.state[name], built) for name in ("data", "indices", "indptr")
        )
        matrix = scipy.sparse.csr_array(arrays, shape=self.state["_shape"])
        check_compressed(matrix)
        return matrix


ALLOWED_GLOBALS: dict[tuple[str, str], type] = {
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): PickledDtype,
    ("numpy", "ndarray"): PickledArray,
    ("numpy._core.multiarray", "_reconstruct"): PickledArray,
    ("numpy._core.multiarray", "scalar"): PickledScalar,
    ("numpy.core.multiarray", "_reconstruct"): PickledArray,
    ("numpy.core.multiarray", "scalar"): PickledScalar,
    ("scipy.sparse._csr", "csr_matrix"): PickledCSR,
    ("scipy.sparse.csr", "csr_matrix"): PickledCSR,
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
    return _load(path.read_bytes(), path)


def read_object_array(path: Path) -> Any:
    """The object array in a .npy file, without `allow_pickle` of NumPy."""
    with read_errors(path), path.open("rb") as file:
        read_npy_header(file)
        return _load(file.read(), path)


def _load(content: bytes, path: Path) -> Any:
    try:
        check_opcodes(content)
        return _build(ArrayUnpickler(BytesIO(content), encoding="latin1").load(), {})
    except Exception as error:
        # A damaged pickle can raise nearly any exception.
        raise UserError(f"{path} cannot be unpickled: {first_line(error)}.") from None


def check_opcodes(content: bytes, max_tuples: int = MAX_TUPLES) -> None:
    """Refuse opcodes that exhaust the memory or the stack of the unpickler."""
    num_tuples = 0
    for opcode, argument, _ in pickletools.genops(content):
        # The unpickler allocates its memo up to the largest index.
        if opcode.name.endswith("PUT") and int(argument or 0) > len(content):
            raise pickle.UnpicklingError(f"it has the memo index {argument}")
        num_tuples += opcode.name.startswith(("TUPLE", "FROZENSET"))
        if num_tuples > max_tuples:
            raise pickle.UnpicklingError(f"it has more than {max_tuples} tuples")


def _build(value: Any, built: dict[int, Any]) -> Any:
    """The value with arrays for their stand-ins, each of them built once."""
    if not isinstance(value, PickledArray | PickledCSR | dict | list):
        return value
    if id(value) not in built:
        if isinstance(value, dict):
            result: Any = {key: _build(entry, built) for key, entry in value.items()}
        elif isinstance(value, list):
            result = [_build(entry, built) for entry in value]
        else:
            result = value.build(built)
        built[id(value)] = result
    return built[id(value)]
