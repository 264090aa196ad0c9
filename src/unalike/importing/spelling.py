"""Spelling: compiled loops that read whole numbers from the bytes of text."""

from __future__ import annotations

import numpy as np

from unalike.kernels.compiled import compiled

NEGATIVE, LARGE, WORD = 1, 2, 4
"""What some ids hold: one below 0, one above 2^63 - 1, one that is no number."""

_LOWEST = np.uint64(2**63)
_ZERO, _NINE, _MINUS = 48, 57, 45


@compiled()
def parse_integer(digits: np.ndarray, negative: bool) -> tuple[np.int64, int]:
    """The bits of a number and what it is: NEGATIVE, LARGE, WORD or 0."""
    value = np.uint64(0)
    for digit in digits:
        if digit < _ZERO or digit > _NINE:
            return np.int64(0), WORD
        before = value
        value = value * np.uint64(10) + np.uint64(digit - _ZERO)
        if value // np.uint64(10) != before:
            return np.int64(0), WORD
    bits = np.int64(value)
    if negative:
        return (-bits, NEGATIVE) if value <= _LOWEST else (bits, WORD)
    return bits, LARGE if bits < 0 else 0


@compiled()
def parse_integers(starts: np.ndarray, text: np.ndarray, keys: np.ndarray) -> int:
    """Read texts as whole numbers of 64 bits; returns what was met among them.

    Only the plain spelling counts: no leading zero, no plus, no blank. Numbers from
    2^63 to 2^64 - 1 are kept by their bits.
    """
    met = 0
    for i in range(len(keys)):
        first, end = starts[i], starts[i + 1]
        negative = first < end and text[first] == _MINUS
        first += negative
        padded = first < end and text[first] == _ZERO and (end - first > 1 or negative)
        if first == end or padded:
            return WORD
        keys[i], kind = parse_integer(text[first:end], negative)
        met |= kind
        if kind == WORD:
            return WORD
    return met
