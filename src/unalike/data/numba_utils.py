"""Compiled: loops that numba turns into machine code, kept for the next start."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar, cast

import numba
import numpy as np
import torch
from numba.core import cgutils, event, types
from numba.extending import intrinsic

from unalike.progress import notify

# Compiled: loops that numba turns into machine code, kept for the next start.


Loop = TypeVar("Loop", bound=Callable[..., Any])

SMALL = 2**18
"""Entries up to which index work is done by torch and SciPy: nothing is compiled."""
PARALLEL_LOCK = Lock()
"""Held by parallel loops.

The one thread pool of numba's that every machine has ends the process when two threads
enter it at the same time.
"""


@cache
def start_numba_threads() -> None:
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


def njit(
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
        return one_thread_at_a_time(fast) if parallel else fast

    return compile_inside


def one_thread_at_a_time(loop: Loop) -> Loop:
    """The same loop, in one thread of the program at a time."""

    @wraps(loop)
    def waits(*arguments: Any) -> Any:
        with PARALLEL_LOCK:
            start_numba_threads()
            return loop(*arguments)

    return cast(Loop, waits)


# Copying: a run of numbers in memory, for compiled loops.
#
# The system's own copy takes a run of some hundred numbers twice as fast as a loop that
# numba compiles, be it over numbers or a slice.


@intrinsic
def memcpy(
    typing: Any, to: Any, to_begin: Any, of: Any, of_begin: Any, length: Any
) -> Any:
    """Put of[of_begin : of_begin + length] at to[to_begin]; both lie without gaps."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        target, source = (
            builder.gep(
                context.make_array(array_type)(context, builder, array).data, [begin]
            )
            for array, begin in (arguments[0:2], arguments[2:4])
        )
        size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
        cgutils.raw_memcpy(builder, target, source, arguments[4], size)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(to, whole, of, whole, whole), generate


# Files: runs of bytes read at many places of a file, side by side.


pread: Any = types.ExternalFunction(
    "pread", types.intp(types.int32, types.uintp, types.uintp, types.int64)
)


@njit(parallel=True)
def pread_ranges(
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


# Sorting: a run of numbers put in order, and searched in it, for compiled loops.
#
# numba's own sorts are closures that share a name. What one process compiled and kept may
# meet what another did under that name, and a sort then does the work of an argsort
# without a word.


INSERTION_SORT_LENGTH = 16
"""Numbers that are put in order one by one."""
MAX_STACK = 64
"""Pieces that may wait: the larger half does, so there are no more than bits."""


@njit()
def sort_range(numbers, along, begin, end):
    """Sort numbers[begin:end]; what lies along is moved with them, if there is any."""
    if end - begin > INSERTION_SORT_LENGTH:
        _quicksort(numbers, along, begin, end)
    for place in range(begin + 1, end):
        while place > begin and numbers[place - 1] > numbers[place]:
            _swap(numbers, along, place - 1, place)
            place -= 1


@njit()
def binary_search(numbers, begin, end, wanted):
    """Where a number stands in the sorted numbers[begin:end]; -1 where it does not."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and numbers[low] == wanted else -1


@njit()
def _quicksort(numbers, along, begin, end):
    """Part small numbers from large ones until all parts have few (Hoare 1962)."""
    waiting = np.empty((MAX_STACK, 2), np.int64)
    waiting[0, 0], waiting[0, 1], count = begin, end, 1
    while count:
        count -= 1
        low, high = waiting[count, 0], waiting[count, 1]
        while high - low > INSERTION_SORT_LENGTH:
            left, right = _hoare_partition(numbers, along, low, high)
            if right - low < high - left:
                waiting[count, 0], waiting[count, 1] = left, high
                high = right
            else:
                waiting[count, 0], waiting[count, 1] = low, right
                low = left
            count += 1


@njit()
def _hoare_partition(numbers, along, low, high):
    """Where those that are not above the middle end, and those not below it begin."""
    first, second, third = numbers[low], numbers[(low + high) // 2], numbers[high - 1]
    middle = max(min(first, second), min(max(first, second), third))
    left, right = low, high - 1
    while left <= right:
        while numbers[left] < middle:
            left += 1
        while numbers[right] > middle:
            right -= 1
        if left <= right:
            _swap(numbers, along, left, right)
            left += 1
            right -= 1
    return left, right + 1


@njit()
def _swap(numbers, along, one, other):
    numbers[one], numbers[other] = numbers[other], numbers[one]
    if len(along):
        along[one], along[other] = along[other], along[one]


# Streams of random numbers, and choices by chance, for compiled loops.
#
# Each row has a stream of its own (SplitMix64, Steele et al. 2014), so that what is drawn
# does not depend on how many threads draw.


STEP = np.uint64(0x9E3779B97F4A7C15)
"""What a stream's state grows by from one number to the next."""

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit()
def mix64(state: np.uint64) -> np.uint64:
    """The random bits of a state."""
    bits = (state ^ (state >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


@njit()
def stream_seed(seed: int, row: int) -> np.uint64:
    """The first state of a row."""
    return mix64(mix64(np.uint64(seed)) + STEP * np.uint64(row + 1))


@njit()
def uniform(state: np.uint64) -> float:
    """A number from 0 up to 1, of 53 random bits."""
    return (mix64(state) >> np.uint64(11)) * 2.0**-53


@njit()
def weighted_choice(chances: np.ndarray, share: float) -> int:
    """The place at a share of the summed chances; -1 where all of them are 0."""
    total = 0.0
    for place in range(len(chances)):
        total += chances[place]
    left = total * share
    last = -1
    for place in range(len(chances)):
        if chances[place] > 0:
            last = place
            left -= chances[place]
            if left < 0:
                break
    return last


@njit()
def build_alias_table(
    weights: np.ndarray, ids: np.ndarray, keep: np.ndarray, other: np.ndarray
) -> None:
    """Fill an alias table (Walker 1977; Vose 1991).

    A draw falls on a place evenly, stays there with the chance `keep`, and otherwise
    goes to the id `other`.
    """
    total = 0.0
    for place in range(len(weights)):
        total += weights[place]
    scale = len(weights) / total
    scaled = np.empty(len(weights), np.float64)
    for place in range(len(weights)):
        scaled[place] = weights[place] * scale
    stack = np.empty(len(weights), np.int64)
    poor, rich = 0, len(weights)
    for place in range(len(weights)):
        keep[place], other[place] = 1, ids[place]
        if scaled[place] < 1:
            stack[poor] = place
            poor += 1
        else:
            rich -= 1
            stack[rich] = place
    while poor > 0 and rich < len(weights):
        poor -= 1
        taker, giver = stack[poor], stack[rich]
        keep[taker], other[taker] = scaled[taker], ids[giver]
        scaled[giver] -= 1 - scaled[taker]
        if scaled[giver] < 1:
            stack[poor] = giver
            poor += 1
            rich += 1
