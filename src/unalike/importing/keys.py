"""Keys: the two tables behind the id index, one of numbers and one of texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.importing import hashing
from unalike.importing.spelling import LARGE, NEGATIVE, WORD, parse_integers
from unalike.importing.threads import in_threads, slices

DIRECT = 1 << 24
"""Numbers from 0 to here are looked up without hashing; unused pages cost nothing."""


class IntegerKeys:
    """An index of whole numbers of 64 bits, signed or unsigned but not both."""

    def __init__(self) -> None:
        self.count = 0
        self.met = 0
        self.direct = np.zeros(DIRECT, np.int32)
        self.slots = np.zeros((1 << 10, 2), np.int64)

    def read(self, ids: pa.Array) -> np.ndarray | None:
        """The bits of each number; None where these ids do not fit in."""
        if pa.types.is_integer(ids.type):
            keys, met = _bits(ids)
        else:
            words = Words.of(ids)
            keys = np.empty(len(ids), np.int64)
            met = _union(
                in_threads(
                    lambda part: parse_integers(*words.part(part), keys[part]),
                    slices(len(ids)),
                )
            )
        met |= self.met
        if met & WORD or met == NEGATIVE | LARGE:
            return None
        self.met = met
        return _frozen(keys)

    def find(self, keys: np.ndarray, part: slice, codes: np.ndarray) -> int:
        return hashing.find_integers(keys[part], self.direct, self.slots, codes)

    def add(self, keys: np.ndarray, codes: np.ndarray, num_new: int) -> None:
        self.slots = _with_room(self.slots, self.count + num_new)
        self.count = hashing.add_integers(
            keys, self.count, self.direct, self.slots, codes
        )

    def names(self) -> pa.Array:
        names = np.zeros(self.count, np.int64)
        (small,) = self.direct.nonzero()
        names[self.direct[small] - 1] = small
        used = self.slots[self.slots[:, 1] > 0]
        names[used[:, 1] - 1] = used[:, 0]
        return pa.array(names.view(np.uint64) if self.met & LARGE else names)


class TextKeys:
    """An index of texts; their bytes are kept one after the other."""

    def __init__(self) -> None:
        self.count = 0
        self.slots = np.zeros((1 << 10, 2), np.int64)
        self.starts = np.zeros(1, np.int64)
        self.text = np.zeros(0, np.uint8)

    @classmethod
    def of(cls, names: pa.Array) -> TextKeys:
        """An index that gives these names the codes from 0 on."""
        keys = cls()
        read = keys.read(names)
        keys.add(read, np.full(len(names), -1, np.int32), len(names))
        return keys

    def read(self, ids: pa.Array) -> tuple[Words, np.ndarray]:
        words = Words.of(ids)
        hashes = np.empty(len(ids), np.int64)
        in_threads(
            lambda part: hashing.hash_text(*words.part(part), hashes[part]),
            slices(len(ids)),
        )
        return words, hashes

    def find(
        self, keys: tuple[Words, np.ndarray], part: slice, codes: np.ndarray
    ) -> int:
        words, hashes = keys
        known = (self.slots, self.starts, self.text)
        return hashing.find_text(hashes[part], *words.part(part), *known, codes)

    def add(
        self, keys: tuple[Words, np.ndarray], codes: np.ndarray, num_new: int
    ) -> None:
        words, hashes = keys
        self.slots = _with_room(self.slots, self.count + num_new)
        self.starts = grown(self.starts, self.count + num_new + 1)
        added = int(np.diff(words.starts)[codes < 0].sum())
        self.text = grown(self.text, int(self.starts[self.count]) + added)
        known = (self.count, self.slots, self.starts, self.text)
        self.count = hashing.add_text(hashes, words.starts, words.text, *known, codes)

    def names(self) -> pa.Array:
        starts = self.starts[: self.count + 1].copy()
        text = self.text[: starts[-1]].copy()
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), self.count, buffers)


@dataclass(frozen=True, eq=False)
class Words:
    """Texts as kernels read them: word i is text[starts[i]:starts[i + 1]]."""

    starts: np.ndarray
    text: np.ndarray

    @classmethod
    def of(cls, ids: pa.Array) -> Words:
        words = ids.cast(pa.large_string())
        _, starts, text = words.buffers()
        starts = np.frombuffer(starts or b"", np.int64)
        starts = starts[words.offset : words.offset + len(words) + 1]
        return cls(_frozen(starts), _frozen(np.frombuffer(text or b"", np.uint8)))

    def part(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        return self.starts[part.start : part.stop + 1], self.text


def grown(array: np.ndarray, length: int) -> np.ndarray:
    """The array with room for `length` things; growth doubles, so it costs little."""
    if length <= len(array):
        return array
    larger = np.zeros(max(length, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def _bits(ids: pa.Array) -> tuple[np.ndarray, int]:
    lowest, highest = pc.min_max(ids).as_py().values() if len(ids) else (0, 0)
    met = NEGATIVE * (lowest < 0) | LARGE * (highest >= 2**63)
    wide = pa.uint64() if pa.types.is_uint64(ids.type) else pa.int64()
    return ids.cast(wide).to_numpy().view(np.int64), met


def _union(flags: list[int]) -> int:
    return int(np.bitwise_or.reduce(np.array(flags, np.int64)))


def _with_room(slots: np.ndarray, count: int) -> np.ndarray:
    if 2 * count <= len(slots):
        return slots
    larger = np.zeros((1 << (2 * count - 1).bit_length(), 2), np.int64)
    hashing.move_slots(slots, larger)
    return larger


def _frozen(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written, so that kernels meet one type of array."""
    view = array.view()
    view.flags.writeable = False
    return view
