"""Reader: rows of a stored graph, read from its files when asked for.

What a map shows stays resident until the system needs the memory; a page that is looked
at brings its neighbours along, so that a few random batches fill memory with all of the
graph. A reader holds the starts of the rows, the labels, and the batch that was asked
for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from weakref import finalize

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from unalike.adjacency import Adjacency, Ids
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.kernels.rows import bounds_of
from unalike.store import Stored


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """The numbers of a stored array, in their file."""

    path: Path
    file: int
    """The system's number of the open file."""
    offset: int
    dtype: np.dtype

    @classmethod
    def of(cls, stored: Stored, name: str) -> ArrayFile:
        """Open one of the arrays of a stored graph."""
        size, whole = stored.array(name).nbytes, stored.about["arrays"][name]
        path = stored.folder / f"{name}.npy"
        file = os.open(path, os.O_RDONLY)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        found = cls(path, file, whole["bytes"] - size, np.dtype(whole["dtype"]))
        finalize(found, os.close, file)
        return found

    def read(
        self, first: Int[Tensor, " runs"], starts: Int[Tensor, " runs_and_one"]
    ) -> Shaped[Tensor, " numbers"]:
        """The numbers from each `first` on, run behind run, which begin at `starts`."""
        from unalike.kernels.compiled import ONE_AT_A_TIME
        from unalike.kernels.files import read_runs

        out, size = np.empty(int(starts[-1]), self.dtype), self.dtype.itemsize
        places, begins = self.offset + size * first.numpy(), size * starts.numpy()
        with ONE_AT_A_TIME:
            failed = read_runs(self.file, places, begins, out.view(np.uint8))
        if failed:
            raise UserError(
                f"{self.path} cannot be read where {failed} rows should be."
            )
        return torch.from_numpy(out)


@dataclass(frozen=True, eq=False)
class SparseFile:
    """The rows of a sparse matrix, of which only the starts are in memory."""

    starts: Int[Tensor, " rows_and_one"]
    columns: ArrayFile
    width: int
    values: ArrayFile | None

    @classmethod
    def of(cls, stored: Stored, prefix: str, width: int) -> SparseFile:
        """Open the adjacency of a stored graph, or its features by their prefix."""
        name = f"{prefix}values"
        return cls(
            stored.array(f"{prefix}starts").clone(),
            ArrayFile.of(stored, f"{prefix}columns"),
            width,
            ArrayFile.of(stored, name) if name in stored.about["arrays"] else None,
        )

    def rows(self, ids: Ids) -> Adjacency:
        """Some rows, in the order of `ids`."""
        first, starts = bounds_of(self.starts, ids)
        values = None if self.values is None else self.values.read(first, starts)
        return Adjacency(starts, self.columns.read(first, starts), self.width, values)

    def sizes(self, ids: Ids) -> Int[Tensor, " ids"]:
        """The bytes of some rows."""
        entry = self.columns.dtype.itemsize
        if self.values is not None:
            entry += self.values.dtype.itemsize
        return (self.starts[1:][ids] - self.starts[:-1][ids]) * entry


@dataclass(frozen=True, eq=False)
class DenseFile:
    """The rows of a dense matrix in their file."""

    numbers: ArrayFile
    num_rows: int
    width: int

    def rows(self, ids: Ids) -> Float[Tensor, "ids width"]:
        """Some rows, in the order of `ids`."""
        if len(ids) and not -self.num_rows <= ids.min() <= ids.max() < self.num_rows:
            raise IndexError(f"There are {self.num_rows} rows.")
        starts = torch.arange(len(ids) + 1) * self.width
        first = ids % max(self.num_rows, 1) * self.width
        return self.numbers.read(first, starts).view(len(ids), self.width)

    def sizes(self, ids: Ids) -> Int[Tensor, " ids"]:
        """The bytes of some rows."""
        size = self.width * self.numbers.dtype.itemsize
        return torch.full((len(ids),), size, dtype=torch.int64)


@dataclass(frozen=True, eq=False)
class Reader:
    """Gives the rows that `stored.graph.rows(ids)` gives, and maps nothing."""

    stored: Stored

    def rows(self, ids: Ids) -> Graph:
        """Some nodes with all their edges."""
        return Graph(
            adjacency=self._adjacency.rows(ids),
            features=self._features.rows(ids),
            labels=self._labels[ids],
            num_classes=self.stored.about["num_classes"],
            directed=self.stored.about["directed"],
            parent_ids=ids,
        )

    def pieces(self, ids: Ids, most: int) -> Iterator[Ids]:
        """The ids cut so that no piece takes more bytes, unless it is a single row."""
        sizes = self._adjacency.sizes(ids) + self._features.sizes(ids)
        ends, low = sizes.cumsum(0), 0
        while low < len(ids):
            before = ends[low] - sizes[low]
            fits = int(torch.searchsorted(ends, before + most, right=True))
            high = max(low + 1, fits)
            yield ids[low:high]
            low = high

    @cached_property
    def _adjacency(self) -> SparseFile:
        return SparseFile.of(self.stored, "", self.stored.about["num_nodes"])

    @cached_property
    def _features(self) -> SparseFile | DenseFile:
        width = self.stored.about["num_features"]
        if "features" not in self.stored.about["arrays"]:
            return SparseFile.of(self.stored, "features_", width)
        numbers = ArrayFile.of(self.stored, "features")
        return DenseFile(numbers, self.stored.about["num_nodes"], width)

    @cached_property
    def _labels(self) -> Int[Tensor, " nodes"]:
        return self.stored.array("labels").clone()
