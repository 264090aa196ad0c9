"""Sighting: what is learned of a feature column while its rows pass by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.importing.batch import Batch
from unalike.importing.encoding import FeatureColumn
from unalike.importing.kinds import CATEGORY, READERS, numbers, possible_kinds
from unalike.importing.values import read_values


@dataclass
class Sighting:
    """The kinds a column may still be, and what was seen of the narrowest."""

    name: str
    kinds: tuple[str, ...] = (*READERS, CATEGORY)
    num_values: int = 0
    num_nonzero: int = 0
    categories: set[str] = field(default_factory=set)
    again: bool = False
    """Did the kind change late, so that all rows must pass once more?"""

    def look(self, batch: Batch) -> None:
        """Take in a batch; a kind it does not fit is out for good."""
        values = read_values(batch, self.name)
        possible = possible_kinds(values.type)
        if not possible:
            raise batch.wrong(
                0,
                f"the column '{self.name}' is of the type {values.type}, which cannot "
                f"be a feature; --ignore {self.name} leaves it out.",
            )
        before = self.kinds[0]
        self.kinds = tuple(kind for kind in self.kinds if kind in possible)
        while not self._take(values):
            self.kinds = self.kinds[1:]
        self.again |= self.kinds[0] != before and self.num_values > 0
        self.num_values += len(values) - values.null_count

    def settle(self) -> bool:
        """Is the column known now? If not, forget what was counted of another kind."""
        if not self.again:
            return True
        self.again = False
        self.num_values = self.num_nonzero = 0
        self.categories = set()
        return False

    def column(self) -> FeatureColumn:
        """The column as it will be encoded; one without any value has no width."""
        if self.num_values and self.kinds[0] != CATEGORY:
            return FeatureColumn(self.name, self.kinds[0])
        return FeatureColumn(self.name, CATEGORY, tuple(sorted(self.categories)))

    def _take(self, values: pa.Array) -> bool:
        if self.kinds[0] == CATEGORY:
            text = values.cast(pa.large_string())
            self.categories.update(pc.unique(text.drop_null()).to_pylist())
            self.num_nonzero += len(text) - text.null_count
            return True
        found = numbers(self.kinds[0], values)
        if found is not None:
            self.num_nonzero += int(np.count_nonzero(found))
        return found is not None
