"""Lines: the compiled loops that read one wiki's lines of a file of page views.

A line has the wiki, the title, and further fields of which the last but one is the
count: `en.wikipedia Title page_id device count hours` or `en Title count bytes`.
"""

from __future__ import annotations

import numpy as np

from unalike.kernels.compiled import compiled

_NEWLINE, _BLANK, _ZERO, _NINE = 10, 32, ord("0"), ord("9")
FEWEST = 3
"""Blanks in a line."""


@compiled()
def end_of_line(block: np.ndarray, at: int) -> int:
    """The next newline, or the end of the block."""
    while at < len(block) and block[at] != _NEWLINE:
        at += 1
    return at


@compiled()
def after_code(line: np.ndarray, codes: np.ndarray, ends: np.ndarray) -> int:
    """Where the title begins, if the line has one of these codes; 0 otherwise.

    Codes stand one after the other, each with a blank.
    """
    first = 0
    for code in range(len(ends)):
        length = ends[code] - first
        if np.array_equal(line[:length], codes[first : ends[code]]):
            return length
        first = ends[code]
    return 0


@compiled()
def read_count(line: np.ndarray) -> int:
    """The last but one of at least four fields as a number, -1 if it is none."""
    blanks, last, before = 0, 0, 0
    for at in range(len(line)):
        if line[at] == _BLANK:
            blanks, last, before = blanks + 1, at, last
    count = 0
    for at in range(before + 1, last):
        if not _ZERO <= line[at] <= _NINE:
            return -1
        count = count * 10 + (line[at] - _ZERO)
    return count if blanks >= FEWEST and last > before + 1 else -1


@compiled()
def read_lines(
    block: np.ndarray,
    codes: np.ndarray,
    ends: np.ndarray,
    counts: np.ndarray,
    starts: np.ndarray,
    text: np.ndarray,
) -> tuple[int, int, int]:
    """Read whole lines: where the last ends, how many are kept and how many damaged."""
    at, rows, length, damaged = 0, 0, 0, 0
    while True:
        end = end_of_line(block, at)
        if end == len(block):
            return at, rows, damaged
        line = block[at:end]
        at = end + 1
        first = after_code(line, codes, ends)
        if not first:
            continue
        count = read_count(line)
        if count < 0:
            damaged += 1
            continue
        while line[first] != _BLANK:
            text[length] = line[first]
            length, first = length + 1, first + 1
        counts[rows] = count
        rows += 1
        starts[rows] = length
