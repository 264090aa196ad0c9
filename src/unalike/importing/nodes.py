"""Nodes: tables are read for ids, labels, the split and the kinds of features."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from unalike.errors import UserError
from unalike.importing.batch import Batch, Table
from unalike.importing.classes import ClassReader
from unalike.importing.columns import node_id, require
from unalike.importing.encoding import Encoder
from unalike.importing.ids import IdIndex
from unalike.importing.kinds import CATEGORY
from unalike.importing.options import ImportOptions
from unalike.importing.sighting import Sighting
from unalike.importing.tables import megabytes
from unalike.importing.threads import ahead
from unalike.importing.values import read_ids, read_text
from unalike.progress import Progress
from unalike.split import PARTS

SPLIT_WORDS = {
    "train": "train",
    "valid": "valid",
    "val": "valid",
    "validation": "valid",
    "test": "test",
}
"""What a split column may say, and the part that is meant."""


@dataclass(frozen=True)
class Nodes:
    """What the node tables told; features are encoded later, batch by batch."""

    names: pa.Array
    labels: np.ndarray
    class_names: list[Hashable]
    encoder: Encoder
    num_nonzero: int
    """Features that are not zero, over all nodes."""
    codes: np.ndarray | None
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
    codes: list[np.ndarray] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def read(self) -> Nodes:
        """Pass over the tables, more than once if a column shows its kind late."""
        label = self.options.label
        classes = None if label is None else ClassReader(label)
        sightings = [self._sighting(name) for name in self.feature_names()]
        self.progress.stage("Reading nodes", megabytes(self.tables), "MB")
        self._first_pass(classes, sightings)
        late = [sighting for sighting in sightings if not sighting.settle()]
        while late:
            for batch in self.batches([sighting.name for sighting in late]):
                for sighting in late:
                    sighting.look(batch)
            late = [sighting for sighting in late if not sighting.settle()]
        labels, class_names = np.full(len(self.index), -1), list[Hashable]()
        if classes is not None:
            labels, class_names = classes.finish()
        return Nodes(
            names=self.index.names(),
            labels=labels,
            class_names=class_names,
            encoder=Encoder(tuple(sighting.column() for sighting in sightings)),
            num_nonzero=sum(sighting.num_nonzero for sighting in sightings),
            codes=np.concatenate(self.codes) if self.codes else None,
            rows=self.rows,
        )

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """All tables again, with the named columns of each."""
        for table in self.tables:
            for name in columns:
                require(table, name)
            yield from ahead(table.batches(columns))

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
                require(table, name)
        if options.features is not None:
            return [require(table, name) for name in options.features]
        used = {node_id(table, options.id), options.label, options.split}
        used.update(options.ignore)
        return [name for name in table.columns if name not in used]

    def _sighting(self, name: str) -> Sighting:
        if name in self.options.categories:
            return Sighting(name, (CATEGORY,))
        return Sighting(name)

    def _first_pass(
        self, classes: ClassReader | None, sightings: Sequence[Sighting]
    ) -> None:
        for table in self.tables:
            id_column = node_id(table, self.options.id)
            told = [id_column, self.options.label, self.options.split]
            told += [sighting.name for sighting in sightings]
            wanted = dict.fromkeys(name for name in told if name is not None)
            before = len(self.index)
            for batch in ahead(
                table.batches([require(table, name) for name in wanted])
            ):
                self._add_ids(batch, id_column)
                if classes is not None:
                    classes.add(batch)
                if self.options.split is not None:
                    self.codes.append(split_codes(batch, self.options.split))
                for sighting in sightings:
                    sighting.look(batch)
                self.progress.advance(batch.read / 1e6, f"{len(self.index):,} nodes")
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
            raise batch.wrong(
                row, f"the node id '{ids[row].as_py()}' is there a second time."
            )


def split_codes(batch: Batch, column: str) -> np.ndarray:
    """The part of the split that each row names, by number; -1 where it is blank."""
    words = read_text(batch.column(column)).to_pylist()
    codes = np.full(len(words), -1, np.int8)
    for row, word in enumerate(words):
        if word is None:
            continue
        part = SPLIT_WORDS.get(word.lower())
        if part is None:
            raise batch.wrong(
                row,
                f"the split '{word}' is unknown; known are {', '.join(SPLIT_WORDS)}.",
            )
        codes[row] = PARTS.index(part)
    return codes
