"""Infer the types of table columns and encode them as features, one-hot for text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from pyarrow import types

from unalike.importing.lists import (
    is_list,
    parse_vectors,
    parse_words,
    vector_length,
)
from unalike.importing.scaling import (
    Scale,
    ScaleName,
    ValueSample,
    fit_scale,
    scale_from_dict,
    scale_to_dict,
)
from unalike.importing.tables import Batch, column_values, is_text, text_or_null

CATEGORY = "category"
LIST = "list"
"""Lists of names or whole numbers; each value that occurs is a feature of 0 and 1."""
VECTOR = "vector"
"""Lists of numbers, all of one length; each place is a feature."""

MISSING_NUMBERS = ("na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-", "?")
"""Words in a column of numbers or dates that stand for a missing one, in any case."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d[\d.]*,\d+")
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

TEXT_KINDS = (*PARSERS, VECTOR, LIST, CATEGORY)
"""Column types that text may be read as, narrowest first."""

_TYPES_OF_ARROW: tuple[tuple[Callable[[pa.DataType], bool], tuple[str, ...]], ...] = (
    (is_text, TEXT_KINDS),
    (types.is_null, TEXT_KINDS),
    (is_list, (VECTOR, LIST)),
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
    if is_text(values.type):
        words = pa.array(MISSING_NUMBERS, values.type)
        missing = pc.is_in(pc.utf8_lower(values), value_set=words)
        values = pc.if_else(missing, None, values)
    try:
        return pc.cast(values, kind, safe=is_text(values.type))
    except pa.ArrowInvalid:
        return None


Coordinates = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows, feature indices and values (COO)."""


@dataclass(frozen=True)
class FeatureColumn:
    """A table column that becomes one feature, or one feature per category.

    Where numbers were missing, a second feature is 1 in rows without a number.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    length: int = 0
    """Numbers in each value of a column of vectors."""
    optional: bool = True
    """Whether the column may be left out, unlike one that a model was trained on."""
    scale: Scale | None = None
    fill: float | None = None
    """The number, before scaling, that is used for missing ones."""

    @property
    def feature_names(self) -> list[str]:
        if self.has_categories:
            return [f"{self.name} = {category}" for category in self.categories]
        if self.kind == VECTOR:
            return [f"{self.name}[{place}]" for place in range(self.length)]
        indicator = [] if self.fill is None else [f"{self.name} is missing"]
        return [self.name, *indicator]

    @property
    def has_categories(self) -> bool:
        """Whether each feature is 0 or 1 and stands for one category."""
        return self.kind in (CATEGORY, LIST)

    @property
    def has_decimal_commas(self) -> bool:
        """Whether all categories are numbers such as 3,14, or missing ones."""
        numbers = [
            text for text in self.categories if text.lower() not in MISSING_NUMBERS
        ]
        return bool(numbers) and all(map(_DECIMAL_COMMA.fullmatch, numbers))

    @property
    def width(self) -> int:
        if self.has_categories:
            return len(self.categories)
        return self.length if self.kind == VECTOR else 1 + (self.fill is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as graph.json stores it."""
        document = {"name": self.name, "kind": self.kind, "width": self.width}
        if self.has_categories:
            document["categories"] = list(self.categories)
        if self.scale is not None:
            document["scale"] = scale_to_dict(self.scale)
        if self.fill is not None:
            document["fill"] = self.fill
        return document

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> FeatureColumn:
        """Return the column that graph.json or a model file describes."""
        scale = document.get("scale")
        return cls(
            document["name"],
            document["kind"],
            tuple(document.get("categories", ())),
            length=document["width"] if document["kind"] == VECTOR else 0,
            optional=False,
            scale=None if scale is None else scale_from_dict(scale),
            fill=document.get("fill"),
        )

    def encode(self, batch: Batch) -> Iterator[Coordinates]:
        """Yield the coordinates of values, with feature indices below `width`."""
        if self.has_categories:
            yield self._encode_categories(batch)
            return
        if self.kind == VECTOR:
            yield self._encode_vectors(batch)
            return
        values = parse_column(self.kind, column_values(batch, self.name))
        if values is None:
            raise batch.row_error(0, f"the feature '{self.name}' is not {self.kind}.")
        if self.fill is not None:
            (rows,) = np.isnan(values).nonzero()
            yield rows, np.ones_like(rows), np.ones(len(rows), np.float32)
            values = np.where(np.isnan(values), self.fill, values)
        numbers = self._finite(batch, values)
        yield np.arange(len(batch)), np.zeros(len(batch), np.int64), numbers

    def _encode_categories(self, batch: Batch) -> Coordinates:
        if self.kind == LIST:
            rows, items = self._items(batch, parse_words)
        else:
            rows, items = np.arange(len(batch)), text_or_null(batch.column(self.name))
        known = pa.array(self.categories, pa.large_string())
        found = pc.index_in(items, value_set=known).fill_null(-1)
        indices = found.to_numpy(zero_copy_only=False)
        pairs = np.stack([rows, indices], 1)[indices >= 0]
        if self.kind == LIST:
            pairs = np.unique(pairs, axis=0)  # twice in a list counts once
        return pairs[:, 0], pairs[:, 1], np.ones(len(pairs), np.float32)

    def _encode_vectors(self, batch: Batch) -> Coordinates:
        rows, items = self._items(batch, parse_vectors)
        values = items.to_numpy(zero_copy_only=False).astype(np.float32)
        if not np.isfinite(values).all():
            row = int(rows[~np.isfinite(values)][0])
            what = f"the feature '{self.name}' has a number that is not finite."
            raise batch.row_error(row, what)
        return rows, np.arange(len(items)) % self.length, values

    def _items(
        self, batch: Batch, parse: Callable[[pa.Array], pa.LargeListArray | None]
    ) -> tuple[np.ndarray, pa.Array]:
        """The items of all lists, and the row of each; some rows have no list."""
        lists = parse(column_values(batch, self.name))
        fits = self.kind == LIST or (
            lists is not None and vector_length(lists) in (0, self.length)
        )
        if lists is None or not fits:
            what = f"not a {self.kind}" if lists is None else "of another length"
            raise batch.row_error(0, f"a value of the feature '{self.name}' is {what}.")
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
        return np.repeat(np.arange(len(batch)), lengths), lists.flatten()

    def _finite(self, batch: Batch, values: np.ndarray) -> np.ndarray:
        """Scaled values; raises an error if one is missing or infinite."""
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float32)

        def problem(row: int) -> str:
            value = batch.column(self.name)[row].as_py()
            what = "missing" if value in (None, "") else f"{value}, not a finite number"
            name = shlex.quote(self.name)
            hint = f"; --ignore {name} leaves the column out" if self.optional else ""
            return f"the feature '{self.name}' is {what}{hint}."

        batch.refuse(~np.isfinite(numbers), problem)
        return self.scale(values).astype(np.float32) if self.scale else numbers


@dataclass(frozen=True)
class FeatureEncoder:
    """Encodes rows of a table as features, column by column."""

    columns: tuple[FeatureColumn, ...] = ()

    @classmethod
    def from_dict(cls, columns: Iterable[dict[str, Any]]) -> FeatureEncoder:
        """Build the encoder that graph.json describes under `feature_columns`."""
        return cls(tuple(map(FeatureColumn.from_dict, columns)))

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    def dense(self, batch: Batch) -> np.ndarray:
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

    def _coordinates(self, batch: Batch) -> Iterator[Coordinates]:
        first = 0
        for column in self.columns:
            for rows, indices, values in column.encode(batch):
                yield rows, indices + first, values
            first += column.width


@dataclass
class ColumnTypeInference:
    """Infers the type of a column from its batches, from narrow to wide types."""

    name: str
    kinds: tuple[str, ...] = TEXT_KINDS
    num_values: int = 0
    num_nonzero: int = 0
    num_missing: int = 0
    """Rows without a number, in a column of numbers."""
    categories: set[str] = field(default_factory=set)
    length: int = 0
    """Numbers in each vector."""
    sample: ValueSample = field(default_factory=ValueSample)
    """Numbers of train rows, by which the column is scaled."""
    needs_another_pass: bool = False
    """Whether the type changed late, so that all rows must be read again."""

    def update(self, batch: Batch, train: np.ndarray | slice) -> None:
        """Rule out the types that a batch does not fit; `train` selects train rows."""
        values = column_values(batch, self.name)
        allowed = allowed_kinds(values.type)
        if not allowed:
            raise batch.row_error(
                0,
                f"the column '{self.name}' is of the type {values.type}, which cannot "
                f"be a feature; --ignore {shlex.quote(self.name)} leaves it out.",
            )
        before = self.kinds[0]
        self.kinds = tuple(kind for kind in self.kinds if kind in allowed)
        while not self._accepts(values, train):
            self.kinds = self.kinds[1:]
        self.needs_another_pass |= self.kinds[0] != before and self.num_values > 0
        self.num_values += len(values) - values.null_count

    def finish_pass(self) -> bool:
        """Return whether the type is final; if not, reset for another pass."""
        if not self.needs_another_pass:
            return True
        self.needs_another_pass = False
        self.num_values = self.num_nonzero = self.num_missing = self.length = 0
        self.categories, self.sample = set(), ValueSample()
        return False

    def feature_column(self, scale: ScaleName, *, fill_missing: bool) -> FeatureColumn:
        """Return the column to encode; one without any value has width 0."""
        kind, values = self.kinds[0], self.sample.values()
        no_number = fill_missing and kind in PARSERS and not len(values)
        if not self.num_values or no_number:
            return FeatureColumn(self.name, CATEGORY)
        if kind not in PARSERS:
            names = tuple(sorted(self.categories))
            return FeatureColumn(self.name, kind, names, length=self.length)
        fill = float(np.median(values)) if fill_missing and self.num_missing else None
        return FeatureColumn(self.name, kind, scale=fit_scale(scale, values), fill=fill)

    def count_nonzero(self, column: FeatureColumn) -> int:
        """The nonzero features that the column gives; scaled zeros may be nonzero."""
        if column.scale is None or column.scale(np.zeros(1))[0] == 0:
            return self.num_nonzero
        return self.num_values + 2 * self.num_missing

    def _accepts(self, values: pa.Array, train: np.ndarray | slice) -> bool:
        kind = self.kinds[0]
        if kind in PARSERS:
            numbers = parse_column(kind, values)
            if numbers is None:
                return False
            self.num_nonzero += int(np.count_nonzero(numbers))
            self.num_missing += int(np.isnan(numbers).sum())
            self.sample.add(numbers[train])
            return True
        if kind == CATEGORY:
            items = values.cast(pa.large_string()).drop_null()
        else:
            lists = parse_words(values) if kind == LIST else parse_vectors(values)
            if lists is None or (kind == VECTOR and not self._accepts_length(lists)):
                return False
            items = lists.flatten()
        if kind != VECTOR:
            self.categories.update(pc.unique(items.drop_null()).to_pylist())
        self.num_nonzero += len(items)
        return True

    def _accepts_length(self, vectors: pa.LargeListArray) -> bool:
        length = vector_length(vectors)
        if length is None or self.length not in (0, length):
            return False
        self.length = max(self.length, length)
        return True
