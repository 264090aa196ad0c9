"""NewEdges: files of edges between new nodes and known ones, as rows on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import torch

from unalike.adjacency import Adjacency
from unalike.draft import Draft
from unalike.errors import UserError
from unalike.importing.batch import Batch, Header, Table
from unalike.importing.columns import check_header, edge_ends
from unalike.importing.edges import ENDS, Spill
from unalike.importing.ids import IdIndex
from unalike.importing.placing import place_rows
from unalike.importing.tables import megabytes
from unalike.importing.threads import ahead
from unalike.importing.values import read_ids
from unalike.progress import Progress

OUT, INTO = "out", "into"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of the tables are meant; guessed by their names if not told."""

    source: str | None = None
    """Column of the edges' sources."""
    target: str | None = None
    """Column of the edges' targets."""
    id: str | None = None
    """Column of the new nodes' ids."""
    header: Header = "guess"
    """Does the first line of a text file name its columns? Numbers alone do not."""


@dataclass(frozen=True, eq=False)
class RowFiles:
    """Sparse rows in files, of which some are wanted at a time."""

    starts: np.ndarray
    columns: np.ndarray
    width: int

    def rows(self, first: int, last: int) -> Adjacency:
        starts = self.starts[first : last + 1]
        columns = np.array(self.columns[starts[0] : starts[-1]])
        begins = torch.from_numpy(starts - starts[0])
        return Adjacency(begins, torch.from_numpy(columns), self.width)


@dataclass
class NewEdges:
    """Reads edges, numbers their ends, and keeps those from new to known nodes.

    Codes below `num_known` are known nodes, those from there on are new ones.
    """

    index: IdIndex
    num_known: int
    closed: bool
    """Has a table named all new nodes?"""
    folder: Path
    directed: bool
    num_edges: int = 0
    num_joined: int = 0
    """Edges between a new node and a known one."""
    num_unknown: int = 0
    """Neighbours of new nodes that are not known: strangers, and new nodes too."""
    num_aside: int = 0
    """Edges that touch no new node."""
    spills: dict[str, Spill] = field(init=False)

    def __post_init__(self) -> None:
        names = (OUT, INTO) if self.directed else (OUT,)
        self.spills = {
            name: Spill(self.folder / f"{name}.pairs", mirrored=False) for name in names
        }
        for spill in self.spills.values():
            spill.path.touch()

    def read(
        self, tables: Sequence[Table], ends: tuple[str | None, ...], progress: Progress
    ) -> None:
        """Read all tables; pairs go to files, counts are kept here."""
        progress.stage("Reading edges", megabytes(tables), "MB")
        with ExitStack() as open_files:
            files = {
                name: open_files.enter_context(spill.path.open("wb"))
                for name, spill in self.spills.items()
            }
            for table in tables:
                columns = edge_ends(table, *ends)
                for batch in ahead(table.batches(list(dict.fromkeys(columns)))):
                    self._take(batch, columns, files)
                    note = f"{self.num_joined:,} edges"
                    progress.advance(batch.read / 1e6, note)
                check_header(table, columns, self.index)
        if tables and not self.num_edges:
            raise UserError(f"{tables[0].path} has no rows.")

    def rows(self, progress: Progress) -> tuple[RowFiles, RowFiles]:
        """The rows of the new nodes by what they point at, and what points at them."""
        out, *into = [self._placed(name, progress) for name in self.spills]
        return out, into[0] if into else out

    def _take(
        self, batch: Batch, columns: tuple[str, str], files: Mapping[str, IO[bytes]]
    ) -> None:
        codes = self._codes(
            [
                read_ids(batch, name, what)
                for name, what in zip(columns, ENDS, strict=True)
            ]
        )
        new = codes >= self.num_known
        known = (codes >= 0) & ~new
        for name, here, there in ((OUT, 0, 1), (INTO, 1, 0)):
            kept = name if name in self.spills else OUT
            pairs = codes[new[:, here] & known[:, there]][:, [here, there]]
            files[kept].write(np.ascontiguousarray(pairs).data)
            self.spills[kept].count(pairs, len(self.index))
            self.num_joined += len(pairs)
            self.num_unknown += int((new[:, here] & ~known[:, there]).sum())
        self.num_aside += int((~new.any(1)).sum())
        self.num_edges += len(batch)

    def _codes(self, ends: list[pa.Array]) -> np.ndarray:
        """The codes of both ends; where no table names the new nodes, edges do.

        A new node is a source that is not known, or a target that a known one has.
        """
        codes = np.stack([self.index.find(end) for end in ends], 1)
        if self.closed:
            return codes
        met = (codes[:, 0] >= 0) & (codes[:, 0] < self.num_known)
        fresh = (codes[:, 0] < 0, met & (codes[:, 1] < 0))
        for end, wanted in zip(ends, fresh, strict=True):
            self.index.add(end.filter(pa.array(wanted)))
        return np.stack([self.index.find(end) for end in ends], 1)

    def _placed(self, name: str, progress: Progress) -> RowFiles:
        size, spill = len(self.index), self.spills[name]
        spill.count(np.zeros((0, 2), np.int32), size)
        folder = self.folder / name
        folder.mkdir()
        rank = np.arange(size, dtype=np.int32)
        place_rows(spill, rank, Draft(folder, folder), progress)
        spill.path.unlink()
        starts = np.load(folder / "starts.npy")[self.num_known :]
        empty = starts[-1] == starts[0]
        columns = np.load(folder / "columns.npy", mmap_mode=None if empty else "r")
        return RowFiles(starts, columns, self.num_known)
