"""Edges: tables are read once, the ends numbered, the pairs spilled to disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unalike.errors import UserError
from unalike.importing.batch import Batch, Table
from unalike.importing.columns import check_header, edge_ends
from unalike.importing.ids import IdIndex
from unalike.importing.keys import grown
from unalike.importing.options import ImportOptions
from unalike.importing.tables import megabytes
from unalike.importing.threads import ahead
from unalike.importing.values import read_ids
from unalike.kernels.compiled import compiled
from unalike.progress import Progress

ENDS = ("source", "target")
CHUNK = 1 << 22
"""Pairs that are read back at once."""


@dataclass
class Spill:
    """Pairs of codes on disk, with what was counted while they were written."""

    path: Path
    mirrored: bool
    """Is every edge an entry of both its ends?"""
    entries: np.ndarray = field(default_factory=lambda: np.zeros(1 << 10, np.int64))
    """Entries in the row of each code, repeats included."""
    met: np.ndarray = field(default_factory=lambda: np.zeros(1 << 10, np.uint8))
    """Is the code an end of any edge?"""
    num_pairs: int = 0
    num_dropped: int = 0
    rows: list[int] = field(default_factory=list)
    """Rows of each table."""

    def count(self, pairs: np.ndarray, num_codes: int) -> None:
        """Take note of pairs that were written."""
        self.entries = grown(self.entries, num_codes)
        self.met = grown(self.met, num_codes)
        count_entries(pairs, self.mirrored, self.entries, self.met)
        self.num_pairs += len(pairs)

    def chunks(self) -> Iterator[np.ndarray]:
        """The pairs again, in writable pieces."""
        with self.path.open("rb") as file:
            while len(flat := np.fromfile(file, np.int32, 2 * CHUNK)):
                yield flat.reshape(-1, 2)


@dataclass(frozen=True)
class EdgeReader:
    """How edges are read: by which options, and whether all nodes are known."""

    options: ImportOptions
    closed: bool

    def spill(
        self, tables: Sequence[Table], index: IdIndex, spill: Spill, progress: Progress
    ) -> None:
        """Read all tables, number their ids and write the pairs."""
        progress.stage("Reading edges", megabytes(tables), "MB")
        with spill.path.open("wb") as file:
            for table in tables:
                columns = edge_ends(table, self.options.source, self.options.target)
                before = spill.num_pairs + spill.num_dropped
                for batch in ahead(table.batches(list(dict.fromkeys(columns)))):
                    pairs = self._pairs(batch, columns, index)
                    file.write(pairs.data)
                    spill.count(pairs, len(index))
                    spill.num_dropped += len(batch) - len(pairs)
                    note = f"{spill.num_pairs:,} edges"
                    progress.advance(batch.read / 1e6, note)
                check_header(table, columns, index)
                spill.rows.append(spill.num_pairs + spill.num_dropped - before)
        if not any(spill.rows):
            raise UserError(f"{tables[0].path} has no rows.")

    def _pairs(
        self, batch: Batch, columns: tuple[str, str], index: IdIndex
    ) -> np.ndarray:
        pairs = np.empty((len(batch), 2), np.int32)
        for end, column in enumerate(columns):
            ids = read_ids(batch, column, ENDS[end])
            pairs[:, end] = index.find(ids) if self.closed else index.add(ids)
        if not self.closed:
            return pairs
        unknown = (pairs < 0).any(1)
        if not unknown.any():
            return pairs
        if self.options.unknown == "drop":
            return pairs[~unknown]
        row = int(unknown.argmax())
        end = int(pairs[row, 0] >= 0)
        raise _unknown(batch, row, columns[end], ENDS[end])


def _unknown(batch: Batch, row: int, column: str, what: str) -> UserError:
    told = batch.column(column)[row].as_py()
    return batch.wrong(
        row,
        f"the {what} '{told}' is not in the node table; "
        "--unknown drop leaves such edges out.",
    )


@compiled()
def count_entries(
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
