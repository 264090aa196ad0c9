"""Files of every format, split and packed in every way, give the same graph."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unalike import ImportOptions, UserError, import_graph, open_graph

EDGES = [("a", "b"), ("b", "c"), ("a", "d")]


def lines(delimiter, header=("source", "target")):
    rows = [header, *EDGES] if header else EDGES
    return "".join(f"{delimiter.join(row)}\n" for row in rows)


def entries(folder):
    stored = open_graph(folder)
    rows = stored.graph.adjacency
    names = stored.names.to_pylist()
    ends = zip(rows.row_indices.tolist(), rows.columns.tolist(), strict=True)
    return {(names[u], names[v]) for u, v in ends}


def read(tmp_path, *edges, **options):
    out = tmp_path / "graph"
    told = import_graph(
        [str(path) for path in edges],
        out=out,
        options=ImportOptions(directed=True, **options),
    )
    return entries(out), told


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [
        ("e.csv", ","),
        ("e.csv", ";"),
        ("e.CSV", ","),
        ("e.tsv", "\t"),
        ("e.txt", " "),
        ("e.txt", "\t"),
        ("e.txt", "|"),
    ],
)
def test_text_of_every_kind_plain_and_packed(tmp_path, name, delimiter):
    (tmp_path / name).write_text(lines(delimiter))
    assert read(tmp_path, tmp_path / name)[0] == set(EDGES)
    (tmp_path / "packed").mkdir()
    packed = tmp_path / "packed" / f"{name}.gz"
    packed.write_bytes(gzip.compress(lines(delimiter).encode()))
    assert read(tmp_path / "packed", packed)[0] == set(EDGES)


def test_a_first_line_that_may_be_an_edge(tmp_path):
    file = tmp_path / "e.csv"
    file.write_text(lines(",", header=None))
    with pytest.raises(UserError, match="a column 'a', which is a node too; --header"):
        read(tmp_path, file)
    assert read(tmp_path, file, header="no")[0] == set(EDGES)


def test_a_header_that_is_said_to_be_one(tmp_path):
    file = tmp_path / "e.csv"
    file.write_text("a,b\na,c\n")
    assert read(tmp_path, file, header="yes")[0] == {("a", "c")}
    file.write_text("1,2\n1,3\n")
    assert read(tmp_path / "numbers", file, header="yes")[0] == {(1, 3)}
    assert read(tmp_path / "rows", file)[0] == {(1, 2), (1, 3)}


def test_packed_in_several_members(tmp_path):
    first, rest = lines(",")[:20].encode(), lines(",")[20:].encode()
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(first) + gzip.compress(rest))
    assert read(tmp_path, tmp_path / "e.csv.gz")[0] == set(EDGES)


@pytest.mark.parametrize(
    "given", ["parts", "parts/*.*", "parts/part-?.csv parts/p.pq"]
)
def test_folders_patterns_and_lists_of_files(tmp_path, given):
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "part-0.csv").write_text("u,v\na,b\n")
    (parts / "part-1.csv").write_text("u,v\nb,c\n")
    pq.write_table(pa.table({"u": ["a"], "v": ["d"]}), parts / "p.pq")
    hidden = () if "*" in given else ("_SUCCESS", ".crc.csv", "notes.md")
    for name in hidden:
        (parts / name).write_text("not a table")
    found, told = read(tmp_path, *(tmp_path / name for name in given.split()))
    assert found == set(EDGES)
    assert told.edges == 3
    files = open_graph(tmp_path / "graph").about["provenance"]["edges"]
    assert sorted(file["rows"] for file in files) == [1, 1, 1]


def test_a_first_line_of_numbers_is_no_header(tmp_path):
    (tmp_path / "e.txt").write_text("# comment\n% another\n\n1 2\n2 3\n")
    found, told = read(tmp_path, tmp_path / "e.txt")
    assert found == {(1, 2), (2, 3)}
    note = f"{tmp_path / 'e.txt'} has no header; its columns are called 1, 2."
    assert told.notes == [note]


def test_blanks_after_the_last_number_are_no_header(tmp_path):
    (tmp_path / "e.txt").write_text("1 2 \n2 3 \n")
    assert read(tmp_path, tmp_path / "e.txt")[0] == {(1, 2), (2, 3)}


def test_byte_order_mark_windows_lines_blank_lines_quotes_and_blanks(tmp_path):
    text = '\ufeffsource,target,"why, so"\r\n"a", b,"x\r\ny"\r\n\r\nb ,c,\r\na,d,z\r\n'
    (tmp_path / "e.csv").write_bytes(text.encode())
    assert read(tmp_path, tmp_path / "e.csv")[0] == set(EDGES)


@pytest.mark.parametrize(
    ("header", "options", "swapped"),
    [
        ("weight,to,from", {}, True),
        ("x,DST,Src", {}, True),
        ("id1,id2,x", {}, False),
        ("one,two,three", {}, False),
        ("one,two,three", {"source": "two", "target": "one"}, True),
        ("one,two,three", {"source": "two"}, True),
        ("x,v,u", {"source": "u"}, True),
        ("x,v,u", {"target": "v"}, True),
    ],
)
def test_ends_are_guessed_by_name_then_by_place(tmp_path, header, options, swapped):
    row = {"x": "0", "weight": "0", "three": "0"}
    names = header.split(",")
    ends = iter(("b", "a") if swapped else ("a", "b"))
    values = [row.get(name) or next(ends) for name in names]
    (tmp_path / "e.csv").write_text(f"{header}\n{','.join(values)}\n")
    assert read(tmp_path, tmp_path / "e.csv", **options)[0] == {("a", "b")}


def test_one_row_group_and_many_give_the_same(tmp_path):
    table = pa.table({"source": list(range(100)), "target": list(range(100, 0, -1))})
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=7)
    import_graph([tmp_path / "one.parquet"], out=tmp_path / "one")
    import_graph([tmp_path / "many.parquet"], out=tmp_path / "many")
    assert entries(tmp_path / "one") == entries(tmp_path / "many")


def test_an_empty_part_among_others_is_no_matter(tmp_path):
    pq.write_table(pa.table({"u": ["a"], "v": ["b"]}), tmp_path / "1.parquet")
    empty = pa.table({"u": pa.array([], pa.string()), "v": pa.array([], pa.string())})
    pq.write_table(empty, tmp_path / "0.parquet")
    assert read(tmp_path, tmp_path / "0.parquet", tmp_path / "1.parquet")[0]
    with pytest.raises(UserError, match=r"0\.parquet has no rows\."):
        import_graph([tmp_path / "0.parquet"], out=tmp_path / "none")
