"""Values: a column of a batch as clean ids, or as clean text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.importing.batch import Batch

_BLANKS = (9, 32)


def is_text(kind: pa.DataType) -> bool:
    """Does a column of this type hold text?"""
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def read_ids(batch: Batch, column: str, what: str) -> pa.Array:
    """Ids as whole numbers or trimmed texts, none of them missing."""
    ids = batch.column(column)
    if pa.types.is_floating(ids.type):
        ids = whole_numbers(batch, column, what)
    elif is_text(ids.type):
        ids = trimmed(ids)
    elif not (pa.types.is_integer(ids.type) or pa.types.is_null(ids.type)):
        raise batch.wrong(
            0, f"the {what} is of the type {ids.type}; ids are numbers or text."
        )
    missing = first_missing(ids)
    if missing >= 0:
        raise batch.wrong(missing, f"the {what} is missing.")
    return ids


def whole_numbers(batch: Batch, column: str, what: str) -> pa.Array:
    """Numbers with a decimal point as whole numbers; not-a-number becomes missing."""
    numbers = batch.column(column).cast(pa.float64())
    values = numbers.to_numpy(zero_copy_only=False)
    known = ~np.isnan(values)
    broken = known & (values != np.floor(values)) | np.isinf(values)
    if broken.any():
        row = int(broken.argmax())
        raise batch.wrong(row, f"the {what} {values[row]:g} is not a whole number.")
    whole = np.where(known, values, 0).astype(np.int64)
    return pa.array(whole, mask=~known)


def trimmed(values: pa.Array) -> pa.Array:
    """Values as text without blanks around it."""
    text = values.cast(pa.large_string())
    held = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    if any((held == blank).any() for blank in _BLANKS):
        return pc.utf8_trim_whitespace(text)
    return text


def read_text(values: pa.Array) -> pa.Array:
    """Values of any kind as trimmed text; what is empty is missing."""
    text = trimmed(values)
    return pc.if_else(pc.equal(text, ""), None, text)


def read_values(batch: Batch, column: str) -> pa.Array:
    """Values as they are, and text as `read_text` gives it."""
    values = batch.column(column)
    return read_text(values) if is_text(values.type) else values


def first_missing(ids: pa.Array) -> int:
    """The first id that is not there, null or empty; -1 if all are."""
    if ids.null_count:
        return pc.index(ids.is_null(), True).as_py()
    return pc.index(ids, "").as_py() if is_text(ids.type) else -1
