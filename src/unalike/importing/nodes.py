"""Read node tables: ids, labels as class ids, split column, types of features."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from unalike.data.graph import encode_labels, number_labels
from unalike.data.split import PARTS, temporal_split
from unalike.errors import UserError
from unalike.importing.features import (
    CATEGORY,
    TEXT_KINDS,
    ColumnTypeInference,
    FeatureEncoder,
    allowed_kinds,
    parse_column,
)
from unalike.importing.ids import IdIndex
from unalike.importing.options import ImportOptions
from unalike.importing.readers import total_megabytes
from unalike.importing.tables import (
    Batch,
    Table,
    column_values,
    find_id_column,
    floats_as_integers,
    read_ahead,
    read_ids,
    require_column,
    text_or_null,
)
from unalike.progress import Progress

MISSING_LABELS = ("nan", "null")
"""Values that mean no label, as an empty value does."""

MAX_LABEL = 2**63 - 1

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_BOOLEANS = {"true", "false"}

SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "val": "valid",
    "validation": "valid",
    "test": "test",
}
"""Values of a split column, and the part that each means."""


@dataclass
class LabelReader:
    """Reads the labels of all nodes, batch by batch, and encodes them as class ids."""

    column: str
    first_rows: dict[str, tuple[Table, int]] = field(default_factory=dict)
    """Each distinct label text, with the table and row where it is first."""
    codes: list[np.ndarray] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        encoded = self._text(batch).dictionary_encode()
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        known = {text: code for code, text in enumerate(self.first_rows)}
        codes = np.full(len(encoded.dictionary) + 1, -1)
        for index, text in enumerate(encoded.dictionary.to_pylist()):
            if text.lower() in MISSING_LABELS:
                continue
            if text not in known:
                known[text] = len(known)
                row = batch.first_row + int((indices == index).argmax())
                self.first_rows[text] = (batch.table, row)
            codes[index] = known[text]
        self.codes.append(codes[indices])

    def finish(self) -> tuple[np.ndarray, list[Hashable]]:
        """Return the class id of each node, -1 for none, and the class names."""
        class_ids, classes = encode_labels(self._values())
        if len(classes) < 2:
            what = f"one class only, '{classes[0]}'" if classes else "no value at all"
            raise UserError(f"The label '{self.column}' has {what}; two are needed.")
        lookup = torch.cat([class_ids, torch.tensor([-1])]).numpy()
        return lookup[np.concatenate(self.codes)], classes

    def _text(self, batch: Batch) -> pa.Array:
        values = batch.column(self.column)
        if CATEGORY not in allowed_kinds(values.type):
            raise batch.row_error(
                0,
                f"the label '{self.column}' is of the type {values.type}; "
                "labels are numbers or text.",
            )
        if pa.types.is_floating(values.type):
            values = floats_as_integers(batch, self.column, f"label '{self.column}'")
        return text_or_null(values)

    def _values(self) -> list[Hashable]:
        """Convert the label texts: all to integers, to true and false, or to text."""
        if all(map(_NUMBER.fullmatch, self.first_rows)):
            return [self._as_integer(text) for text in self.first_rows]
        if {text.lower() for text in self.first_rows} <= _BOOLEANS:
            return [text.lower() for text in self.first_rows]
        return list(self.first_rows)

    def _as_integer(self, text: str) -> int:
        number = Decimal(text)
        too_large = abs(number) > MAX_LABEL
        if too_large or number != number.to_integral_value():
            table, row = self.first_rows[text]
            what = "is too large for 64 bits" if too_large else "is not an integer"
            raise UserError(
                f"{table.location(row)}: the label '{self.column}' {text} {what}."
            )
        return int(number)


@dataclass
class NumberReader:
    """Reads the labels of all nodes as numbers to predict."""

    column: str
    numbers: list[np.ndarray] = field(default_factory=list)
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """The different numbers in ascending order."""

    def add(self, batch: Batch) -> None:
        """Read the numbers of a batch, NaN where one is missing."""
        values = column_values(batch, self.column)
        fits = "numeric" in allowed_kinds(values.type)
        numbers = parse_column("numeric", values) if fits else None
        if numbers is None:
            raise batch.row_error(
                0,
                f"the label '{self.column}' is not a column of numbers, which have a "
                "decimal point and no comma.",
            )
        what = f"the label '{self.column}' is infinite."
        batch.refuse(np.isinf(numbers), lambda row: what)
        self.numbers.append(numbers.astype(np.float64))

    def finish(self) -> tuple[np.ndarray, list[Hashable]]:
        """Return the position of each number among `values`, -1 for none."""
        labels, self.values = number_labels(np.concatenate(self.numbers))
        if len(self.values) < 2:
            raise UserError(f"The label '{self.column}' needs two different numbers.")
        return labels, []


@dataclass
class TimeReader:
    """Reads the times of all nodes, dates or numbers, and splits the nodes by them."""

    column: str
    kinds: tuple[str, ...] = ("numeric", "date")
    times: list[np.ndarray] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Read the times of a batch; all of them are numbers, or all are dates."""
        values = column_values(batch, self.column)
        allowed = allowed_kinds(values.type)
        for kind in self.kinds:
            times = parse_column(kind, values) if kind in allowed else None
            if times is not None:
                # A batch without any time says nothing about the others.
                self.kinds = self.kinds if np.isnan(times).all() else (kind,)
                self.times.append(times)
                return
        raise batch.row_error(
            0, f"the times of '{self.column}' are neither all numbers nor all dates."
        )

    def split(self, class_ids: np.ndarray) -> np.ndarray:
        """Return the split code of each node, -1 without a time or a label."""
        times = np.where(class_ids < 0, np.nan, np.concatenate(self.times))
        return temporal_split(times).to_codes(len(times)).numpy()


@dataclass(frozen=True)
class NodeData:
    """Nodes of all tables; features are encoded later, batch by batch."""

    names: pa.Array
    labels: np.ndarray
    class_names: list[Hashable] = field(default_factory=list)
    label_values: np.ndarray | None = None
    """The number that each label stands for, where labels are numbers."""
    encoder: FeatureEncoder = field(default_factory=FeatureEncoder)
    num_nonzero: int = 0
    """Nonzero features of all nodes."""
    num_missing: dict[str, int] = field(default_factory=dict)
    """Missing numbers of each feature column that has any."""
    split_codes: np.ndarray | None = None
    """0 train, 1 valid, 2 test, -1 none, for each node."""
    rows: list[int] = field(default_factory=list)
    """Rows read from each table."""


@dataclass
class NodeReader:
    """Reads node tables as the options say."""

    tables: Sequence[Table]
    options: ImportOptions
    index: IdIndex
    progress: Progress
    split_codes: list[np.ndarray] = field(default_factory=list)
    times: TimeReader | None = None
    rows: list[int] = field(default_factory=list)

    def read(self) -> NodeData:
        """Read the tables, more than once if the type of a column changes late.

        With a split by time, features are read when the train rows are known.
        """
        label = self.options.label
        kind = NumberReader if self.options.predicts_numbers else LabelReader
        labels = None if label is None else kind(label)
        names, categories = self.feature_names(), self.options.categories
        columns = [
            ColumnTypeInference(name, (CATEGORY,) if name in categories else TEXT_KINDS)
            for name in names
        ]
        self.progress.stage("Reading nodes", total_megabytes(self.tables), "MB")
        if self.options.split_time is not None:
            self.times = TimeReader(self.options.split_time)
        self._first_pass(labels, [] if self.times else columns)
        class_ids, class_names = np.full(len(self.index), -1), list[Hashable]()
        if labels is not None:
            class_ids, class_names = labels.finish()
        late = [column for column in columns if not column.finish_pass()]
        if self.times is not None:
            self.split_codes = [self.times.split(class_ids)]
            late = columns
        while late:
            first, codes = 0, self._split_codes()
            for batch in self.batches([column.name for column in late]):
                train = _train_rows(codes, slice(first, first + len(batch)))
                for column in late:
                    column.update(batch, train)
                first += len(batch)
            late = [column for column in late if not column.finish_pass()]
        fill = self.options.missing == "fill"
        encoded = [
            column.feature_column(self.options.scale, fill_missing=fill)
            for column in columns
        ]
        return NodeData(
            names=self.index.names(),
            labels=class_ids,
            class_names=class_names,
            label_values=labels.values if isinstance(labels, NumberReader) else None,
            encoder=FeatureEncoder(tuple(encoded)),
            num_nonzero=sum(map(ColumnTypeInference.count_nonzero, columns, encoded)),
            num_missing={c.name: c.num_missing for c in columns if c.num_missing},
            split_codes=self._split_codes(),
            rows=self.rows,
        )

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        for table in self.tables:
            for name in columns:
                require_column(table, name)
            yield from read_ahead(table, columns)

    def feature_names(self) -> list[str]:
        """Return the feature columns of the options, or all with no other use."""
        options, table = self.options, self.tables[0]
        used = [options.label, options.split, options.split_time, *options.ignore]
        for name in (*used, *options.categories):
            if name is not None:
                require_column(table, name)
        if options.features is not None:
            return [require_column(table, name) for name in options.features]
        used.append(find_id_column(table, options.id))
        return [name for name in table.columns if name not in used]

    def _first_pass(
        self,
        labels: LabelReader | NumberReader | None,
        columns: Sequence[ColumnTypeInference],
    ) -> None:
        options = self.options
        for table in self.tables:
            id_column, before = find_id_column(table, options.id), len(self.index)
            names = [id_column, options.label, options.split, options.split_time]
            names += [column.name for column in columns]
            wanted = dict.fromkeys(name for name in names if name is not None)
            selected = [require_column(table, name) for name in wanted]
            for batch in read_ahead(table, selected):
                self._add_ids(batch, id_column)
                if labels is not None:
                    labels.add(batch)
                if self.times is not None:
                    self.times.add(batch)
                if options.split is not None:
                    self.split_codes.append(split_codes(batch, options.split))
                codes = self.split_codes[-1] if self.split_codes else None
                train = _train_rows(codes, slice(None))
                for column in columns:
                    column.update(batch, train)
                note = f"{len(self.index):,} nodes"
                self.progress.advance(batch.bytes_read / 1e6, note)
            self.rows.append(len(self.index) - before)
        if not len(self.index):
            raise UserError(f"{self.tables[0].path} has no rows.")

    def _split_codes(self) -> np.ndarray | None:
        return np.concatenate(self.split_codes) if self.split_codes else None

    def _add_ids(self, batch: Batch, column: str) -> None:
        first = len(self.index)
        ids = read_ids(batch, column, "node id")
        indices = self.index.add(ids)
        batch.refuse(
            indices != np.arange(first, first + len(batch)),
            lambda row: f"the node id '{ids[row].as_py()}' is a duplicate.",
        )


def _train_rows(codes: np.ndarray | None, rows: slice) -> np.ndarray | slice:
    """Select the train rows; all rows where splits are drawn at random."""
    return slice(None) if codes is None else codes[rows] == PARTS.index("train")


def split_codes(batch: Batch, column: str) -> np.ndarray:
    """Return the split code of each row: 0 train, 1 valid, 2 test, -1 blank."""
    values = text_or_null(batch.column(column))
    known = pa.array(list(SPLIT_NAMES), pa.large_string())
    names = pc.index_in(pc.utf8_lower(values), value_set=known)
    batch.refuse(
        pc.and_(names.is_null(), values.is_valid()).to_numpy(zero_copy_only=False),
        lambda row: (
            f"the split '{values[row]}' is unknown; known are {', '.join(SPLIT_NAMES)}."
        ),
    )
    codes = np.array([*map(PARTS.index, SPLIT_NAMES.values()), -1], np.int8)
    return codes[names.fill_null(-1).to_numpy(zero_copy_only=False)]
