"""Infer the types of table columns and encode them as features, one-hot for text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from pyarrow import types

from unalike.importing.tables import Batch, column_values, is_text, text_or_null

CATEGORY = "category"

_MICROSECONDS_PER_DAY = 86_400_000_000
_TIMESTAMP_TYPES = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


def parse_boolean(values: pa.Array) -> pa.Array | None:
    """Parse booleans, or the words true and false in any case, as 1 and 0."""
    if types.is_boolean(values.type):
        return values.cast(pa.float64())
    words = pc.utf8_lower(values.cast(pa.large_string()))
    known = pc.is_in(words, value_set=pa.array(["true", "false", None], words.type))
    if not pc.all(known, min_count=0).as_py():
        return None
    return pc.equal(words, "true").cast(pa.float64())


def parse_number(values: pa.Array) -> pa.Array | None:
    """Parse numbers, or text in which every value is a number."""
    return _cast(values, pa.float64())


def parse_date(values: pa.Array) -> pa.Array | None:
    """Parse dates, timestamps or ISO 8601 text as days since 1970-01-01."""
    for kind in _TIMESTAMP_TYPES:
        times = _cast(values, kind)
        if times is not None:
            microseconds = times.cast(pa.int64()).cast(pa.float64())
            return pc.divide(microseconds, float(_MICROSECONDS_PER_DAY))
    return None


PARSERS: dict[str, Callable[[pa.Array], pa.Array | None]] = {
    "boolean": parse_boolean,
    "numeric": parse_number,
    "date": parse_date,
}
"""Parser of each column type: a number per row, or None where a value does not fit."""

_TYPES_OF_ARROW: tuple[tuple[Callable[[pa.DataType], bool], tuple[str, ...]], ...] = (
    (is_text, (*PARSERS, CATEGORY)),
    (types.is_null, (*PARSERS, CATEGORY)),
    (types.is_boolean, ("boolean", CATEGORY)),
    (types.is_integer, ("numeric", CATEGORY)),
    (types.is_floating, ("numeric", CATEGORY)),
    (types.is_decimal, ("numeric", CATEGORY)),
    (types.is_date, ("date", CATEGORY)),
    (types.is_timestamp, ("date", CATEGORY)),
)


def allowed_kinds(arrow_type: pa.DataType) -> tuple[str, ...]:
    """Return the column types that an Arrow type may be read as, narrowest first."""
    return next((kinds for fits, kinds in _TYPES_OF_ARROW if fits(arrow_type)), ())


def parse_column(kind: str, values: pa.Array) -> np.ndarray | None:
    """Parse values as numbers, NaN where missing; None if one does not fit."""
    numbers = PARSERS[kind](values)
    return None if numbers is None else numbers.to_numpy(zero_copy_only=False)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return pc.cast(values, kind, safe=is_text(values.type))
    except pa.ArrowInvalid:
        return None


@dataclass(frozen=True)
class FeatureColumn:
    """A table column that becomes one feature, or one feature per category."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    optional: bool = True
    """Whether the column may be left out, unlike one that a model was trained on."""

    @property
    def width(self) -> int:
        return len(self.categories) if self.kind == CATEGORY else 1

    def to_dict(self) -> dict[str, Any]:
        """Return the column as graph.json stores it."""
        document = {"name": self.name, "kind": self.kind, "width": self.width}
        if self.kind == CATEGORY:
            document["categories"] = list(self.categories)
        return document

    def encode(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Return a feature index below `width` and a value per row; -1 means none."""
        if self.kind == CATEGORY:
            known = pa.array(self.categories, pa.large_string())
            text = text_or_null(batch.column(self.name))
            indices = pc.index_in(text, value_set=known).fill_null(-1)
            return indices.to_numpy(zero_copy_only=False), np.ones(
                len(batch), np.float32
            )
        values = parse_column(self.kind, column_values(batch, self.name))
        if values is None:
            raise batch.row_error(0, f"the feature '{self.name}' is not {self.kind}.")
        return np.zeros(len(batch), np.int32), self._finite(batch, values)

    def _finite(self, batch: Batch, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float32)
        invalid = ~np.isfinite(numbers)
        if not invalid.any():
            return numbers
        row = int(invalid.argmax())
        value = batch.column(self.name)[row].as_py()
        what = "missing" if value in (None, "") else f"{value}, not a finite number"
        hint = f"; --ignore {self.name} leaves the column out" if self.optional else ""
        raise batch.row_error(row, f"the feature '{self.name}' is {what}{hint}.")


@dataclass(frozen=True)
class FeatureEncoder:
    """Encodes rows of a table as features, column by column."""

    columns: tuple[FeatureColumn, ...]

    @classmethod
    def from_dict(cls, columns: Iterable[dict[str, Any]]) -> FeatureEncoder:
        """Build the encoder that graph.json describes under `feature_columns`."""
        return cls(
            tuple(
                FeatureColumn(
                    column["name"],
                    column["kind"],
                    tuple(column.get("categories", ())),
                    optional=False,
                )
                for column in columns
            )
        )

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    def dense(self, batch: Batch) -> np.ndarray:
        """Return the features of a batch as a dense array."""
        features = np.zeros((len(batch), self.width), np.float32)
        for rows, columns, values in self._coordinates(batch):
            features[rows, columns] = values
        return features

    def sparse(self, batch: Batch) -> scipy.sparse.csr_array:
        """Return the features of a batch as a CSR matrix without explicit zeros."""
        parts = [np.zeros((3, 0)), *map(np.stack, self._coordinates(batch))]
        rows, columns, values = np.concatenate(parts, axis=1)
        mask = values != 0
        coordinates = (rows[mask].astype(np.int64), columns[mask].astype(np.int64))
        return scipy.sparse.csr_array(
            (values[mask].astype(np.float32), coordinates),
            shape=(len(batch), self.width),
        )

    def _coordinates(
        self, batch: Batch
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield rows, feature indices and values of each column (COO)."""
        first = 0
        for column in self.columns:
            indices, values = column.encode(batch)
            (rows,) = (indices >= 0).nonzero()
            yield rows, indices[rows] + first, values[rows]
            first += column.width


@dataclass
class ColumnTypeInference:
    """Infers the type of a column from its batches, from narrow to wide types."""

    name: str
    kinds: tuple[str, ...] = (*PARSERS, CATEGORY)
    num_values: int = 0
    num_nonzero: int = 0
    categories: set[str] = field(default_factory=set)
    needs_another_pass: bool = False
    """Whether the type changed late, so that all rows must be read again."""

    def update(self, batch: Batch) -> None:
        """Rule out the types that a batch does not fit."""
        values = column_values(batch, self.name)
        allowed = allowed_kinds(values.type)
        if not allowed:
            raise batch.row_error(
                0,
                f"the column '{self.name}' is of the type {values.type}, which cannot "
                f"be a feature; --ignore {self.name} leaves it out.",
            )
        before = self.kinds[0]
        self.kinds = tuple(kind for kind in self.kinds if kind in allowed)
        while not self._accepts(values):
            self.kinds = self.kinds[1:]
        self.needs_another_pass |= self.kinds[0] != before and self.num_values > 0
        self.num_values += len(values) - values.null_count

    def finish_pass(self) -> bool:
        """Return whether the type is final; if not, reset for another pass."""
        if not self.needs_another_pass:
            return True
        self.needs_another_pass = False
        self.num_values = self.num_nonzero = 0
        self.categories = set()
        return False

    def feature_column(self) -> FeatureColumn:
        """Return the column to encode; one without any value has width 0."""
        if self.num_values and self.kinds[0] != CATEGORY:
            return FeatureColumn(self.name, self.kinds[0])
        return FeatureColumn(self.name, CATEGORY, tuple(sorted(self.categories)))

    def _accepts(self, values: pa.Array) -> bool:
        if self.kinds[0] == CATEGORY:
            text = values.cast(pa.large_string())
            self.categories.update(pc.unique(text.drop_null()).to_pylist())
            self.num_nonzero += len(text) - text.null_count
            return True
        numbers = parse_column(self.kinds[0], values)
        if numbers is not None:
            self.num_nonzero += int(np.count_nonzero(numbers))
        return numbers is not None
