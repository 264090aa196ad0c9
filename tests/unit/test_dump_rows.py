"""Rows of a dump come back as they went in, wherever blocks end."""

import bz2
import gzip

import dump_files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import UserError
from unalike.wiki.dumps import unpacking
from unalike.wiki.dumps.sql import SqlTable

COLUMNS = {
    "id": "int",
    "kind": "int",
    "random": "double",
    "title": "varbinary(255)",
    "note": "varbinary(32)",
}
ROWS = st.lists(
    st.tuples(
        st.integers(-(2**62), 2**62),
        st.none() | st.integers(0, 15),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.binary(max_size=40) | st.text("a'\\\n,();é中\0\"", max_size=20),
        st.none() | st.text("'),(\\é", max_size=10),
    ),
    max_size=30,
)


def read(path, **wanted):
    table = SqlTable.open(path, "things")
    numbers, texts = [], []
    for rows in table.rows(["id", "kind"], **wanted):
        numbers += rows.numbers.tolist()
        texts += rows.text.cast("large_binary").to_pylist()
    return numbers, texts


def as_bytes(text):
    return text.encode() if isinstance(text, str) else text or b""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, piece=st.sampled_from([1, 7, 64, 1 << 18]), suffix=st.just(".sql"))
def test_rows_come_back(folder, rows, piece, suffix):
    path = folder / f"rows{suffix}"
    dump_files.pack(path, dump_files.table("things", COLUMNS, rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacking, "BLOCK", piece)
        patch.setattr(unpacking, "PIECE", piece)
        numbers, texts = read(path, text="title", length="note")
    assert texts == [as_bytes(row[3]) for row in rows]
    assert numbers == [
        [row[0], -1 if row[1] is None else row[1], len(as_bytes(row[4]))]
        for row in rows
    ]
