"""Edge tables to sorted CSR on disk: spill pairs, scatter, sort, deduplicate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from unalike.data.csr import bounded_blocks, even_blocks
from unalike.data.numba_utils import njit, sort_range
from unalike.data.store import GraphWriter
from unalike.errors import UserError
from unalike.importing.ids import IdIndex, grow
from unalike.importing.options import ImportOptions
from unalike.importing.readers import total_megabytes
from unalike.importing.tables import Batch, Table, check_header, edge_columns, read_ids
from unalike.parallel import even_slices, parallel_map, prefetch
from unalike.progress import Progress

# Edges: tables are read once, the ends numbered, the pairs spilled to disk.


SOURCE_AND_TARGET = ("source", "target")
READ_PAIRS = 1 << 22
"""Pairs that are read back at once."""


@dataclass
class EdgeSpill:
    """Pairs of codes on disk, with what was counted while they were written."""

    path: Path
    undirected: bool
    """Is every edge an entry of both its ends?"""
    row_nnz: np.ndarray = field(default_factory=lambda: np.zeros(1 << 10, np.int64))
    """Entries in the row of each code, repeats included."""
    has_edge: np.ndarray = field(default_factory=lambda: np.zeros(1 << 10, np.uint8))
    """Is the code an end of any edge?"""
    num_pairs: int = 0
    num_dropped: int = 0
    rows: list[int] = field(default_factory=list)
    """Rows of each table."""

    def count(self, pairs: np.ndarray, num_codes: int) -> None:
        """Take note of pairs that were written."""
        self.row_nnz = grow(self.row_nnz, num_codes)
        self.has_edge = grow(self.has_edge, num_codes)
        count_row_nnz(pairs, self.undirected, self.row_nnz, self.has_edge)
        self.num_pairs += len(pairs)

    def chunks(self) -> Iterator[np.ndarray]:
        """The pairs again, in writable pieces."""
        with self.path.open("rb") as file:
            while len(flat := np.fromfile(file, np.int32, 2 * READ_PAIRS)):
                yield flat.reshape(-1, 2)


@dataclass(frozen=True)
class EdgeReader:
    """How edges are read: by which options, and whether all nodes are known."""

    options: ImportOptions
    only_known_ids: bool

    def read_into(
        self,
        tables: Sequence[Table],
        index: IdIndex,
        spill: EdgeSpill,
        progress: Progress,
    ) -> None:
        """Read all tables, number their ids and write the pairs."""
        progress.stage("Reading edges", total_megabytes(tables), "MB")
        with spill.path.open("wb") as file:
            for table in tables:
                columns = edge_columns(table, self.options.source, self.options.target)
                before = spill.num_pairs + spill.num_dropped
                for batch in prefetch(table.batches(list(dict.fromkeys(columns)))):
                    pairs = self._pairs(batch, columns, index)
                    file.write(pairs.data)
                    spill.count(pairs, len(index))
                    spill.num_dropped += len(batch) - len(pairs)
                    note = f"{spill.num_pairs:,} edges"
                    progress.advance(batch.bytes_read / 1e6, note)
                check_header(table, columns, index)
                spill.rows.append(spill.num_pairs + spill.num_dropped - before)
        if not any(spill.rows):
            raise UserError(f"{tables[0].path} has no rows.")

    def _pairs(
        self, batch: Batch, columns: tuple[str, str], index: IdIndex
    ) -> np.ndarray:
        pairs = np.empty((len(batch), 2), np.int32)
        for end, column in enumerate(columns):
            ids = read_ids(batch, column, SOURCE_AND_TARGET[end])
            pairs[:, end] = index.find(ids) if self.only_known_ids else index.add(ids)
        if not self.only_known_ids:
            return pairs
        unknown = (pairs < 0).any(1)
        if not unknown.any():
            return pairs
        if self.options.unknown == "drop":
            return pairs[~unknown]
        row = int(unknown.argmax())
        end = int(pairs[row, 0] >= 0)
        raise _unknown(batch, row, columns[end], SOURCE_AND_TARGET[end])


def _unknown(batch: Batch, row: int, column: str, what: str) -> UserError:
    told = batch.column(column)[row].as_py()
    return batch.row_error(
        row,
        f"the {what} '{told}' is not in the node table; "
        "--unknown drop leaves such edges out.",
    )


@njit()
def count_row_nnz(
    pairs: np.ndarray, mirrored: bool, entries: np.ndarray, met: np.ndarray
) -> None:
    """Count the entries that pairs make in each row; a loop makes one."""
    for i in range(len(pairs)):
        source, target = pairs[i, 0], pairs[i, 1]
        entries[source] += 1
        if mirrored and source != target:
            entries[target] += 1
        met[source] = 1
        met[target] = 1


# Placing: spilled pairs become sorted rows without repeats, block by block.


MAX_BLOCK_NNZ = 1 << 30
"""Entries that are held in memory at once; the spill is read once for each block."""

NUMPY_SORT_LENGTH = 64
"""Rows from this length on are sorted by numpy, which is faster but slower to call."""


@dataclass(frozen=True)
class CsrCounts:
    """What became of the edges."""

    num_entries: int
    num_loops: int


def build_csr(
    spill: EdgeSpill, rank: np.ndarray, draft: GraphWriter, progress: Progress
) -> CsrCounts:
    """Write `starts` and `columns`; node c of the spill becomes row rank[c]."""
    num_nodes = len(rank)
    starts = np.zeros(num_nodes + 1, np.int64)
    starts[1 + rank] = spill.row_nnz[:num_nodes]
    np.cumsum(starts, out=starts)
    degrees = np.zeros(num_nodes, np.int64)
    blocks = list(bounded_blocks(starts, MAX_BLOCK_NNZ))
    progress.stage("Placing edges", spill.num_pairs * len(blocks), "edges")
    num_loops = 0
    with draft.append_array("columns", np.int32) as append:
        for low, high in blocks:
            entries = _scatter_block(spill, rank, starts, (low, high), progress)
            for piece, loops in _sorted_rows(entries, starts, (low, high), degrees):
                append(piece)
                num_loops += loops
    np.cumsum(degrees, out=starts[1:])
    draft.add("starts", starts)
    return CsrCounts(int(starts[-1]), num_loops)


def _scatter_block(
    spill: EdgeSpill,
    rank: np.ndarray,
    starts: np.ndarray,
    block: tuple[int, int],
    progress: Progress,
) -> np.ndarray:
    """The entries of a block of rows, in the order of the spill."""
    low, high = block
    entries = np.empty(starts[high] - starts[low], np.int32)
    cursor = starts[low:high] - starts[low]
    parts = even_blocks(starts, block)
    for pairs in prefetch(spill.chunks()):
        parallel_map(partial(_renumber, pairs, rank), even_slices(len(pairs)))
        where = (spill.undirected, low, cursor, entries)
        parallel_map(partial(scatter_pairs, pairs, *where), parts)
        progress.advance(len(pairs))
    return entries


def _renumber(pairs: np.ndarray, rank: np.ndarray, part: slice) -> None:
    relabel(pairs[part], rank)


def _sorted_rows(
    entries: np.ndarray, starts: np.ndarray, block: tuple[int, int], degrees: np.ndarray
) -> list[tuple[np.ndarray, int]]:
    """The entries of each share of a block, sorted and merged, and its loops."""
    base = starts[block[0]]

    def order(part: tuple[int, int]) -> tuple[np.ndarray, int]:
        first, end = part
        own = entries[starts[first] - base : starts[end] - base]
        ends = starts[first : end + 1] - starts[first]
        for row in (np.diff(ends) >= NUMPY_SORT_LENGTH).nonzero()[0].tolist():
            own[ends[row] : ends[row + 1]].sort()
        length, loops = sort_and_deduplicate(own, ends, first, degrees[first:end])
        return own[:length], loops

    return parallel_map(order, even_blocks(starts, block))


@njit()
def relabel(pairs: np.ndarray, rank: np.ndarray) -> None:
    """Replace every code by its rank."""
    for i in range(len(pairs)):
        pairs[i, 0] = rank[pairs[i, 0]]
        pairs[i, 1] = rank[pairs[i, 1]]


@njit()
def scatter_pairs(
    pairs: np.ndarray,
    mirrored: bool,
    base: int,
    cursor: np.ndarray,
    entries: np.ndarray,
    part: tuple[int, int],
) -> None:
    """Put the ends of edges into the rows from part[0] to part[1]."""
    low, high = part
    for i in range(len(pairs)):
        source, target = pairs[i, 0], pairs[i, 1]
        if low <= source < high:
            entries[cursor[source - base]] = target
            cursor[source - base] += 1
        if mirrored and source != target and low <= target < high:
            entries[cursor[target - base]] = source
            cursor[target - base] += 1


@njit()
def sort_and_deduplicate(
    entries: np.ndarray, starts: np.ndarray, first: int, degrees: np.ndarray
) -> tuple[int, int]:
    """Sort each row, drop its repeats and close the gaps; counts loops on the way."""
    length, loops = 0, 0
    for row in range(len(degrees)):
        begin = length
        own = entries[starts[row] : starts[row + 1]]
        if len(own) < NUMPY_SORT_LENGTH:
            sort_range(own, own[:0], np.int64(0), len(own))
        for i in range(len(own)):
            if i == 0 or own[i] != own[i - 1]:
                loops += own[i] == first + row
                entries[length] = own[i]
                length += 1
        degrees[row] = length - begin
    return length, loops
