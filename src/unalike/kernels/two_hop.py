"""Two hops: whom the neighbours of a row know and it does not, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Int

PATHS_AT_ONCE = 2**23
"""Paths of two steps that a block of rows may have; a longer row stands alone."""
SAMPLE = 100
"""Rows that an estimate looks at."""


def two_hop(
    once: scipy.sparse.csr_array, ids: type[np.integer[Any]]
) -> tuple[Int[np.ndarray, " rows_and_one"], Int[np.ndarray, " entries"]]:
    """Starts and columns of the pattern of A A without that of A.

    Besides the answer there is one block in memory, whose size the paths bound.
    """
    parts, counts = [], [np.zeros(1, np.int64)]
    for first, last in blocks(paths_of(once)):
        rows = beyond(once, once[first:last])
        counts.append(np.diff(rows.indptr))
        parts.append(rows.indices.astype(ids, copy=False))
    return np.cumsum(np.concatenate(counts), dtype=np.int64), joined(parts, ids)


def beyond(
    once: scipy.sparse.csr_array, near: scipy.sparse.csr_array
) -> scipy.sparse.csr_array:
    """The two-hop rows of some rows, with ascending columns."""
    far = near @ once
    far.sort_indices()
    return far > near


def joined(
    parts: list[Int[np.ndarray, " _"]], ids: type[np.integer[Any]]
) -> Int[np.ndarray, " entries"]:
    """The parts one after the other; each is given up when it has been copied."""
    if len(parts) == 1:
        return parts[0]
    whole = np.empty(sum(map(len, parts)), ids)
    end = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[end : end + len(part)] = part
        end += len(part)
    return whole


def paths_of(once: scipy.sparse.csr_array) -> Int[np.ndarray, " rows"]:
    """The paths of two steps that begin in each row."""
    return once @ np.diff(once.indptr).astype(np.int64)


def blocks(paths: Int[np.ndarray, " rows"]) -> Iterator[tuple[int, int]]:
    """Runs of rows of a bounded number of paths."""
    total = np.cumsum(paths)
    first = 0
    while first < len(paths):
        before = total[first - 1] if first else 0
        fits = int(np.searchsorted(total, before + PATHS_AT_ONCE, side="right"))
        last = max(first + 1, fits)
        yield first, last
        first = last


def most_entries(once: scipy.sparse.csr_array) -> int:
    """A bound on the two-hop entries: a row has at most its paths, or every column."""
    return int(np.minimum(paths_of(once), once.shape[1]).sum())


def likely_entries(once: scipy.sparse.csr_array) -> int:
    """An estimate of the two-hop entries that is seldom too low.

    Rows are drawn by their bound, so that each weighs the same in the mean share of
    its bound that a row has; two standard errors are added to that share.
    """
    bound = np.minimum(paths_of(once), once.shape[1])
    total = int(bound.sum())
    if not total:
        return 0
    draw = np.random.default_rng(0)
    rows = draw.choice(len(bound), SAMPLE, p=bound / total)
    found = [beyond(once, once[row : row + 1]).nnz / bound[row] for row in rows]
    share = np.mean(found) + 2 * np.std(found) / np.sqrt(SAMPLE)
    return int(total * min(1.0, share))
