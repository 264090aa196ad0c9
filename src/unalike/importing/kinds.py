"""Kinds: the ways a column of a table can be read as features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unalike.importing.values import is_text

CATEGORY = "category"

_DAY = 86_400_000_000
_MOMENTS = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


def as_boolean(values: pa.Array) -> pa.Array | None:
    """True and false, or these words in any case."""
    if types.is_boolean(values.type):
        return values.cast(pa.float64())
    words = pc.utf8_lower(values.cast(pa.large_string()))
    known = pc.is_in(words, value_set=pa.array(["true", "false", None], words.type))
    if not pc.all(known, min_count=0).as_py():
        return None
    return pc.equal(words, "true").cast(pa.float64())


def as_number(values: pa.Array) -> pa.Array | None:
    """Numbers, or texts that all spell one."""
    return _cast(values, pa.float64())


def as_date(values: pa.Array) -> pa.Array | None:
    """Dates and moments as days since the start of 1970; as text in ISO 8601."""
    for moment in _MOMENTS:
        found = _cast(values, moment)
        if found is not None:
            return pc.divide(found.cast(pa.int64()).cast(pa.float64()), float(_DAY))
    return None


READERS: dict[str, Callable[[pa.Array], pa.Array | None]] = {
    "boolean": as_boolean,
    "numeric": as_number,
    "date": as_date,
}
"""How each kind becomes one number for each row; None where the values do not fit."""

_POSSIBLE: tuple[tuple[Callable[[pa.DataType], bool], tuple[str, ...]], ...] = (
    (is_text, (*READERS, CATEGORY)),
    (types.is_null, (*READERS, CATEGORY)),
    (types.is_boolean, ("boolean", CATEGORY)),
    (types.is_integer, ("numeric", CATEGORY)),
    (types.is_floating, ("numeric", CATEGORY)),
    (types.is_decimal, ("numeric", CATEGORY)),
    (types.is_date, ("date", CATEGORY)),
    (types.is_timestamp, ("date", CATEGORY)),
)


def possible_kinds(kind: pa.DataType) -> tuple[str, ...]:
    """The kinds a type of column may be read as, the narrowest first."""
    return next((kinds for fits, kinds in _POSSIBLE if fits(kind)), ())


def numbers(kind: str, values: pa.Array) -> np.ndarray | None:
    """One number for each value, NaN where it is missing; None if they do not fit."""
    read = READERS[kind](values)
    return None if read is None else read.to_numpy(zero_copy_only=False)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return pc.cast(values, kind, safe=is_text(values.type))
    except pa.ArrowInvalid:
        return None
