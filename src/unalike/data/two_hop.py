"""Two-hop neighbourhoods in blocks of rows, and estimates of their size."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Int

from unalike.data.csr import row_blocks

PATHS_AT_ONCE = 2**23
"""Two-step paths in a block of rows; a row with more is a block of its own."""
SAMPLE = 100
"""Rows from which the size of the two-hop graph is estimated."""


def two_hop(
    once: scipy.sparse.csr_array, dtype: type[np.integer[Any]]
) -> tuple[Int[np.ndarray, " rows_and_one"], Int[np.ndarray, " nnz"]]:
    """indptr and indices of the pattern of A A without that of A."""
    indices, lengths = [], [np.zeros(1, np.int64)]
    paths = np.concatenate([[0], np.cumsum(path_counts(once), dtype=np.int64)])
    for first, last in row_blocks(paths, PATHS_AT_ONCE):
        rows = two_hop_rows(once, once[first:last])
        lengths.append(np.diff(rows.indptr))
        indices.append(rows.indices.astype(dtype, copy=False))
    indptr = np.cumsum(np.concatenate(lengths), dtype=np.int64)
    return indptr, _concatenate(indices, dtype)


def two_hop_rows(
    once: scipy.sparse.csr_array, rows: scipy.sparse.csr_array
) -> scipy.sparse.csr_array:
    """The two-hop rows of some rows, with ascending indices."""
    twice = rows @ once
    twice.sort_indices()
    return twice > rows


def _concatenate(
    arrays: list[Int[np.ndarray, " _"]], dtype: type[np.integer[Any]]
) -> Int[np.ndarray, " nnz"]:
    """Concatenate arrays, each of which is freed once it has been copied."""
    if len(arrays) == 1:
        return arrays[0]
    result = np.empty(sum(map(len, arrays)), dtype)
    end = 0
    arrays.reverse()
    while arrays:
        array = arrays.pop()
        result[end : end + len(array)] = array
        end += len(array)
    return result


def path_counts(once: scipy.sparse.csr_array) -> Int[np.ndarray, " rows"]:
    """The number of two-step paths from each row."""
    return once @ np.diff(once.indptr).astype(np.int64)


def two_hop_nnz_bound(once: scipy.sparse.csr_array) -> int:
    """An upper bound on the two-hop entries: a row has at most its paths or columns."""
    return int(np.minimum(path_counts(once), once.shape[1]).sum())


def estimate_two_hop_nnz(once: scipy.sparse.csr_array) -> int:
    """An estimate of the two-hop entries that is seldom too low.

    Rows are sampled in proportion to their bound, so that each weighs the same in the
    mean ratio of entries to bound; two standard errors are added to that ratio.
    """
    bound = np.minimum(path_counts(once), once.shape[1])
    total = int(bound.sum())
    if not total:
        return 0
    rng = np.random.default_rng(0)
    rows = rng.choice(len(bound), SAMPLE, p=bound / total)
    ratios = [two_hop_rows(once, once[row : row + 1]).nnz / bound[row] for row in rows]
    ratio = np.mean(ratios) + 2 * np.std(ratios) / np.sqrt(SAMPLE)
    return int(total * min(1.0, ratio))
