"""Compiled: loops that numba turns into machine code, kept for the next start."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import torch

Loop = TypeVar("Loop", bound=Callable[..., Any])


def start_threads() -> None:
    """Start numba's threads now; with that it sets the number torch uses, once.

    Were that to happen after the first step, later ones would sum in another order.
    """
    wanted = torch.get_num_threads()
    numba.get_num_threads()
    torch.set_num_threads(wanted)


def compiled(
    *, parallel: bool = False, fastmath: bool | set[str] = False
) -> Callable[[Loop], Loop]:
    """Compile a function when it is first called; it runs without Python's lock.

    Run-time type checkers wrap functions, and numba needs the one that is inside.
    """

    def compile_inside(loop: Loop) -> Loop:
        return numba.njit(
            inspect.unwrap(loop),
            parallel=parallel,
            fastmath=fastmath,
            nogil=True,
            cache=True,
        )

    return compile_inside
