"""IdIndex: numbers the ids of nodes, of any kind, in the order they are met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from unalike.errors import UserError
from unalike.importing.keys import IntegerKeys, TextKeys
from unalike.importing.threads import in_threads, slices

MOST_NODES = 2**31 - 1


class IdIndex:
    """Ids and their codes. Numbers stay numbers until the first id that is none."""

    def __init__(self) -> None:
        self.keys: IntegerKeys | TextKeys = IntegerKeys()

    def __len__(self) -> int:
        return self.keys.count

    def find(self, ids: pa.Array) -> np.ndarray:
        """The code of each id, -1 where it is unknown."""
        return self._search(ids)[0]

    def add(self, ids: pa.Array) -> np.ndarray:
        """The code of each id; unknown ones get the next."""
        codes, keys, num_new = self._search(ids)
        if num_new:
            self.keys.add(keys, codes, num_new)
        if len(self) > MOST_NODES:
            raise UserError(f"There are more than {MOST_NODES:,} different node ids.")
        return codes

    def holds(self, name: str) -> bool:
        """Is it an id? A text is none while all ids are numbers."""
        ids = pa.array([name], pa.large_string())
        return self.keys.read(ids) is not None and bool(self.find(ids)[0] >= 0)

    def names(self) -> pa.Array:
        """The ids in the order of their codes."""
        return self.keys.names()

    def _search(self, ids: pa.Array) -> tuple[np.ndarray, Any, int]:
        keys: Any = None
        if isinstance(self.keys, IntegerKeys):
            keys = self.keys.read(ids)
            if keys is None:
                self.keys = TextKeys.of(self.names())
        if isinstance(self.keys, TextKeys):
            keys = self.keys.read(ids)
        codes = np.empty(len(ids), np.int32)
        new = in_threads(
            lambda part: self.keys.find(keys, part, codes[part]), slices(len(ids))
        )
        return codes, keys, sum(new)
