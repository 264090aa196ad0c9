"""Scanner: the compiled loops that read `INSERT INTO … VALUES (…),(…);` from bytes.

A loop that meets the end of its bytes in the middle of a row answers MORE, and the row
is scanned again when more bytes have come; what is no row at all is WRONG.
"""

from __future__ import annotations

import numpy as np

from unalike.kernels.compiled import compiled

MORE, WRONG = -1, -2
SKIP, NUMBER, TEXT, LENGTH = 0, 1, 2, 3
"""What is kept of a column: nothing, a whole number, a text or how long it is."""

_QUOTE, _BACKSLASH, _UNDERSCORE = ord("'"), ord("\\"), ord("_")
_OPEN, _CLOSE, _COMMA, _SEMICOLON = ord("("), ord(")"), ord(","), ord(";")
_NEWLINE, _BLANK, _MINUS, _ZERO, _NINE = 10, 32, ord("-"), ord("0"), ord("9")
_VALUES, _NULL = np.frombuffer(b"VALUES", np.uint8), np.frombuffer(b"NULL", np.uint8)

_MEANT = np.arange(256, dtype=np.uint8)
_MEANT[[ord(letter) for letter in "0nrtbZ"]] = [0, 10, 13, 9, 8, 26]
"""What the byte after a backslash stands for."""


@compiled()
def skip_blanks(block: np.ndarray, at: int) -> int:
    """The next byte that is not white space."""
    while at < len(block) and block[at] <= _BLANK:
        at += 1
    return at


@compiled()
def read_quoted(
    block: np.ndarray, at: int, text: np.ndarray, length: int
) -> tuple[int, int]:
    """Write a quoted text as it is meant; returns its end and the new length."""
    last = len(block) - 1
    while at < last:
        byte = block[at]
        if byte == _BACKSLASH:
            at += 1
            byte = _MEANT[block[at]]
        elif byte == _QUOTE:
            if block[at + 1] != _QUOTE:
                return at + 1, length
            at += 1
        text[length] = byte
        length += 1
        at += 1
    return MORE, length


@compiled()
def read_bare(block: np.ndarray, at: int) -> tuple[int, int, bool]:
    """Read up to the next comma or bracket: the end, and the whole number if it is."""
    negative = block[at] == _MINUS
    first = at + negative
    value, whole = 0, True
    at = first
    while at < len(block):
        byte = block[at]
        if byte in (_COMMA, _CLOSE) or byte <= _BLANK:
            return at, -value if negative else value, whole and at > first
        whole = whole and _ZERO <= byte <= _NINE
        value = value * 10 + (byte - _ZERO)
        at += 1
    return MORE, 0, False


@compiled()
def skip_word(block: np.ndarray, at: int) -> int:
    """The quote after the name of a character set, as in `_binary 'text'`."""
    while at < len(block) and block[at] != _QUOTE:
        if block[at] in (_COMMA, _CLOSE):
            return WRONG
        at += 1
    return at if at < len(block) else MORE


@compiled()
def read_value(
    block: np.ndarray, at: int, kind: int, text: np.ndarray, length: int
) -> tuple[int, int, int]:
    """One value: its end, its number or length in bytes, and the new length of text.

    Where there is no value, the number is -1 and the text is empty.
    """
    if block[at] == _UNDERSCORE:
        at = skip_word(block, at)
        if at < 0:
            return at, 0, length
    if block[at] == _QUOTE:
        end, after = read_quoted(block, at + 1, text, length)
        if kind == NUMBER:
            end = min(end, WRONG)
        return end, after - length, after if kind == TEXT else length
    end, value, whole = read_bare(block, at)
    if block[at] == _NULL[0] and starts_with(block, at, _NULL):
        return end, -1 if kind == NUMBER else 0, length
    wrong = end >= 0 and (kind > NUMBER or (kind == NUMBER and not whole))
    return WRONG if wrong else end, value, length


@compiled()
def read_row(
    block: np.ndarray,
    at: int,
    kinds: np.ndarray,
    numbers: np.ndarray,
    text: np.ndarray,
    length: int,
) -> tuple[int, int]:
    """One row, from after its bracket; returns its end and the new length of text."""
    kept = 0
    for column in range(len(kinds)):
        at = skip_blanks(block, at)
        if at == len(block):
            return MORE, length
        kind = kinds[column]
        at, value, length = read_value(block, at, kind, text, length)
        if at < 0:
            return at, length
        if kind in (NUMBER, LENGTH):
            numbers[kept] = value
            kept += 1
        at = skip_blanks(block, at)
        if at == len(block):
            return MORE, length
        if block[at] != (_CLOSE if column == len(kinds) - 1 else _COMMA):
            return WRONG, length
        at += 1
    return at, length


@compiled()
def starts_with(block: np.ndarray, at: int, word: np.ndarray) -> bool:
    """Do these bytes stand here?"""
    return np.array_equal(block[at : at + len(word)], word)


@compiled()
def skip_line(block: np.ndarray, at: int) -> int:
    """The beginning of the next line."""
    while at < len(block):
        if block[at] == _NEWLINE:
            return at + 1
        at += 1
    return MORE


@compiled()
def enter(block: np.ndarray, at: int, insert: np.ndarray) -> tuple[int, bool]:
    """Go on from the beginning of a line: to the next, or into a statement's rows."""
    if len(block) - at <= len(insert) + len(_VALUES):
        # Too short to be the statement, unless more of it is to come.
        return skip_line(block, at), False
    if not starts_with(block, at, insert):
        return skip_line(block, at), False
    at += len(insert)
    if not starts_with(block, at, _VALUES):
        return WRONG, False
    return at + len(_VALUES), True


@compiled()
def scan(
    block: np.ndarray,
    inside: bool,
    insert: np.ndarray,
    kinds: np.ndarray,
    numbers: np.ndarray,
    starts: np.ndarray,
    text: np.ndarray,
) -> tuple[int, int, bool, int]:
    """Read all whole rows; returns the last end, where it stands, and their number.

    The first answer is MORE or WRONG. Row i gets numbers[i] and the bytes of `text`
    from starts[i] to starts[i + 1].
    """
    at, rows, length = 0, 0, 0
    while True:
        if not inside:
            end, inside = enter(block, at, insert)
            if end < 0:
                return end, at, False, rows
            at = end
            continue
        at = skip_blanks(block, at)
        if at == len(block):
            return MORE, at, True, rows
        byte = block[at]
        if byte in (_COMMA, _SEMICOLON):
            inside = byte == _COMMA
            at += 1
        elif byte == _OPEN:
            end, length = read_row(block, at + 1, kinds, numbers[rows], text, length)
            if end < 0:
                return end, at, True, rows
            at = end
            rows += 1
            starts[rows] = length
        else:
            return WRONG, at, True, rows
