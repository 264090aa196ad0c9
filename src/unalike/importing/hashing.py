"""Hashing: the compiled loops of the id index, a table with open addressing.

A slot holds a key and, plus 1, the code that it stands for; 0 marks an empty slot.
"""

from __future__ import annotations

import numpy as np

from unalike.kernels.compiled import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@compiled()
def first_slot(key: int, last: int) -> np.int64:
    """Where the search for a key begins (Fibonacci hashing)."""
    mixed = np.uint64(key) * _GOLDEN
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(last))


@compiled()
def integer_slot(key: int, slots: np.ndarray) -> np.int64:
    """The slot that holds a key, or the empty one where it belongs."""
    last = len(slots) - 1
    at = first_slot(key, last)
    while slots[at, 1] and slots[at, 0] != key:
        at = (at + 1) & last
    return at


@compiled()
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


@compiled()
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


@compiled()
def move_slots(old: np.ndarray, new: np.ndarray) -> None:
    """Put every entry of a table into a larger one."""
    last = len(new) - 1
    for entry in range(len(old)):
        if old[entry, 1]:
            at = first_slot(old[entry, 0], last)
            while new[at, 1]:
                at = (at + 1) & last
            new[at, 0], new[at, 1] = old[entry, 0], old[entry, 1]


@compiled()
def hash_text(starts: np.ndarray, text: np.ndarray, hashes: np.ndarray) -> None:
    """A number for each text (FNV-1a)."""
    for i in range(len(hashes)):
        mixed = _FNV_START
        for at in range(starts[i], starts[i + 1]):
            mixed = (mixed ^ np.uint64(text[at])) * _FNV_PRIME
        hashes[i] = np.int64(mixed)


@compiled()
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


@compiled()
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


@compiled()
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
