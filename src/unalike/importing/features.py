"""Column type inference, one-hot encoding, `FeatureEncoder`."""

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

# Kinds: the ways a column of a table can be read as features.


CATEGORY = "category"

_DAY = 86_400_000_000
_MOMENTS = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


def as_boolean(values: pa.Array) -> pa.Array | None:
    """True and false, or these words in any case."""
    if types.is_boolean(values.type):
        return values.cast(pa.float64())
    words = pc.utf8_lower(values.cast(pa.large_string()))
    known = pc.is_in(words, value_set=pa.array(["true", "false", None], words.type))
    if not pc.all(known, min_count=0).as_py():
        return None
    return pc.equal(words, "true").cast(pa.float64())


def parse_number(values: pa.Array) -> pa.Array | None:
    """Numbers, or texts that all spell one."""
    return _cast(values, pa.float64())


def as_date(values: pa.Array) -> pa.Array | None:
    """Dates and moments as days since the start of 1970; as text in ISO 8601."""
    for moment in _MOMENTS:
        found = _cast(values, moment)
        if found is not None:
            return pc.divide(found.cast(pa.int64()).cast(pa.float64()), float(_DAY))
    return None


PARSERS: dict[str, Callable[[pa.Array], pa.Array | None]] = {
    "boolean": as_boolean,
    "numeric": parse_number,
    "date": as_date,
}
"""How each kind becomes one number for each row; None where the values do not fit."""

_POSSIBLE: tuple[tuple[Callable[[pa.DataType], bool], tuple[str, ...]], ...] = (
    (is_text, (*PARSERS, CATEGORY)),
    (types.is_null, (*PARSERS, CATEGORY)),
    (types.is_boolean, ("boolean", CATEGORY)),
    (types.is_integer, ("numeric", CATEGORY)),
    (types.is_floating, ("numeric", CATEGORY)),
    (types.is_decimal, ("numeric", CATEGORY)),
    (types.is_date, ("date", CATEGORY)),
    (types.is_timestamp, ("date", CATEGORY)),
)


def allowed_kinds(kind: pa.DataType) -> tuple[str, ...]:
    """The kinds a type of column may be read as, the narrowest first."""
    return next((kinds for fits, kinds in _POSSIBLE if fits(kind)), ())


def parse_column(kind: str, values: pa.Array) -> np.ndarray | None:
    """One number for each value, NaN where it is missing; None if they do not fit."""
    read = PARSERS[kind](values)
    return None if read is None else read.to_numpy(zero_copy_only=False)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return pc.cast(values, kind, safe=is_text(values.type))
    except pa.ArrowInvalid:
        return None


# Encoder: how rows of a table become features, now and for later nodes.


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

    def to_dict(self) -> dict[str, Any]:
        """The column as graph.json tells it."""
        told = {"name": self.name, "kind": self.kind, "width": self.width}
        if self.kind == CATEGORY:
            told["categories"] = list(self.categories)
        return told

    def encode(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """A column below `width` and a value for each row; -1 means none."""
        if self.kind == CATEGORY:
            known = pa.array(self.categories, pa.large_string())
            found = pc.index_in(text_or_null(batch.column(self.name)), value_set=known)
            places = found.fill_null(-1).to_numpy(zero_copy_only=False)
            return places, np.ones(len(batch), np.float32)
        values = parse_column(self.kind, column_values(batch, self.name))
        if values is None:
            raise batch.row_error(0, f"the feature '{self.name}' is not {self.kind}.")
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
        raise batch.row_error(row, f"the feature '{self.name}' is {what}{hint}.")


@dataclass(frozen=True)
class FeatureEncoder:
    """The columns that make the features, from left to right."""

    columns: tuple[FeatureColumn, ...]

    @classmethod
    def from_dict(cls, told: Iterable[dict[str, Any]]) -> FeatureEncoder:
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
            places, values = column.encode(batch)
            (rows,) = (places >= 0).nonzero()
            yield rows, places[rows] + first, values[rows]
            first += column.width


# Sighting: what is learned of a feature column while its rows pass by.


@dataclass
class ColumnTypeInference:
    """The kinds a column may still be, and what was seen of the narrowest."""

    name: str
    kinds: tuple[str, ...] = (*PARSERS, CATEGORY)
    num_values: int = 0
    num_nonzero: int = 0
    categories: set[str] = field(default_factory=set)
    needs_another_pass: bool = False
    """Did the kind change late, so that all rows must pass once more?"""

    def update(self, batch: Batch) -> None:
        """Take in a batch; a kind it does not fit is out for good."""
        values = column_values(batch, self.name)
        possible = allowed_kinds(values.type)
        if not possible:
            raise batch.row_error(
                0,
                f"the column '{self.name}' is of the type {values.type}, which cannot "
                f"be a feature; --ignore {self.name} leaves it out.",
            )
        before = self.kinds[0]
        self.kinds = tuple(kind for kind in self.kinds if kind in possible)
        while not self._accepts(values):
            self.kinds = self.kinds[1:]
        self.needs_another_pass |= self.kinds[0] != before and self.num_values > 0
        self.num_values += len(values) - values.null_count

    def finish_pass(self) -> bool:
        """Is the column known now? If not, forget what was counted of another kind."""
        if not self.needs_another_pass:
            return True
        self.needs_another_pass = False
        self.num_values = self.num_nonzero = 0
        self.categories = set()
        return False

    def column(self) -> FeatureColumn:
        """The column as it will be encoded; one without any value has no width."""
        if self.num_values and self.kinds[0] != CATEGORY:
            return FeatureColumn(self.name, self.kinds[0])
        return FeatureColumn(self.name, CATEGORY, tuple(sorted(self.categories)))

    def _accepts(self, values: pa.Array) -> bool:
        if self.kinds[0] == CATEGORY:
            text = values.cast(pa.large_string())
            self.categories.update(pc.unique(text.drop_null()).to_pylist())
            self.num_nonzero += len(text) - text.null_count
            return True
        found = parse_column(self.kinds[0], values)
        if found is not None:
            self.num_nonzero += int(np.count_nonzero(found))
        return found is not None
