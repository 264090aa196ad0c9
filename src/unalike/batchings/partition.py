"""Partition: parts of like size with few edges between them, found once by METIS."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.cache import cache_folder
from unalike.datasets.lock import alone
from unalike.datasets.root import data_root, is_writable
from unalike.errors import UserError

_FOUND: WeakKeyDictionary[Adjacency, dict[int, Int[Tensor, " nodes"]]] = (
    WeakKeyDictionary()
)
"""What was asked before, as long as the rows live."""


def partition(adjacency: Adjacency, parts: int) -> Int[Tensor, " nodes"]:
    """The part of each node; kept on disk for the next time."""
    known = _FOUND.setdefault(adjacency, {})
    if parts not in known:
        known[parts] = torch.from_numpy(_kept(adjacency, parts)).long()
    return known[parts]


def _kept(adjacency: Adjacency, parts: int) -> np.ndarray:
    path = _folder() / f"{_fingerprint(adjacency)}-{parts}.npy"
    with alone(path):
        held = _read(path)
        if held is None or not _suits(held, adjacency.num_rows, parts):
            held = _cut(adjacency, parts)
            _write(path, held)
    return held


def _folder() -> Path:
    """The first folder of partitions that can be written."""
    roots = (data_root(), cache_folder())
    for root in roots:
        if is_writable(root / "partitions"):
            return root / "partitions"
    raise UserError(f"Neither {roots[0]} nor {roots[1]} can be written.")


def _fingerprint(adjacency: Adjacency) -> str:
    told = sha256()
    for part in (adjacency.starts, adjacency.columns):
        told.update(np.ascontiguousarray(part.cpu().numpy()).data)
    return told.hexdigest()[:32]


def _read(path: Path) -> np.ndarray | None:
    """What a file holds; nothing where it is missing or damaged."""
    try:
        with path.open("rb") as file:
            return np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None


def _suits(held: np.ndarray, nodes: int, parts: int) -> bool:
    if held.shape != (nodes,) or held.dtype != np.int32:
        return False
    return not nodes or bool(held.min() >= 0 and held.max() < parts)


def _write(path: Path, part_of_node: np.ndarray) -> None:
    """Write beside the path first, so that it never names half a file."""
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        np.save(file, part_of_node)
    Path(file.name).replace(path)


def _cut(adjacency: Adjacency, parts: int) -> np.ndarray:
    """Parts by METIS, over the edges in either direction, each of them alike."""
    try:
        from pymetis import CSRAdjacency, part_graph
    except ImportError:
        told = "Clusters need pymetis: pip install 'unalike[clusters]'."
        raise UserError(told) from None
    nodes = adjacency.num_rows
    if parts == 1 or nodes <= parts:
        return np.arange(nodes, dtype=np.int32) % parts
    starts, columns = _both_ways(adjacency)
    rows = CSRAdjacency(starts, columns)
    return np.asarray(part_graph(parts, rows, recursive=False)[1], np.int32)


def _both_ways(adjacency: Adjacency) -> Iterator[np.ndarray]:
    """The rows of the symmetric graph without its loops."""
    rows = adjacency.to_scipy().astype(bool)
    both = scipy.sparse.csr_array(rows + rows.T)
    both.setdiag(0)
    both.eliminate_zeros()
    return (part.astype(np.int64) for part in (both.indptr, both.indices))
