"""Node tables: ids, labels to class ids, split column."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import torch

from unalike.data.labels import encode_labels
from unalike.data.split import PARTS
from unalike.errors import UserError
from unalike.importing.features import (
    CATEGORY,
    ColumnTypeInference,
    FeatureEncoder,
    allowed_kinds,
)
from unalike.importing.ids import IdIndex
from unalike.importing.options import ImportOptions
from unalike.importing.readers import total_megabytes
from unalike.importing.tables import (
    Batch,
    Table,
    find_id_column,
    floats_as_integers,
    read_ids,
    require_column,
    text_or_null,
)
from unalike.parallel import prefetch
from unalike.progress import Progress

# Classes: the labels of a node table as numbers, however they are spelled.


MISSING_LABELS = ("nan", "null")
"""Words that mean no label, as an empty value does."""

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_BOOLEANS = {"true", "false"}


@dataclass
class LabelReader:
    """Collects the labels of all nodes, batch by batch."""

    column: str
    spellings: dict[str, tuple[Table, int]] = field(default_factory=dict)
    """Each spelling that was met, and the table and row of the first."""
    codes: list[np.ndarray] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Take in the labels of a batch."""
        coded = self._text(batch).dictionary_encode()
        spelled = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        numbers = {word: code for code, word in enumerate(self.spellings)}
        codes = np.full(len(coded.dictionary) + 1, -1)
        for place, word in enumerate(coded.dictionary.to_pylist()):
            if word.lower() in MISSING_LABELS:
                continue
            if word not in numbers:
                numbers[word] = len(numbers)
                row = batch.first_row + int((spelled == place).argmax())
                self.spellings[word] = (batch.table, row)
            codes[place] = numbers[word]
        self.codes.append(codes[spelled])

    def finish(self) -> tuple[np.ndarray, list[Hashable]]:
        """The class of each node, -1 where it has none, and the names of them all."""
        numbers, classes = encode_labels(self._values())
        if len(classes) < 2:
            found = f"one class only, '{classes[0]}'" if classes else "no value at all"
            raise UserError(f"The label '{self.column}' has {found}; two are needed.")
        lookup = torch.cat([numbers, torch.tensor([-1])]).numpy()
        return lookup[np.concatenate(self.codes)], classes

    def _text(self, batch: Batch) -> pa.Array:
        values = batch.column(self.column)
        if not allowed_kinds(values.type):
            raise batch.row_error(
                0,
                f"the label '{self.column}' is of the type {values.type}; "
                "labels are numbers or text.",
            )
        if pa.types.is_floating(values.type):
            values = floats_as_integers(batch, self.column, f"label '{self.column}'")
        return text_or_null(values)

    def _values(self) -> list[Hashable]:
        """Each spelling as what it means: whole numbers, true and false, or text."""
        if all(map(_NUMBER.fullmatch, self.spellings)):
            return [self._as_integer(word) for word in self.spellings]
        if {word.lower() for word in self.spellings} <= _BOOLEANS:
            return [word.lower() for word in self.spellings]
        return list(self.spellings)

    def _as_integer(self, word: str) -> int:
        number = Decimal(word)
        if number % 1:
            table, row = self.spellings[word]
            raise UserError(
                f"{table.location(row)}: the label '{self.column}' {word} "
                "is not a whole number."
            )
        return int(number)


# Nodes: tables are read for ids, labels, the split and the kinds of features.


SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "val": "valid",
    "validation": "valid",
    "test": "test",
}
"""What a split column may say, and the part that is meant."""


@dataclass(frozen=True)
class NodeData:
    """What the node tables told; features are encoded later, batch by batch."""

    names: pa.Array
    labels: np.ndarray
    class_names: list[Hashable]
    encoder: FeatureEncoder
    num_nonzero: int
    """Features that are not zero, over all nodes."""
    split_codes: np.ndarray | None
    """The part of the split each node is in, -1 for none."""
    rows: list[int] = field(default_factory=list)
    """Rows of each table."""


@dataclass
class NodeReader:
    """Reads node tables by the user's options."""

    tables: Sequence[Table]
    options: ImportOptions
    index: IdIndex
    progress: Progress
    split_codes: list[np.ndarray] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def read(self) -> NodeData:
        """Pass over the tables, more than once if a column shows its kind late."""
        label = self.options.label
        classes = None if label is None else LabelReader(label)
        sightings = [self._sighting(name) for name in self.feature_names()]
        self.progress.stage("Reading nodes", total_megabytes(self.tables), "MB")
        self._first_pass(classes, sightings)
        late = [sighting for sighting in sightings if not sighting.finish_pass()]
        while late:
            for batch in self.batches([sighting.name for sighting in late]):
                for sighting in late:
                    sighting.update(batch)
            late = [sighting for sighting in late if not sighting.finish_pass()]
        labels, class_names = np.full(len(self.index), -1), list[Hashable]()
        if classes is not None:
            labels, class_names = classes.finish()
        return NodeData(
            names=self.index.names(),
            labels=labels,
            class_names=class_names,
            encoder=FeatureEncoder(tuple(sighting.column() for sighting in sightings)),
            num_nonzero=sum(sighting.num_nonzero for sighting in sightings),
            split_codes=np.concatenate(self.split_codes) if self.split_codes else None,
            rows=self.rows,
        )

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """All tables again, with the named columns of each."""
        for table in self.tables:
            for name in columns:
                require_column(table, name)
            yield from prefetch(table.batches(columns))

    def feature_names(self) -> list[str]:
        """The columns that were asked for, or all that have no other use."""
        options, table = self.options, self.tables[0]
        for name in (
            options.label,
            options.split,
            *options.ignore,
            *options.categories,
        ):
            if name is not None:
                require_column(table, name)
        if options.features is not None:
            return [require_column(table, name) for name in options.features]
        used = {find_id_column(table, options.id), options.label, options.split}
        used.update(options.ignore)
        return [name for name in table.columns if name not in used]

    def _sighting(self, name: str) -> ColumnTypeInference:
        if name in self.options.categories:
            return ColumnTypeInference(name, (CATEGORY,))
        return ColumnTypeInference(name)

    def _first_pass(
        self, classes: LabelReader | None, sightings: Sequence[ColumnTypeInference]
    ) -> None:
        for table in self.tables:
            id_column = find_id_column(table, self.options.id)
            told = [id_column, self.options.label, self.options.split]
            told += [sighting.name for sighting in sightings]
            wanted = dict.fromkeys(name for name in told if name is not None)
            before = len(self.index)
            for batch in prefetch(
                table.batches([require_column(table, name) for name in wanted])
            ):
                self._add_ids(batch, id_column)
                if classes is not None:
                    classes.add(batch)
                if self.options.split is not None:
                    self.split_codes.append(split_codes(batch, self.options.split))
                for sighting in sightings:
                    sighting.update(batch)
                self.progress.advance(
                    batch.bytes_read / 1e6, f"{len(self.index):,} nodes"
                )
            self.rows.append(len(self.index) - before)
        if not len(self.index):
            raise UserError(f"{self.tables[0].path} has no rows.")

    def _add_ids(self, batch: Batch, column: str) -> None:
        first = len(self.index)
        ids = read_ids(batch, column, "node id")
        codes = self.index.add(ids)
        repeated = codes != np.arange(first, first + len(batch))
        if repeated.any():
            row = int(repeated.argmax())
            raise batch.row_error(
                row, f"the node id '{ids[row].as_py()}' is there a second time."
            )


def split_codes(batch: Batch, column: str) -> np.ndarray:
    """The part of the split that each row names, by number; -1 where it is blank."""
    words = text_or_null(batch.column(column)).to_pylist()
    codes = np.full(len(words), -1, np.int8)
    for row, word in enumerate(words):
        if word is None:
            continue
        part = SPLIT_NAMES.get(word.lower())
        if part is None:
            raise batch.row_error(
                row,
                f"the split '{word}' is unknown; known are {', '.join(SPLIT_NAMES)}.",
            )
        codes[row] = PARTS.index(part)
    return codes
