"""Numba helpers: cached njit, memcpy, pread, sort, binary search, random streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar, cast

import numba
import numpy as np
import torch
from numba.core import cgutils, event, types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

from unalike.progress import notify

Function = TypeVar("Function", bound=Callable[..., Any])

PARALLEL_LOCK = Lock()
"""Held by parallel functions.

The thread pool of numba that every machine has ends the process when two threads enter
it at the same time.
"""


@cache
def start_numba_threads() -> None:
    """Start numba's threads without changing the number of threads that torch uses.

    With another number of threads torch sums in another order. A process that has
    started them cannot be forked, so they start with the first parallel function.
    """
    threads = torch.get_num_threads()
    numba.get_num_threads()
    torch.set_num_threads(threads)


@event.Listener.register
class CompilationNotice:
    """Say once per process that numba compiles, which takes seconds.

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


class OptionalCache:
    """numba's cache on disk, where a full disk only means that nothing is saved."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.cache = FunctionCache(function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cache, name)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        with suppress(OSError):
            self.cache.save_overload(signature, compiled)


def njit(
    *, parallel: bool = False, fastmath: bool | set[str] = False
) -> Callable[[Function], Function]:
    """Compile a function at its first call, cache it on disk, run it without the GIL.

    Run-time type checkers wrap functions, and numba needs the one that is inside.
    """

    def compile_unwrapped(function: Function) -> Function:
        unwrapped = inspect.unwrap(function)
        compiled = numba.njit(
            unwrapped,
            parallel=parallel,
            fastmath=fastmath,
            nogil=True,
            no_cfunc_wrapper=True,  # nothing calls it from C
        )
        compiled._cache = OptionalCache(unwrapped)
        return one_thread_at_a_time(compiled) if parallel else compiled

    return compile_unwrapped


def one_thread_at_a_time(function: Function) -> Function:
    """The same function, run by one Python thread at a time on torch's threads."""

    @wraps(function)
    def locked(*arguments: Any) -> Any:
        with PARALLEL_LOCK:
            start_numba_threads()
            numba.set_num_threads(
                min(torch.get_num_threads(), numba.config.NUMBA_NUM_THREADS)
            )
            return function(*arguments)

    return cast(Function, locked)


# Memory and files. memcpy copies some hundred numbers twice as fast as a loop or slice
# that numba compiles.


@intrinsic
def memcpy(
    typing: Any, target: Any, target_start: Any, source: Any, start: Any, length: Any
) -> Any:
    """target[target_start:][:length] = source[start:][:length] of contiguous arrays."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        to, of = (
            builder.gep(
                context.make_array(array_type)(context, builder, array).data, [begin]
            )
            for array, begin in (arguments[0:2], arguments[2:4])
        )
        size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
        cgutils.raw_memcpy(builder, to, of, arguments[4], size)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(target, integer, source, integer, integer), generate


pread: Any = types.ExternalFunction(
    "pread", types.intp(types.int32, types.uintp, types.uintp, types.int64)
)


@njit(parallel=True)
def pread_ranges(
    file: int, offsets: np.ndarray, bounds: np.ndarray, out: np.ndarray
) -> int:
    """Read out[bounds[i] : bounds[i + 1]] at offsets[i]; counts ranges that fail."""
    failed = 0
    address = out.ctypes.data
    for i in numba.prange(len(offsets)):
        done, end = bounds[i], bounds[i + 1]
        while done < end:
            offset = offsets[i] + done - bounds[i]
            count = pread(file, address + done, end - done, offset)
            if count <= 0:
                failed += 1
                break
            done += count
    return failed


# Sort and search. numba's own sorts are closures that share a name: machine code that
# one process cached may meet that of another under the same name, and a sort then
# silently does the work of an argsort.


INSERTION_SORT_LENGTH = 16
"""Numbers that insertion sort puts in order."""
MAX_STACK = 64
"""Ranges that may wait: the larger half does, so there are no more than bits."""


@njit()
def sort_range(numbers, companion, begin, end):
    """Sort numbers[begin:end] in place; a companion that is not empty moves along."""
    if end - begin > INSERTION_SORT_LENGTH:
        _quicksort(numbers, companion, begin, end)
    for i in range(begin + 1, end):
        while i > begin and numbers[i - 1] > numbers[i]:
            _swap(numbers, companion, i - 1, i)
            i -= 1


@njit()
def binary_search(numbers, begin, end, value):
    """The index of a value in the sorted numbers[begin:end]; -1 if it is absent."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < end and numbers[low] == value else -1


@njit()
def _quicksort(numbers, companion, begin, end):
    """Partition until all ranges are short (Hoare 1962)."""
    stack = np.empty((MAX_STACK, 2), np.int64)
    stack[0, 0], stack[0, 1], count = begin, end, 1
    while count:
        count -= 1
        low, high = stack[count, 0], stack[count, 1]
        while high - low > INSERTION_SORT_LENGTH:
            left, right = _hoare_partition(numbers, companion, low, high)
            if right - low < high - left:
                stack[count, 0], stack[count, 1] = left, high
                high = right
            else:
                stack[count, 0], stack[count, 1] = low, right
                low = left
            count += 1


@njit()
def _hoare_partition(numbers, companion, low, high):
    """Where the numbers <= pivot end, and where those >= pivot begin."""
    first, second, third = numbers[low], numbers[(low + high) // 2], numbers[high - 1]
    pivot = max(min(first, second), min(max(first, second), third))
    left, right = low, high - 1
    while left <= right:
        while numbers[left] < pivot:
            left += 1
        while numbers[right] > pivot:
            right -= 1
        if left <= right:
            _swap(numbers, companion, left, right)
            left += 1
            right -= 1
    return left, right + 1


@njit()
def _swap(numbers, companion, i, j):
    numbers[i], numbers[j] = numbers[j], numbers[i]
    if len(companion):
        companion[i], companion[j] = companion[j], companion[i]


# Random streams. Each row has a stream of its own (SplitMix64, Steele et al. 2014), so
# samples do not depend on the number of threads.


STEP = np.uint64(0x9E3779B97F4A7C15)
"""The increment of a stream's state from one number to the next."""

_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit()
def mix64(state: np.uint64) -> np.uint64:
    """The random bits of a state."""
    bits = (state ^ (state >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


@njit()
def stream_seed(seed: int, row: int) -> np.uint64:
    """The first state of the stream of a row."""
    return mix64(mix64(np.uint64(seed)) + STEP * np.uint64(row + 1))


@njit()
def uniform(state: np.uint64) -> float:
    """A number in [0, 1) of 53 random bits."""
    return (mix64(state) >> np.uint64(11)) * 2.0**-53


@njit()
def weighted_choice(weights: np.ndarray, fraction: float) -> int:
    """The index at a fraction of the summed weights; -1 where all of them are 0."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    remaining = total * fraction
    last = -1
    for i in range(len(weights)):
        if weights[i] > 0:
            last = i
            remaining -= weights[i]
            if remaining < 0:
                break
    return last


@njit()
def build_alias_table(
    weights: np.ndarray, ids: np.ndarray, keep: np.ndarray, other: np.ndarray
) -> None:
    """Fill an alias table (Walker 1977; Vose 1991).

    A sample takes a uniform index i, and returns ids[i] with the probability keep[i],
    otherwise other[i]. Weights that are all 0 give a uniform sample.
    """
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    scale = len(weights) / total if total > 0 else 0.0
    scaled = np.empty(len(weights), np.float64)
    for i in range(len(weights)):
        scaled[i] = weights[i] * scale
    stack = np.empty(len(weights), np.int64)
    small, large = 0, len(weights)
    for i in range(len(weights)):
        keep[i], other[i] = 1, ids[i]
        if scaled[i] < 1:
            stack[small] = i
            small += 1
        else:
            large -= 1
            stack[large] = i
    while small > 0 and large < len(weights):
        small -= 1
        below, above = stack[small], stack[large]
        keep[below], other[below] = scaled[below], ids[above]
        scaled[above] -= 1 - scaled[below]
        if scaled[above] < 1:
            stack[small] = above
            small += 1
            large += 1
