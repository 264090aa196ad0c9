"""Map node ids to consecutive integers with hash tables of int64 and of strings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, no_type_check

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.data.numba_utils import njit
from unalike.data.store import string_array, string_buffers
from unalike.errors import UserError
from unalike.parallel import even_slices, parallel_map

MAX_NODES = 2**31 - 1
DIRECT_TABLE_SIZE = 1 << 24
"""Integers below this are looked up without hashing; unused pages cost nothing."""

HAS_NEGATIVE, HAS_UINT64, NOT_INTEGER = 1, 2, 4
"""Flags of a batch of ids: one is below 0, above 2^63 - 1, or no integer."""


class IdIndex:
    """Index of node ids: integers until the first id that is none, then strings."""

    def __init__(self) -> None:
        self.index: IntegerIndex | StringIndex = IntegerIndex()

    def __len__(self) -> int:
        return len(self.index)

    def find(self, ids: pa.Array) -> np.ndarray:
        """Return the index of each id, -1 where it is unknown."""
        keys = self._parse(ids)
        return self.index.find_keys(keys)

    def add(self, ids: pa.Array) -> np.ndarray:
        """Return the index of each id; unknown ids are appended."""
        keys = self._parse(ids)
        indices = self.index.add_keys(keys)
        if len(self) > MAX_NODES:
            raise UserError(f"There are more than {MAX_NODES:,} different node ids.")
        return indices

    def __contains__(self, name: str) -> bool:
        """Whether a name is an id; text is none while all ids are integers."""
        return self.known_fraction(pa.array([name], pa.large_string())) > 0

    def known_fraction(self, ids: pa.Array) -> float:
        keys = self.index.parse(ids)
        if keys is None or not len(ids):
            return 0.0
        return float((self.index.find_keys(keys) >= 0).mean())

    def names(self) -> pa.Array:
        """Return the ids in the order of their indices."""
        return self.index.names()

    def _parse(self, ids: pa.Array) -> Any:
        keys = self.index.parse(ids)
        if keys is None:
            self.index = StringIndex.of(self.names())
            keys = self.index.parse(ids)
        return keys


class HashIndex(ABC):
    """Hash table from keys to 0, 1, 2, … in the order in which keys are added.

    A slot stores a key (or its hash) and its index plus 1; 0 marks an empty slot.
    """

    def __init__(self) -> None:
        self.count = 0
        self.slots = np.zeros((1 << 10, 2), np.int64)

    def __len__(self) -> int:
        return self.count

    @abstractmethod
    def parse(self, ids: pa.Array) -> Any:
        """Convert ids to keys of this table; None where they do not fit."""

    @abstractmethod
    def names(self) -> pa.Array:
        """Return the ids in the order of their indices."""

    @abstractmethod
    def _find(self, keys: Any, part: slice, indices: np.ndarray) -> int:
        """Write the index of each key of a slice; return how many are unknown."""

    @abstractmethod
    def _insert(self, keys: Any, indices: np.ndarray) -> None:
        """Append the keys whose index is -1."""

    def find_keys(self, keys: Any) -> np.ndarray:
        return self._search(keys)[0]

    def add_keys(self, keys: Any) -> np.ndarray:
        indices, num_new = self._search(keys)
        if num_new:
            if (needed := 2 * (self.count + num_new)) > len(self.slots):
                larger = np.zeros((1 << (needed - 1).bit_length(), 2), np.int64)
                rehash(self.slots, larger)
                self.slots = larger
            self._insert(keys, indices)
        return indices

    def _search(self, keys: Any) -> tuple[np.ndarray, int]:
        indices = np.empty(len(keys), np.int32)
        unknown = parallel_map(
            lambda part: self._find(keys, part, indices[part]), even_slices(len(keys))
        )
        return indices, sum(unknown)


class IntegerIndex(HashIndex):
    """Index of 64-bit integers, signed or unsigned but not both."""

    def __init__(self) -> None:
        super().__init__()
        self.flags = 0
        self.direct = np.zeros(DIRECT_TABLE_SIZE, np.int32)

    def parse(self, ids: pa.Array) -> np.ndarray | None:
        """Return the bits of each integer; None where these ids do not fit."""
        if pa.types.is_integer(ids.type):
            keys, flags = _as_int64(ids)
        else:
            text = StringKeys.of(ids)
            keys = np.empty(len(ids), np.int64)
            flags = reduce(
                or_,
                parallel_map(
                    lambda part: parse_integers(*text.part(part), keys[part]),
                    even_slices(len(ids)),
                ),
            )
        flags |= self.flags
        if flags & NOT_INTEGER or flags == HAS_NEGATIVE | HAS_UINT64:
            return None
        self.flags = flags
        return _readonly(keys)

    def names(self) -> pa.Array:
        names = np.zeros(self.count, np.int64)
        (small,) = self.direct.nonzero()
        names[self.direct[small] - 1] = small
        used = self.slots[self.slots[:, 1] > 0]
        names[used[:, 1] - 1] = used[:, 0]
        return pa.array(names.view(np.uint64) if self.flags & HAS_UINT64 else names)

    def _find(self, keys: np.ndarray, part: slice, indices: np.ndarray) -> int:
        return find_integers(keys[part], self.direct, self.slots, indices)

    def _insert(self, keys: np.ndarray, indices: np.ndarray) -> None:
        self.count = add_integers(keys, self.count, self.direct, self.slots, indices)


@dataclass(frozen=True, eq=False)
class StringKeys:
    """Strings as compiled loops read them, with their hashes."""

    offsets: np.ndarray
    data: np.ndarray
    hashes: np.ndarray

    @classmethod
    def of(cls, ids: pa.Array) -> StringKeys:
        """Take the buffers of an Arrow array; hashes are left unset."""
        offsets, data = string_buffers(ids)
        hashes = np.empty(len(ids), np.int64)
        return cls(_readonly(offsets), _readonly(data), hashes)

    def __len__(self) -> int:
        return len(self.hashes)

    def part(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets of a slice, and the data of all strings."""
        return self.offsets[part.start : part.stop + 1], self.data


class StringIndex(HashIndex):
    """Index of strings; their bytes are stored one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = np.zeros(1, np.int64)
        self.data = np.zeros(0, np.uint8)

    @classmethod
    def of(cls, names: pa.Array) -> StringIndex:
        index = cls()
        index.add(names)
        return index

    def find(self, names: pa.Array) -> np.ndarray:
        return self.find_keys(self.parse(names))

    def add(self, names: pa.Array) -> np.ndarray:
        return self.add_keys(self.parse(names))

    def parse(self, ids: pa.Array) -> StringKeys:
        keys = StringKeys.of(ids)
        parallel_map(
            lambda part: hash_strings(*keys.part(part), keys.hashes[part]),
            even_slices(len(keys)),
        )
        return keys

    def names(self) -> pa.Array:
        offsets = self.offsets[: self.count + 1].copy()
        return string_array(offsets, self.data[: offsets[-1]].copy())

    def _find(self, keys: StringKeys, part: slice, indices: np.ndarray) -> int:
        strings = (keys.hashes[part], *keys.part(part))
        return find_strings(strings, (self.slots, self.offsets, self.data), indices)

    def _insert(self, keys: StringKeys, indices: np.ndarray) -> None:
        new = indices < 0
        self.offsets = grow(self.offsets, self.count + int(new.sum()) + 1)
        num_bytes = int(np.diff(keys.offsets)[new].sum())
        self.data = grow(self.data, int(self.offsets[self.count]) + num_bytes)
        known = (self.slots, self.offsets, self.data)
        strings = (keys.hashes, keys.offsets, keys.data)
        self.count = add_strings(strings, self.count, known, indices)


def grow(array: np.ndarray, length: int) -> np.ndarray:
    """Return the array, doubled or more and filled by zeros if it is too short."""
    if length <= len(array):
        return array
    larger = np.zeros(max(length, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def _as_int64(ids: pa.Array) -> tuple[np.ndarray, int]:
    lowest, highest = pc.min_max(ids).as_py().values() if len(ids) else (0, 0)
    flags = HAS_NEGATIVE * (lowest < 0) | HAS_UINT64 * (highest >= 2**63)
    wide = pa.uint64() if pa.types.is_uint64(ids.type) else pa.int64()
    return ids.cast(wide).to_numpy().view(np.int64), flags


def _readonly(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that loops are compiled for one type of array."""
    view = array.view()
    view.flags.writeable = False
    return view


# Compiled loops of the hash tables (open addressing, linear probing).

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@njit()
@no_type_check
def first_slot(key, last):
    """Return the slot where the search for a key starts (Fibonacci hashing)."""
    mixed = np.uint64(key) * _GOLDEN
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(last))


@njit()
@no_type_check
def integer_slot(key, slots):
    """Return the slot of a key, or the empty slot where it belongs."""
    last = len(slots) - 1
    slot = first_slot(key, last)
    while slots[slot, 1] and slots[slot, 0] != key:
        slot = (slot + 1) & last
    return slot


@njit()
@no_type_check
def find_integers(keys, direct, slots, indices):
    """Write the index of each key, -1 for a new one; return how many are new."""
    new = 0
    for i in range(len(keys)):
        key = keys[i]
        if 0 <= key < len(direct):
            indices[i] = direct[key] - 1
        else:
            indices[i] = slots[integer_slot(key, slots), 1] - 1
        new += indices[i] < 0
    return new


@njit()
@no_type_check
def add_integers(keys, count, direct, slots, indices):
    """Give each key without an index the next one; return the new count."""
    for i in range(len(keys)):
        if indices[i] >= 0:
            continue
        key = keys[i]
        if 0 <= key < len(direct):
            if not direct[key]:
                count += 1
                direct[key] = count
            indices[i] = direct[key] - 1
            continue
        slot = integer_slot(key, slots)
        if not slots[slot, 1]:
            count += 1
            slots[slot, 0], slots[slot, 1] = key, count
        indices[i] = slots[slot, 1] - 1
    return count


@njit()
@no_type_check
def rehash(old, new):
    """Copy every used slot into a larger table."""
    last = len(new) - 1
    for i in range(len(old)):
        if old[i, 1]:
            slot = first_slot(old[i, 0], last)
            while new[slot, 1]:
                slot = (slot + 1) & last
            new[slot, 0], new[slot, 1] = old[i, 0], old[i, 1]


@njit()
@no_type_check
def hash_strings(offsets, data, hashes):
    """Compute the FNV-1a hash of each string."""
    for i in range(len(hashes)):
        mixed = _FNV_START
        for position in range(offsets[i], offsets[i + 1]):
            mixed = (mixed ^ np.uint64(data[position])) * _FNV_PRIME
        hashes[i] = np.int64(mixed)


# Strings are their hashes, offsets and bytes; known ones slots, offsets and bytes.


@njit()
@no_type_check
def string_slot(hashed, string, known):
    """Return the slot of a string, or the empty slot where it belongs."""
    slots, known_offsets, known_data = known
    last = len(slots) - 1
    slot = first_slot(hashed, last)
    while slots[slot, 1]:
        if slots[slot, 0] == hashed:
            first = known_offsets[slots[slot, 1] - 1]
            same = known_offsets[slots[slot, 1]] - first == len(string)
            i = 0
            while same and i < len(string):
                same = string[i] == known_data[first + i]
                i += 1
            if same:
                return slot
        slot = (slot + 1) & last
    return slot


@njit()
@no_type_check
def find_strings(strings, known, indices):
    """Write the index of each string, -1 for a new one; return how many are new."""
    hashes, offsets, data = strings
    new = 0
    for i in range(len(hashes)):
        string = data[offsets[i] : offsets[i + 1]]
        indices[i] = known[0][string_slot(hashes[i], string, known), 1] - 1
        new += indices[i] < 0
    return new


@njit()
@no_type_check
def add_strings(strings, count, known, indices):
    """Give each string without an index the next one; return the new count."""
    hashes, offsets, data = strings
    slots, known_offsets, known_data = known
    for i in range(len(hashes)):
        if indices[i] >= 0:
            continue
        string = data[offsets[i] : offsets[i + 1]]
        slot = string_slot(hashes[i], string, known)
        if not slots[slot, 1]:
            first = known_offsets[count]
            for position in range(len(string)):
                known_data[first + position] = string[position]
            count += 1
            known_offsets[count] = first + len(string)
            slots[slot, 0], slots[slot, 1] = hashes[i], count
        indices[i] = slots[slot, 1] - 1
    return count


# Compiled loops that parse integers from UTF-8 bytes.

_INT64_MIN_ABS = np.uint64(2**63)
_ZERO, _NINE, _MINUS = 48, 57, 45


@njit()
@no_type_check
def parse_integer(digits, negative):
    """Return the bits of an integer and its flag, 0 for a plain int64."""
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
@no_type_check
def parse_integers(offsets, data, keys):
    """Parse strings as 64-bit integers; return the union of their flags.

    Only the canonical form counts: no leading zero, no plus, no blank. Integers from
    2^63 to 2^64 - 1 are stored by their bits.
    """
    flags = 0
    for i in range(len(keys)):
        first, end = offsets[i], offsets[i + 1]
        negative = first < end and data[first] == _MINUS
        first += negative
        padded = first < end and data[first] == _ZERO and (end - first > 1 or negative)
        if first == end or padded:
            return NOT_INTEGER
        keys[i], flag = parse_integer(data[first:end], negative)
        flags |= flag
        if flag == NOT_INTEGER:
            return NOT_INTEGER
    return flags
