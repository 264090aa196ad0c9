"""Parse columns of lists: JSON text such as "[1, 4, 7]", or list columns of Parquet."""

from __future__ import annotations

import ast
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unalike.importing.tables import is_text

WORDS = pa.large_list(pa.large_string())
NUMBERS = pa.large_list(pa.float64())


def is_list(arrow_type: pa.DataType) -> bool:
    """Return whether an Arrow type is a list of numbers, booleans or text."""
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if not any(fits(arrow_type) for fits in kinds):
        return False
    item = arrow_type.value_type
    return types.is_primitive(item) or is_text(item) or types.is_null(item)


def parse_words(values: pa.Array) -> pa.LargeListArray | None:
    """Parse lists of anything as lists of text; None if a value is no list."""
    lists = _as_lists(values)
    if lists is None:
        return None
    if not isinstance(lists, list):
        return lists.cast(WORDS)
    texts = [None if one is None else [*map(_as_text, one)] for one in lists]
    return pa.array(texts, WORDS)


def parse_vectors(values: pa.Array) -> pa.LargeListArray | None:
    """Parse lists of numbers with fractions; None if a value is no such list."""
    lists = _as_lists(values)
    if lists is None:
        return None
    if not isinstance(lists, list):
        return lists.cast(NUMBERS) if types.is_floating(lists.type.value_type) else None
    kinds = {type(item) for one in lists if one is not None for item in one}
    # Whole numbers alone are names of categories, as in "[1, 4, 7]".
    if kinds == {int} or kinds - {int, float}:
        return None
    try:
        floats = [None if one is None else [*map(float, one)] for one in lists]
    except OverflowError:
        return None
    return pa.array(floats, NUMBERS)


def _as_lists(values: pa.Array) -> pa.Array | list[list[Any] | None] | None:
    """An Arrow array of lists as it is, text as Python lists."""
    if is_list(values.type) or types.is_null(values.type):
        return values.cast(WORDS) if types.is_null(values.type) else values
    encoded = values.dictionary_encode()
    known = [_parse_text(text) for text in encoded.dictionary.to_pylist()]
    if any(one is None for one in known):
        return None
    indices = encoded.indices.to_pylist()
    return [None if index is None else known[index] for index in indices]


def _parse_text(text: str) -> list[Any] | None:
    """A list in JSON, or as Python prints it; None if the text is neither."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    for parse, failures in (
        (json.loads, (ValueError, RecursionError)),
        (ast.literal_eval, (ValueError, SyntaxError, RecursionError, MemoryError)),
    ):
        try:
            items = parse(text)
        except failures:
            continue
        return items if all(map(_is_item, items)) else None
    return None


def _is_item(item: Any) -> bool:
    """Whether this is a number or text that can be stored, without half characters."""
    if isinstance(item, str):
        return not any("\ud800" <= character <= "\udfff" for character in item)
    return isinstance(item, int | float)


def _as_text(item: str | float | int) -> str:
    return item if isinstance(item, str) else json.dumps(item)


def vector_length(vectors: pa.LargeListArray) -> int | None:
    """The length of all vectors but empty ones; 0 without any, None if they differ."""
    lengths = {*pc.unique(pc.list_value_length(vectors)).to_pylist()} - {None, 0}
    if len(lengths) > 1 or vectors.flatten().null_count:
        return None
    return max(lengths, default=0)
