"""Node id to integer index: hash tables of int64 and of strings (numba), integer parsing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.data.numba_utils import njit
from unalike.errors import UserError
from unalike.parallel import even_slices, parallel_map

# Hashing: the compiled loops of the id index, a table with open addressing.
#
# A slot holds a key and, plus 1, the code that it stands for; 0 marks an empty slot.


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@njit()
def first_slot(key: int, last: int) -> np.int64:
    """Where the search for a key begins (Fibonacci hashing)."""
    mixed = np.uint64(key) * _GOLDEN
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(last))


@njit()
def integer_slot(key: int, slots: np.ndarray) -> np.int64:
    """The slot that holds a key, or the empty one where it belongs."""
    last = len(slots) - 1
    at = first_slot(key, last)
    while slots[at, 1] and slots[at, 0] != key:
        at = (at + 1) & last
    return at


@njit()
def find_integers(
    keys: np.ndarray, direct: np.ndarray, slots: np.ndarray, codes: np.ndarray
) -> int:
    """Fill in the code of each key, -1 for a new one; returns how many are new."""
    new = 0
    for i in range(len(keys)):
        key = keys[i]
        if 0 <= key < len(direct):
            codes[i] = direct[key] - 1
        else:
            codes[i] = slots[integer_slot(key, slots), 1] - 1
        new += codes[i] < 0
    return new


@njit()
def add_integers(
    keys: np.ndarray,
    count: int,
    direct: np.ndarray,
    slots: np.ndarray,
    codes: np.ndarray,
) -> int:
    """Give each key without a code the next one; returns how many codes there are."""
    for i in range(len(keys)):
        if codes[i] >= 0:
            continue
        key = keys[i]
        if 0 <= key < len(direct):
            if not direct[key]:
                count += 1
                direct[key] = count
            codes[i] = direct[key] - 1
            continue
        at = integer_slot(key, slots)
        if not slots[at, 1]:
            count += 1
            slots[at, 0], slots[at, 1] = key, count
        codes[i] = slots[at, 1] - 1
    return count


@njit()
def rehash(old: np.ndarray, new: np.ndarray) -> None:
    """Put every entry of a table into a larger one."""
    last = len(new) - 1
    for entry in range(len(old)):
        if old[entry, 1]:
            at = first_slot(old[entry, 0], last)
            while new[at, 1]:
                at = (at + 1) & last
            new[at, 0], new[at, 1] = old[entry, 0], old[entry, 1]


@njit()
def hash_text(starts: np.ndarray, text: np.ndarray, hashes: np.ndarray) -> None:
    """A number for each text (FNV-1a)."""
    for i in range(len(hashes)):
        mixed = _FNV_START
        for at in range(starts[i], starts[i + 1]):
            mixed = (mixed ^ np.uint64(text[at])) * _FNV_PRIME
        hashes[i] = np.int64(mixed)


@njit()
def text_slot(
    hashed: int,
    word: np.ndarray,
    slots: np.ndarray,
    known_starts: np.ndarray,
    known_text: np.ndarray,
) -> np.int64:
    """The slot that holds a text, or the empty one where it belongs."""
    last = len(slots) - 1
    at = first_slot(hashed, last)
    while slots[at, 1]:
        if slots[at, 0] == hashed:
            first = known_starts[slots[at, 1] - 1]
            same = known_starts[slots[at, 1]] - first == len(word)
            i = 0
            while same and i < len(word):
                same = word[i] == known_text[first + i]
                i += 1
            if same:
                return at
        at = (at + 1) & last
    return at


@njit()
def find_text(
    hashes: np.ndarray,
    starts: np.ndarray,
    text: np.ndarray,
    slots: np.ndarray,
    known_starts: np.ndarray,
    known_text: np.ndarray,
    codes: np.ndarray,
) -> int:
    """Fill in the code of each text, -1 for a new one; returns how many are new."""
    new = 0
    for i in range(len(hashes)):
        word = text[starts[i] : starts[i + 1]]
        at = text_slot(hashes[i], word, slots, known_starts, known_text)
        codes[i] = slots[at, 1] - 1
        new += codes[i] < 0
    return new


@njit()
def add_text(
    hashes: np.ndarray,
    starts: np.ndarray,
    text: np.ndarray,
    count: int,
    slots: np.ndarray,
    known_starts: np.ndarray,
    known_text: np.ndarray,
    codes: np.ndarray,
) -> int:
    """Give each text without a code the next one; returns how many codes there are."""
    for i in range(len(hashes)):
        if codes[i] >= 0:
            continue
        word = text[starts[i] : starts[i + 1]]
        at = text_slot(hashes[i], word, slots, known_starts, known_text)
        if not slots[at, 1]:
            first = known_starts[count]
            for offset in range(len(word)):
                known_text[first + offset] = word[offset]
            count += 1
            known_starts[count] = first + len(word)
            slots[at, 0], slots[at, 1] = hashes[i], count
        codes[i] = slots[at, 1] - 1
    return count


# Spelling: compiled loops that read whole numbers from the bytes of text.


HAS_NEGATIVE, HAS_UINT64, NOT_INTEGER = 1, 2, 4
"""What some ids hold: one below 0, one above 2^63 - 1, one that is no number."""

_INT64_MIN_ABS = np.uint64(2**63)
_ZERO, _NINE, _MINUS = 48, 57, 45


@njit()
def parse_integer(digits: np.ndarray, negative: bool) -> tuple[np.int64, int]:
    """The bits of a number and what it is: NEGATIVE, LARGE, WORD or 0."""
    value = np.uint64(0)
    for digit in digits:
        if digit < _ZERO or digit > _NINE:
            return np.int64(0), NOT_INTEGER
        before = value
        value = value * np.uint64(10) + np.uint64(digit - _ZERO)
        if value // np.uint64(10) != before:
            return np.int64(0), NOT_INTEGER
    bits = np.int64(value)
    if negative:
        return (-bits, HAS_NEGATIVE) if value <= _INT64_MIN_ABS else (bits, NOT_INTEGER)
    return bits, HAS_UINT64 if bits < 0 else 0


@njit()
def parse_integers(starts: np.ndarray, text: np.ndarray, keys: np.ndarray) -> int:
    """Read texts as whole numbers of 64 bits; returns what was met among them.

    Only the plain spelling counts: no leading zero, no plus, no blank. Numbers from
    2^63 to 2^64 - 1 are kept by their bits.
    """
    met = 0
    for i in range(len(keys)):
        first, end = starts[i], starts[i + 1]
        negative = first < end and text[first] == _MINUS
        first += negative
        padded = first < end and text[first] == _ZERO and (end - first > 1 or negative)
        if first == end or padded:
            return NOT_INTEGER
        keys[i], kind = parse_integer(text[first:end], negative)
        met |= kind
        if kind == NOT_INTEGER:
            return NOT_INTEGER
    return met


# Keys: the two tables behind the id index, one of numbers and one of texts.


DIRECT_TABLE_SIZE = 1 << 24
"""Numbers from 0 to here are looked up without hashing; unused pages cost nothing."""


class IntegerIndex:
    """An index of whole numbers of 64 bits, signed or unsigned but not both."""

    def __init__(self) -> None:
        self.count = 0
        self.seen_flags = 0
        self.direct = np.zeros(DIRECT_TABLE_SIZE, np.int32)
        self.slots = np.zeros((1 << 10, 2), np.int64)

    def read(self, ids: pa.Array) -> np.ndarray | None:
        """The bits of each number; None where these ids do not fit in."""
        if pa.types.is_integer(ids.type):
            keys, met = _as_int64(ids)
        else:
            words = StringBuffer.of(ids)
            keys = np.empty(len(ids), np.int64)
            met = _union(
                parallel_map(
                    lambda part: parse_integers(*words.part(part), keys[part]),
                    even_slices(len(ids)),
                )
            )
        met |= self.seen_flags
        if met & NOT_INTEGER or met == HAS_NEGATIVE | HAS_UINT64:
            return None
        self.seen_flags = met
        return _readonly(keys)

    def find(self, keys: np.ndarray, part: slice, codes: np.ndarray) -> int:
        return find_integers(keys[part], self.direct, self.slots, codes)

    def add(self, keys: np.ndarray, codes: np.ndarray, num_new: int) -> None:
        self.slots = _rehash(self.slots, self.count + num_new)
        self.count = add_integers(keys, self.count, self.direct, self.slots, codes)

    def names(self) -> pa.Array:
        names = np.zeros(self.count, np.int64)
        (small,) = self.direct.nonzero()
        names[self.direct[small] - 1] = small
        used = self.slots[self.slots[:, 1] > 0]
        names[used[:, 1] - 1] = used[:, 0]
        return pa.array(
            names.view(np.uint64) if self.seen_flags & HAS_UINT64 else names
        )


class StringIndex:
    """An index of texts; their bytes are kept one after the other."""

    def __init__(self) -> None:
        self.count = 0
        self.slots = np.zeros((1 << 10, 2), np.int64)
        self.starts = np.zeros(1, np.int64)
        self.text = np.zeros(0, np.uint8)

    @classmethod
    def of(cls, names: pa.Array) -> StringIndex:
        """An index that gives these names the codes from 0 on."""
        keys = cls()
        read = keys.read(names)
        keys.add(read, np.full(len(names), -1, np.int32), len(names))
        return keys

    def read(self, ids: pa.Array) -> tuple[StringBuffer, np.ndarray]:
        words = StringBuffer.of(ids)
        hashes = np.empty(len(ids), np.int64)
        parallel_map(
            lambda part: hash_text(*words.part(part), hashes[part]),
            even_slices(len(ids)),
        )
        return words, hashes

    def find(
        self, keys: tuple[StringBuffer, np.ndarray], part: slice, codes: np.ndarray
    ) -> int:
        words, hashes = keys
        known = (self.slots, self.starts, self.text)
        return find_text(hashes[part], *words.part(part), *known, codes)

    def add(
        self, keys: tuple[StringBuffer, np.ndarray], codes: np.ndarray, num_new: int
    ) -> None:
        words, hashes = keys
        self.slots = _rehash(self.slots, self.count + num_new)
        self.starts = grow(self.starts, self.count + num_new + 1)
        added = int(np.diff(words.starts)[codes < 0].sum())
        self.text = grow(self.text, int(self.starts[self.count]) + added)
        known = (self.count, self.slots, self.starts, self.text)
        self.count = add_text(hashes, words.starts, words.text, *known, codes)

    def names(self) -> pa.Array:
        starts = self.starts[: self.count + 1].copy()
        text = self.text[: starts[-1]].copy()
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), self.count, buffers)


@dataclass(frozen=True, eq=False)
class StringBuffer:
    """Texts as kernels read them: word i is text[starts[i]:starts[i + 1]]."""

    starts: np.ndarray
    text: np.ndarray

    @classmethod
    def of(cls, ids: pa.Array) -> StringBuffer:
        words = ids.cast(pa.large_string())
        _, starts, text = words.buffers()
        starts = np.frombuffer(starts or b"", np.int64)
        starts = starts[words.offset : words.offset + len(words) + 1]
        return cls(_readonly(starts), _readonly(np.frombuffer(text or b"", np.uint8)))

    def part(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        return self.starts[part.start : part.stop + 1], self.text


def grow(array: np.ndarray, length: int) -> np.ndarray:
    """The array with room for `length` things; growth doubles, so it costs little."""
    if length <= len(array):
        return array
    larger = np.zeros(max(length, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def _as_int64(ids: pa.Array) -> tuple[np.ndarray, int]:
    lowest, highest = pc.min_max(ids).as_py().values() if len(ids) else (0, 0)
    met = HAS_NEGATIVE * (lowest < 0) | HAS_UINT64 * (highest >= 2**63)
    wide = pa.uint64() if pa.types.is_uint64(ids.type) else pa.int64()
    return ids.cast(wide).to_numpy().view(np.int64), met


def _union(flags: list[int]) -> int:
    return int(np.bitwise_or.reduce(np.array(flags, np.int64)))


def _rehash(slots: np.ndarray, count: int) -> np.ndarray:
    if 2 * count <= len(slots):
        return slots
    larger = np.zeros((1 << (2 * count - 1).bit_length(), 2), np.int64)
    rehash(slots, larger)
    return larger


def _readonly(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written, so that kernels meet one type of array."""
    view = array.view()
    view.flags.writeable = False
    return view


# IdIndex: numbers the ids of nodes, of any kind, in the order they are met.


MAX_NODES = 2**31 - 1


class IdIndex:
    """Ids and their codes. Numbers stay numbers until the first id that is none."""

    def __init__(self) -> None:
        self.index: IntegerIndex | StringIndex = IntegerIndex()

    def __len__(self) -> int:
        return self.index.count

    def find(self, ids: pa.Array) -> np.ndarray:
        """The code of each id, -1 where it is unknown."""
        return self._lookup(ids)[0]

    def add(self, ids: pa.Array) -> np.ndarray:
        """The code of each id; unknown ones get the next."""
        codes, keys, num_new = self._lookup(ids)
        if num_new:
            self.index.add(keys, codes, num_new)
        if len(self) > MAX_NODES:
            raise UserError(f"There are more than {MAX_NODES:,} different node ids.")
        return codes

    def holds(self, name: str) -> bool:
        """Is it an id? A text is none while all ids are numbers."""
        ids = pa.array([name], pa.large_string())
        return self.index.read(ids) is not None and bool(self.find(ids)[0] >= 0)

    def names(self) -> pa.Array:
        """The ids in the order of their codes."""
        return self.index.names()

    def _lookup(self, ids: pa.Array) -> tuple[np.ndarray, Any, int]:
        keys: Any = None
        if isinstance(self.index, IntegerIndex):
            keys = self.index.read(ids)
            if keys is None:
                self.index = StringIndex.of(self.names())
        if isinstance(self.index, StringIndex):
            keys = self.index.read(ids)
        codes = np.empty(len(ids), np.int32)
        new = parallel_map(
            lambda part: self.index.find(keys, part, codes[part]), even_slices(len(ids))
        )
        return codes, keys, sum(new)
