"""Columns: what raw files hold of each node, as labels and as features."""

from typing import Any

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.features import Features

THIN = 0.1
"""Features with fewer entries than this share are kept sparse."""


def as_labels(column: Any) -> Int[Tensor, " nodes"]:
    """Classes from a row, a column or a plain array; -1 and gaps are unknown."""
    numbers = np.asarray(column, np.float64).ravel()
    known = ~np.isnan(numbers) & (numbers >= 0)
    return torch.from_numpy(
        np.where(known, np.nan_to_num(numbers), -1).astype(np.int64)
    )


def as_dense(matrix: Any) -> Float[Tensor, "nodes features"]:
    """Features as 32-bit floats, sparse ones filled in."""
    full = matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)
    return torch.from_numpy(full.astype(np.float32, copy=False))


def as_thin(matrix: Any) -> Features:
    """Features, sparse if most of them are zero."""
    rows = scipy.sparse.csr_array(matrix, dtype=np.float32)
    thin = rows.nnz < THIN * rows.shape[0] * rows.shape[1]
    return Adjacency.from_scipy(rows) if thin else as_dense(matrix)


def bags(contents: dict[str, list[int]], *, num_nodes: int, width: int) -> Adjacency:
    """Rows of 0/1 features from lists of those that are 1; other nodes are skipped."""
    kept = {
        int(node): active for node, active in contents.items() if int(node) < num_nodes
    }
    lengths = [len(active) for active in kept.values()]
    nodes = np.repeat(np.array(list(kept), np.int64), lengths)
    active = np.concatenate([np.zeros(0, np.int64), *map(np.asarray, kept.values())])
    return Adjacency.from_edges(
        torch.from_numpy(nodes),
        torch.from_numpy(active.astype(np.int64)),
        shape=(num_nodes, width),
    )


def without_empty_columns(rows: Adjacency) -> Adjacency:
    """The same rows without the columns that have no entry."""
    used, columns = torch.unique(rows.columns, return_inverse=True)
    return Adjacency(rows.starts, columns.int(), len(used), rows.values)
