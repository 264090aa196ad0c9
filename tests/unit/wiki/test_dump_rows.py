"""Rows of a dump are parsed exactly, wherever blocks end."""

import bz2
import gzip
import time

import dump_files
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import UserError
from unalike.wiki.dumps import files, sql
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


@settings(max_examples=60)
@given(rows=ROWS, block_size=st.sampled_from([1, 7, 64, 1 << 18]))
@pytest.mark.long
def test_rows_are_parsed_exactly(folder, rows, block_size):
    path = folder / "rows.sql"
    dump_files.pack(path, dump_files.table("things", COLUMNS, rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", block_size)
        numbers, texts = read(path, text="title", length="note")
    assert texts == [as_bytes(row[3]) for row in rows]
    assert numbers == [
        [row[0], -1 if row[1] is None else row[1], len(as_bytes(row[4]))]
        for row in rows
    ]


def written(rows):
    return dump_files.table("things", COLUMNS, rows)


def test_a_text_may_be_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 12)
    long = "'\\é" * (1 << 12)
    rows = [(1, 0, None, "short", None), (2, 0, None, long, long), (3, 0, 0.5, "", "")]
    path = dump_files.pack(tmp_path / "rows.sql.gz", written(rows))
    numbers, texts = read(path, text="title", length="note")
    assert numbers == [[1, 0, 0], [2, 0, len(long.encode())], [3, 0, 0]]
    assert texts == [b"short", long.encode(), b""]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_concatenated_compressed_streams_are_read_as_one_file(
    tmp_path, suffix, compress
):
    content = written([(number, 1, 0.1, f"t{number}", None) for number in range(50)])
    path = tmp_path / f"rows.sql{suffix}"
    path.write_bytes(
        compress(content[:300]) + compress(b"") + compress(content[300:]) + bytes(100)
    )
    numbers, _ = read(path)
    assert numbers == [[number, 1] for number in range(50)]


@pytest.mark.parametrize("damage", ["no stream", "cut"])
@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_a_damaged_second_stream_is_an_error(tmp_path, suffix, compress, damage):
    content = written([(number, 1, 0.1, f"t{number}", None) for number in range(50)])
    second = compress(content[300:])
    second = b"X" + second[1:] if damage == "no stream" else second[:-9]
    path = tmp_path / f"rows.sql{suffix}"
    path.write_bytes(compress(content[:300]) + second)
    with pytest.raises(UserError, match="is damaged"):
        read(path)


@pytest.mark.parametrize(
    "values",
    [
        b"\n(7,1,NULL,_binary 'a''b',''),\n(8,2,-1.5e-3,'c','');",
        b" (7, 1 , 0x41, 'a\\'b', NULL) , ( 8,2,3,'c',NULL );",
    ],
)
def test_other_formats_of_rows_are_parsed(tmp_path, values):
    path = tmp_path / "rows.sql"
    other = b"INSERT INTO `others` VALUES (1,2,3,4,5,6);\n"
    path.write_bytes(written([]) + other + b"INSERT INTO `things` VALUES" + values)
    assert read(path, text="title") == ([[7, 1], [8, 2]], [b"a'b", b"c"])


def test_columns_are_found_by_name(tmp_path):
    turned = dict(reversed(COLUMNS.items()))
    rows = [("note", "title", 0.5, 3, 4)]
    path = dump_files.pack(
        tmp_path / "rows.sql", dump_files.table("things", turned, rows)
    )
    assert read(path, text="title") == ([[3, 4]], [b"title"])
    assert read(path, text="note") == ([[3, 4]], [b"note"])


@pytest.mark.parametrize("values", [b"(,,,,),", b"(1,2,,,),", b"(1,2,NULL,'a',),"])
def test_empty_values_are_no_row(tmp_path, values):
    path = tmp_path / "rows.sql"
    path.write_bytes(
        written([]) + b"INSERT INTO `things` VALUES " + 200 * values + b"(1,2,3,'',4);"
    )
    with pytest.raises(UserError, match="no row of the 5 columns of things"):
        read(path)


def test_a_scan_stops_at_the_last_row_that_its_arrays_hold():
    block = np.frombuffer(b" (1),(2),(3);", np.uint8)
    insert, kinds = np.frombuffer(b"INSERT", np.uint8), np.array([sql.NUMBER])
    numbers, offsets = np.full((3, 1), -7), np.zeros(4, np.int64)
    arrays = (numbers[:2], offsets[:3], np.empty(len(block), np.uint8))
    status, _, _, rows = sql.scan(block, True, insert, kinds, *arrays)
    assert (status, rows) == (sql.INVALID, 2)
    assert numbers[:, 0].tolist() == [1, 2, -7]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_a_block_is_bounded_however_much_its_bytes_decompress_to(
    tmp_path, monkeypatch, suffix, compress
):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 16)
    path = tmp_path / f"zeros{suffix}"
    path.write_bytes(compress(b"a" * (1 << 24)) + compress(b"b" * 100))
    blocks = list(files.decompressed_blocks(path))
    assert max(len(block.content) for block in blocks) < 2 << 16
    assert sum(block.bytes_read for block in blocks) == path.stat().st_size
    joined = b"".join(block.content for block in blocks)
    assert joined == b"a" * (1 << 24) + b"b" * 100


@pytest.mark.parametrize("start", [b"", b"INSERT INTO `things` VALUES (1,2,3,'"])
def test_a_file_without_line_ends_is_an_error(tmp_path, monkeypatch, start):
    monkeypatch.setattr(sql, "MAX_ROW_BYTES", 1 << 20)
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 16)
    path = tmp_path / "rows.sql"
    path.write_bytes(written([]) + start + b"x" * (3 << 20))
    with pytest.raises(UserError, match="row or line of more than 1,048,576 bytes"):
        read(path)


def test_a_header_of_many_unfinished_tables_is_read_in_linear_time(tmp_path):
    path = tmp_path / "rows.sql"
    path.write_bytes(b"CREATE TABLE `things` ( " * (1 << 17))
    start = time.perf_counter()
    with pytest.raises(UserError, match="does not begin with CREATE TABLE"):
        read(path)
    assert time.perf_counter() - start < 20
