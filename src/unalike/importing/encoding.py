"""Encoder: how rows of a table become features, now and for later nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from unalike.importing.batch import Batch
from unalike.importing.kinds import CATEGORY, numbers
from unalike.importing.values import read_text, read_values


@dataclass(frozen=True)
class FeatureColumn:
    """A column of the table: one number wide, or one for each category."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    optional: bool = True
    """May the column be left out? Not once a model was trained on it."""

    @property
    def width(self) -> int:
        return len(self.categories) if self.kind == CATEGORY else 1

    def about(self) -> dict[str, Any]:
        """The column as graph.json tells it."""
        told = {"name": self.name, "kind": self.kind, "width": self.width}
        if self.kind == CATEGORY:
            told["categories"] = list(self.categories)
        return told

    def entries(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """A column below `width` and a value for each row; -1 means none."""
        if self.kind == CATEGORY:
            known = pa.array(self.categories, pa.large_string())
            found = pc.index_in(read_text(batch.column(self.name)), value_set=known)
            places = found.fill_null(-1).to_numpy(zero_copy_only=False)
            return places, np.ones(len(batch), np.float32)
        values = numbers(self.kind, read_values(batch, self.name))
        if values is None:
            raise batch.wrong(0, f"the feature '{self.name}' is not {self.kind}.")
        return np.zeros(len(batch), np.int32), self._finite(batch, values)

    def _finite(self, batch: Batch, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            small = values.astype(np.float32)
        broken = ~np.isfinite(small)
        if not broken.any():
            return small
        row = int(broken.argmax())
        told = batch.column(self.name)[row].as_py()
        what = "missing" if told in (None, "") else f"{told}, not a finite number"
        hint = f"; --ignore {self.name} leaves the column out" if self.optional else ""
        raise batch.wrong(row, f"the feature '{self.name}' is {what}{hint}.")


@dataclass(frozen=True)
class Encoder:
    """The columns that make the features, from left to right."""

    columns: tuple[FeatureColumn, ...]

    @classmethod
    def from_about(cls, told: Iterable[dict[str, Any]]) -> Encoder:
        """The encoder that a graph.json describes under `feature_columns`."""
        return cls(
            tuple(
                FeatureColumn(
                    column["name"],
                    column["kind"],
                    tuple(column.get("categories", ())),
                    optional=False,
                )
                for column in told
            )
        )

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    def dense(self, batch: Batch) -> np.ndarray:
        """The features of a batch as a full array."""
        features = np.zeros((len(batch), self.width), np.float32)
        for rows, places, values in self._entries(batch):
            features[rows, places] = values
        return features

    def sparse(self, batch: Batch) -> scipy.sparse.csr_array:
        """The features of a batch, zeros left out."""
        parts = [np.zeros((3, 0)), *map(np.stack, self._entries(batch))]
        rows, places, values = np.concatenate(parts, axis=1)
        kept = values != 0
        ends = (rows[kept].astype(np.int64), places[kept].astype(np.int64))
        return scipy.sparse.csr_array(
            (values[kept].astype(np.float32), ends), shape=(len(batch), self.width)
        )

    def _entries(
        self, batch: Batch
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        first = 0
        for column in self.columns:
            places, values = column.entries(batch)
            (rows,) = (places >= 0).nonzero()
            yield rows, places[rows] + first, values[rows]
            first += column.width
