"""Convert edge tables to a CSR adjacency on disk in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, no_type_check

import numpy as np

from unalike.data.csr import balanced_row_blocks, row_blocks
from unalike.data.numba_utils import njit, sort_range
from unalike.data.store import GraphWriter
from unalike.errors import UserError
from unalike.importing.ids import IdIndex, grow
from unalike.importing.options import ImportOptions
from unalike.importing.readers import total_megabytes
from unalike.importing.tables import (
    Batch,
    EdgeColumns,
    Table,
    check_header,
    edge_columns,
    read_ahead,
    read_ids,
    read_weights,
)
from unalike.parallel import even_slices, parallel_map, prefetch
from unalike.progress import Progress

SOURCE_AND_TARGET = ("source", "target")
READ_PAIRS = 1 << 22
"""Pairs that are read back per chunk."""

MAX_DROPPED = 0.9
"""Fraction of dropped edges from which an import fails."""

MAX_BLOCK_NNZ = 1 << 30
"""Column indices in memory per block; the spill file is read once for each block."""

NUMPY_SORT_LENGTH = 64
"""Rows from this length on are sorted by numpy, which is faster but slower to call."""


@dataclass
class EdgeSpill:
    """Spill file of (source, target) node indices, with the row counts of its CSR.

    With weights, each record has a third number: the bits of a 32-bit float.
    """

    path: Path
    undirected: bool
    """Whether an edge is stored in the rows of both its endpoints."""
    weighted: bool = False
    row_nnz: np.ndarray = field(default_factory=lambda: np.zeros(1 << 10, np.int64))
    """Stored elements in the row of each node, duplicates included."""
    has_edge: np.ndarray = field(default_factory=lambda: np.zeros(1 << 10, np.uint8))
    """Whether the node is an endpoint of any edge."""
    num_pairs: int = 0
    num_dropped: int = 0
    rows: list[int] = field(default_factory=list)
    """Rows read from each table."""

    def count(self, pairs: np.ndarray, num_nodes: int) -> None:
        """Add pairs that were written to the row counts."""
        self.row_nnz = grow(self.row_nnz, num_nodes)
        self.has_edge = grow(self.has_edge, num_nodes)
        count_row_nnz(pairs, self.undirected, self.row_nnz, self.has_edge)
        self.num_pairs += len(pairs)

    def chunks(self) -> Iterator[np.ndarray]:
        """Read the pairs back, in writable chunks."""
        with self.path.open("rb") as file:
            width = 3 if self.weighted else 2
            while len(flat := np.fromfile(file, np.int32, width * READ_PAIRS)):
                yield flat.reshape(-1, width)


def check_dropped(num_dropped: int, num_edges: int, columns: EdgeColumns) -> None:
    """Raise if so many edges have unknown ends that the columns must be wrong."""
    if num_dropped > MAX_DROPPED * num_edges:
        raise UserError(
            f"{num_dropped:,} of {num_edges:,} edges have an end that is not in the "
            f"node table, by the columns '{columns.source}' and '{columns.target}'; "
            "--source and --target name others, --id the column of node ids."
        )


def read_edges(
    tables: Sequence[Table],
    options: ImportOptions,
    index: IdIndex,
    spill: EdgeSpill,
    progress: Progress,
    *,
    only_known_ids: bool,
) -> list[str]:
    """Write the node indices of all edges to the spill file; returns notes to print."""
    progress.stage("Reading edges", total_megabytes(tables), "MB")
    known, notes = index if only_known_ids else None, list[str]()
    with spill.path.open("wb") as file:
        for table in tables:
            columns = edge_columns(
                table, options.source, options.target, known, weight=options.weight
            )
            notes += columns.notes(table)
            before = spill.num_pairs + spill.num_dropped
            for batch in read_ahead(table, list(dict.fromkeys(columns.used))):
                pairs = _pairs(batch, columns, index, add=not only_known_ids)
                if only_known_ids:
                    pairs = _known_pairs(pairs, batch, columns, index, options)
                file.write(pairs.data)
                spill.count(pairs, len(index))
                spill.num_dropped += len(batch) - len(pairs)
                note = f"{spill.num_pairs:,} edges"
                progress.advance(batch.bytes_read / 1e6, note)
            check_header(table, columns.names, index)
            spill.rows.append(spill.num_pairs + spill.num_dropped - before)
    if not any(spill.rows):
        raise UserError(f"{tables[0].path} has no rows.")
    check_dropped(spill.num_dropped, sum(spill.rows), columns)
    return notes


def _pairs(
    batch: Batch, columns: EdgeColumns, index: IdIndex, *, add: bool
) -> np.ndarray:
    pairs = np.empty((len(batch), len(columns.used)), np.int32)
    for side, column in enumerate(columns.names):
        ids = read_ids(batch, column, SOURCE_AND_TARGET[side])
        pairs[:, side] = index.add(ids) if add else index.find(ids)
    if columns.weight is not None:
        pairs[:, 2] = read_weights(batch, columns.weight).view(np.int32)
    return pairs


def _known_pairs(
    pairs: np.ndarray,
    batch: Batch,
    columns: EdgeColumns,
    index: IdIndex,
    options: ImportOptions,
) -> np.ndarray:
    """The pairs without unknown ids, which are dropped or refused."""
    unknown = pairs[:, :2].min(1) < 0

    def problem(row: int) -> str:
        side = int(pairs[row, 0] >= 0)
        column = columns.names[side]
        value = batch.column(column)[row].as_py()
        hint = _float_hint(value, index) or "; --unknown drop leaves such edges out"
        end = f"{SOURCE_AND_TARGET[side]} '{value}' (column '{column}')"
        return f"the {end} is not in the node table{hint}."

    if options.unknown == "refuse":
        batch.refuse(unknown, problem)
    return pairs[~unknown] if unknown.any() else pairs


def _float_hint(value: object, index: IdIndex) -> str:
    """What to say of an id such as 7.0 where the node table has 7, or the reverse."""
    text = str(value)
    other = text.removesuffix(".0") if text.endswith(".0") else f"{text}.0"
    if other not in index:
        return ""
    return f", which has '{other}': store ids as integers, not as floats"


def build_csr(
    spill: EdgeSpill, new_index: np.ndarray, writer: GraphWriter, progress: Progress
) -> tuple[int, int]:
    """Write the CSR arrays of a spill file; returns stored elements and self-loops.

    Node i becomes row new_index[i]. Rows are sorted and duplicate edges merged, one
    block of rows after the other.
    """
    num_nodes = len(new_index)
    indptr = np.zeros(num_nodes + 1, np.int64)
    indptr[1 + new_index] = spill.row_nnz[:num_nodes]
    np.cumsum(indptr, out=indptr)
    degrees = np.zeros(num_nodes, np.int64)
    blocks = list(row_blocks(indptr, MAX_BLOCK_NNZ))
    progress.stage("Building CSR rows", spill.num_pairs * len(blocks), "edges")
    num_loops = 0
    with (
        writer.append_array("columns", np.int32) as append,
        value_appender(writer, "values", weighted=spill.weighted) as append_values,
    ):
        for block in blocks:
            arrays = _scatter_block(spill, new_index, indptr, block, progress)
            for rows, values, loops in _sort_block(*arrays, indptr, block, degrees):
                if not np.isfinite(values).all():
                    raise UserError(
                        "The weights of a repeated edge add up to more than the "
                        "largest 32-bit float; scale them down."
                    )
                append(rows)
                append_values(values)
                num_loops += loops
    np.cumsum(degrees, out=indptr[1:])
    writer.add("starts", indptr)
    return int(indptr[-1]), num_loops


def _scatter_block(
    spill: EdgeSpill,
    new_index: np.ndarray,
    indptr: np.ndarray,
    block: tuple[int, int],
    progress: Progress,
) -> tuple[np.ndarray, np.ndarray]:
    """Return column indices and weights of a block, in the order of the spill file."""
    low, high = block
    indices = np.empty(indptr[high] - indptr[low], np.int32)
    values = np.empty(len(indices) if spill.weighted else 0, np.float32)
    cursor = indptr[low:high] - indptr[low]
    ranges = balanced_row_blocks(indptr, block)
    for pairs in prefetch(spill.chunks()):
        parallel_map(partial(relabel, pairs, new_index), even_slices(len(pairs)))
        edges = (pairs, pairs[:, 2:].view(np.float32), spill.undirected)
        scatter = partial(scatter_pairs, *edges, low, cursor, indices, values)
        parallel_map(scatter, ranges)
        progress.advance(len(pairs))
    return indices, values


def _sort_block(
    indices: np.ndarray,
    values: np.ndarray,
    indptr: np.ndarray,
    block: tuple[int, int],
    degrees: np.ndarray,
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Sort and deduplicate rows; returns indices, weights and loops of each part."""
    base = indptr[block[0]]

    def sort(rows: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, int]:
        first, end = rows
        part = slice(indptr[first] - base, indptr[end] - base)
        columns, weights = indices[part], values[part]
        offsets = indptr[first : end + 1] - indptr[first]
        for row in (np.diff(offsets) >= NUMPY_SORT_LENGTH).nonzero()[0].tolist():
            _sort_row(columns, weights, slice(offsets[row], offsets[row + 1]))
        nnz, loops = sort_and_deduplicate(
            columns, weights, offsets, first, degrees[first:end]
        )
        return columns[:nnz], weights[:nnz], loops

    return parallel_map(sort, balanced_row_blocks(indptr, block))


def _sort_row(columns: np.ndarray, weights: np.ndarray, row: slice) -> None:
    if not len(weights):
        columns[row].sort()
        return
    order = columns[row].argsort(kind="stable")
    columns[row], weights[row] = columns[row][order], weights[row][order]


def value_appender(
    writer: GraphWriter, name: str, *, weighted: bool
) -> AbstractContextManager[Callable[[Any], None]]:
    """Append to an array of numbers, or to nothing where all of them would be 1."""
    if weighted:
        return writer.append_array(name, np.float32)
    return nullcontext(lambda values: None)


@njit()
@no_type_check
def count_row_nnz(pairs, undirected, row_nnz, has_edge):
    """Count the stored elements of each row; a self-loop is one element."""
    for i in range(len(pairs)):
        source, target = pairs[i, 0], pairs[i, 1]
        row_nnz[source] += 1
        if undirected and source != target:
            row_nnz[target] += 1
        has_edge[source] = 1
        has_edge[target] = 1


@njit()
@no_type_check
def relabel(pairs, new_index, part):
    """Replace every node index of a slice of pairs by its new index."""
    for i in range(part.start, part.stop):
        pairs[i, 0] = new_index[pairs[i, 0]]
        pairs[i, 1] = new_index[pairs[i, 1]]


@njit()
@no_type_check
def scatter_pairs(pairs, weights, undirected, base, cursor, indices, values, rows):
    """Write column indices and weights, if any, of rows from rows[0] to rows[1]."""
    low, high = rows
    for i in range(len(pairs)):
        for side in range(1 + undirected):
            row, other = pairs[i, side], pairs[i, 1 - side]
            if low <= row < high and not (side and row == other):
                indices[cursor[row - base]] = other
                if len(values):
                    values[cursor[row - base]] = weights[i, 0]
                cursor[row - base] += 1


@njit()
@no_type_check
def sort_and_deduplicate(indices, values, indptr, first, degrees):
    """Sort each row and add up duplicates in place; returns nnz and self-loops."""
    nnz, loops = 0, 0
    for i in range(len(degrees)):
        begin = nnz
        row = indices[indptr[i] : indptr[i + 1]]
        weights = values[indptr[i] : indptr[i + 1]]
        if len(row) < NUMPY_SORT_LENGTH:
            sort_range(row, weights, np.int64(0), len(row))
        for j in range(len(row)):
            if j == 0 or row[j] != row[j - 1]:
                loops += row[j] == first + i
                indices[nnz] = row[j]
                if len(values):
                    values[nnz] = weights[j]
                nnz += 1
            elif len(values):
                values[nnz - 1] += weights[j]
        degrees[i] = nnz - begin
    return nnz, loops
