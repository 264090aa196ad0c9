"""Compiled: loops that numba turns into machine code, kept for the next start."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar, cast

import numba
import torch
from numba.core import event

from unalike.progress import notify

Loop = TypeVar("Loop", bound=Callable[..., Any])

SMALL = 2**18
"""Entries up to which index work is done by torch and SciPy: nothing is compiled."""
ONE_AT_A_TIME = Lock()
"""Held by parallel loops.

The one thread pool of numba's that every machine has ends the process when two threads
enter it at the same time.
"""


@cache
def start_threads() -> None:
    """Start numba's threads, and undo that with it the number torch uses is set.

    With another number of threads torch sums in another order. A process that has
    started them cannot be forked, so that this waits until there is a loop to run.
    """
    wanted = torch.get_num_threads()
    numba.get_num_threads()
    torch.set_num_threads(wanted)


@event.Listener.register
class CompilationNotice:
    """Says once per process that numba compiles, which takes seconds.

    numba announces no compilation where it loads machine code from its cache.
    """

    def __init__(self) -> None:
        self.given = False

    def notify(self, event: Any) -> None:
        if event.is_start and not self.given:
            self.given = True
            notify("compiling once; later starts load the machine code from a cache.")


NOTICE = CompilationNotice()
event.register("numba:compile", NOTICE)


def compiled(
    *, parallel: bool = False, fastmath: bool | set[str] = False
) -> Callable[[Loop], Loop]:
    """Compile a function when it is first called; it runs without Python's lock.

    Run-time type checkers wrap functions, and numba needs the one that is inside.
    """

    def compile_inside(loop: Loop) -> Loop:
        fast = numba.njit(
            inspect.unwrap(loop),
            parallel=parallel,
            fastmath=fastmath,
            nogil=True,
            cache=True,
            no_cfunc_wrapper=True,  # nothing calls it from C
        )
        return alone(fast) if parallel else fast

    return compile_inside


def alone(loop: Loop) -> Loop:
    """The same loop, in one thread of the program at a time."""

    @wraps(loop)
    def waits(*arguments: Any) -> Any:
        with ONE_AT_A_TIME:
            start_threads()
            return loop(*arguments)

    return cast(Loop, waits)
