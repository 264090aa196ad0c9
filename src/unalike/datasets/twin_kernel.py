"""Kernel: a loop that numba compiles once, keeps, and runs without Python's lock."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function when it is first called.

    Run-time type checkers wrap functions; numba needs the one that is inside.
    """
    return numba.njit(inspect.unwrap(function), cache=True, nogil=True)
