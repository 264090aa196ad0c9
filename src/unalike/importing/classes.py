"""Classes: the labels of a node table as numbers, however they are spelled."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import torch

from unalike.errors import UserError
from unalike.importing.batch import Batch, Table
from unalike.importing.kinds import possible_kinds
from unalike.importing.values import read_text, whole_numbers
from unalike.labels import number_labels

MISSING = ("nan", "null")
"""Words that mean no label, as an empty value does."""

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_TRUTH = {"true", "false"}


@dataclass
class ClassReader:
    """Collects the labels of all nodes, batch by batch."""

    column: str
    words: dict[str, tuple[Table, int]] = field(default_factory=dict)
    """Each spelling that was met, and the table and row of the first."""
    codes: list[np.ndarray] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Take in the labels of a batch."""
        coded = self._text(batch).dictionary_encode()
        spelled = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        numbers = {word: code for code, word in enumerate(self.words)}
        codes = np.full(len(coded.dictionary) + 1, -1)
        for place, word in enumerate(coded.dictionary.to_pylist()):
            if word.lower() in MISSING:
                continue
            if word not in numbers:
                numbers[word] = len(numbers)
                row = batch.first + int((spelled == place).argmax())
                self.words[word] = (batch.table, row)
            codes[place] = numbers[word]
        self.codes.append(codes[spelled])

    def finish(self) -> tuple[np.ndarray, list[Hashable]]:
        """The class of each node, -1 where it has none, and the names of them all."""
        numbers, classes = number_labels(self._values())
        if len(classes) < 2:
            found = f"one class only, '{classes[0]}'" if classes else "no value at all"
            raise UserError(f"The label '{self.column}' has {found}; two are needed.")
        lookup = torch.cat([numbers, torch.tensor([-1])]).numpy()
        return lookup[np.concatenate(self.codes)], classes

    def _text(self, batch: Batch) -> pa.Array:
        values = batch.column(self.column)
        if not possible_kinds(values.type):
            raise batch.wrong(
                0,
                f"the label '{self.column}' is of the type {values.type}; "
                "labels are numbers or text.",
            )
        if pa.types.is_floating(values.type):
            values = whole_numbers(batch, self.column, f"label '{self.column}'")
        return read_text(values)

    def _values(self) -> list[Hashable]:
        """Each spelling as what it means: whole numbers, true and false, or text."""
        if all(map(_NUMBER.fullmatch, self.words)):
            return [self._whole(word) for word in self.words]
        if {word.lower() for word in self.words} <= _TRUTH:
            return [word.lower() for word in self.words]
        return list(self.words)

    def _whole(self, word: str) -> int:
        number = Decimal(word)
        if number % 1:
            table, row = self.words[word]
            raise UserError(
                f"{table.place(row)}: the label '{self.column}' {word} "
                "is not a whole number."
            )
        return int(number)
