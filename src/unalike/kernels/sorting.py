"""Sorting: a run of numbers put in order, and searched in it, for compiled loops.

numba's own sorts are closures that share a name. What one process compiled and kept may
meet what another did under that name, and a sort then does the work of an argsort
without a word.
"""

from __future__ import annotations

import numpy as np

from unalike.kernels.compiled import compiled

FEW = 16
"""Numbers that are put in order one by one."""
DEEP = 64
"""Pieces that may wait: the larger half does, so there are no more than bits."""


@compiled()
def sort_run(numbers, along, begin, end):
    """Sort numbers[begin:end]; what lies along is moved with them, if there is any."""
    if end - begin > FEW:
        _split(numbers, along, begin, end)
    for place in range(begin + 1, end):
        while place > begin and numbers[place - 1] > numbers[place]:
            _swap(numbers, along, place - 1, place)
            place -= 1


@compiled()
def place_of(numbers, begin, end, wanted):
    """Where a number stands in the sorted numbers[begin:end]; -1 where it does not."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and numbers[low] == wanted else -1


@compiled()
def _split(numbers, along, begin, end):
    """Part small numbers from large ones until all parts have few (Hoare 1962)."""
    waiting = np.empty((DEEP, 2), np.int64)
    waiting[0, 0], waiting[0, 1], count = begin, end, 1
    while count:
        count -= 1
        low, high = waiting[count, 0], waiting[count, 1]
        while high - low > FEW:
            left, right = _part(numbers, along, low, high)
            if right - low < high - left:
                waiting[count, 0], waiting[count, 1] = left, high
                high = right
            else:
                waiting[count, 0], waiting[count, 1] = low, right
                low = left
            count += 1


@compiled()
def _part(numbers, along, low, high):
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


@compiled()
def _swap(numbers, along, one, other):
    numbers[one], numbers[other] = numbers[other], numbers[one]
    if len(along):
        along[one], along[other] = along[other], along[one]
