"""Files of all formats, split or compressed, give the same graph."""

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
    endpoints = zip(rows.row_indices.tolist(), rows.indices.tolist(), strict=True)
    return {(names[u], names[v]) for u, v in endpoints}


def read(tmp_path, *edges, **options):
    out = tmp_path / "graph"
    summary = import_graph(
        [str(path) for path in edges],
        out=out,
        options=ImportOptions(directed=True, **options),
    )
    return entries(out), summary


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
def test_text_files_are_read_plain_and_compressed(tmp_path, name, delimiter):
    (tmp_path / name).write_text(lines(delimiter))
    assert read(tmp_path, tmp_path / name)[0] == set(EDGES)
    (tmp_path / "compressed").mkdir()
    compressed = tmp_path / "compressed" / f"{name}.gz"
    compressed.write_bytes(gzip.compress(lines(delimiter).encode()))
    assert read(tmp_path / "compressed", compressed)[0] == set(EDGES)


def test_a_first_line_that_may_be_an_edge(tmp_path):
    file = tmp_path / "e.csv"
    file.write_text(lines(",", header=None))
    with pytest.raises(UserError, match="a column 'a', which is a node too; --header"):
        read(tmp_path, file)
    assert read(tmp_path, file, header="no")[0] == set(EDGES)


def test_a_header_can_be_set_by_option(tmp_path):
    file = tmp_path / "e.csv"
    file.write_text("a,b\na,c\n")
    assert read(tmp_path, file, header="yes")[0] == {("a", "c")}
    file.write_text("1,2\n1,3\n")
    assert read(tmp_path / "numbers", file, header="yes")[0] == {(1, 3)}
    assert read(tmp_path / "rows", file)[0] == {(1, 2), (1, 3)}


def test_a_gz_file_may_have_several_members(tmp_path):
    first, rest = lines(",")[:20].encode(), lines(",")[20:].encode()
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(first) + gzip.compress(rest))
    assert read(tmp_path, tmp_path / "e.csv.gz")[0] == set(EDGES)


@pytest.mark.parametrize("given", ["parts", "parts/*.*", "parts/part-?.csv parts/p.pq"])
def test_folders_globs_and_lists_of_files_are_read(tmp_path, given):
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "part-0.csv").write_text("u,v\na,b\n")
    (parts / "part-1.csv").write_text("u,v\nb,c\n")
    pq.write_table(pa.table({"u": ["a"], "v": ["d"]}), parts / "p.pq")
    hidden = () if "*" in given else ("_SUCCESS", ".crc.csv", "notes.md")
    for name in hidden:
        (parts / name).write_text("not a table")
    edges, summary = read(tmp_path, *(tmp_path / name for name in given.split()))
    assert edges == set(EDGES)
    assert summary.edges == 3
    files = open_graph(tmp_path / "graph").metadata["provenance"]["edges"]
    assert sorted(file["rows"] for file in files) == [1, 1, 1]


def test_a_first_line_of_numbers_is_no_header(tmp_path):
    (tmp_path / "e.txt").write_text("# comment\n% another\n\n1 2\n2 3\n")
    edges, summary = read(tmp_path, tmp_path / "e.txt")
    assert edges == {(1, 2), (2, 3)}
    note = f"{tmp_path / 'e.txt'} has no header; its columns are called 1, 2."
    assert summary.notes == [note]


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
def test_source_and_target_are_guessed_by_name_then_by_position(
    tmp_path, header, options, swapped
):
    row = {"x": "0", "weight": "0", "three": "0"}
    names = header.split(",")
    endpoints = iter(("b", "a") if swapped else ("a", "b"))
    values = [row.get(name) or next(endpoints) for name in names]
    (tmp_path / "e.csv").write_text(f"{header}\n{','.join(values)}\n")
    assert read(tmp_path, tmp_path / "e.csv", **options)[0] == {("a", "b")}


def test_one_row_group_and_many_give_the_same(tmp_path):
    table = pa.table({"source": list(range(100)), "target": list(range(100, 0, -1))})
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=7)
    import_graph([tmp_path / "one.parquet"], out=tmp_path / "one")
    import_graph([tmp_path / "many.parquet"], out=tmp_path / "many")
    assert entries(tmp_path / "one") == entries(tmp_path / "many")


def test_an_empty_file_among_others_is_skipped(tmp_path):
    pq.write_table(pa.table({"u": ["a"], "v": ["b"]}), tmp_path / "1.parquet")
    empty = pa.table({"u": pa.array([], pa.string()), "v": pa.array([], pa.string())})
    pq.write_table(empty, tmp_path / "0.parquet")
    assert read(tmp_path, tmp_path / "0.parquet", tmp_path / "1.parquet")[0]
    with pytest.raises(UserError, match=r"0\.parquet has no rows\."):
        import_graph([tmp_path / "0.parquet"], out=tmp_path / "none")


def imported_names(tmp_path, name, content, **options):
    (tmp_path / name).write_bytes(content)
    import_graph([tmp_path / name], out=tmp_path / "graph", **options)
    stored = open_graph(tmp_path / "graph")
    return stored.names.to_pylist(), stored.graph.num_edges


TEXTS = {
    "CR line ends": ("e.csv", b"source,target\ra,b\rb,c\r"),
    "a BOM and a blank line": ("e.csv", b"\xef\xbb\xbf\nsource,target\na,b\nb,c\n"),
    "a BOM before a comment": ("e.txt", b"\xef\xbb\xbf# u v\n# x\nu\tv\na\tb\nb\tc\n"),
    "no line end": ("e.csv", b"source,target\na,b\nb,c"),
    "blank lines at the end": ("e.csv", b"source,target\na,b\nb,c\n\n\n"),
    "quoted line ends": ("e.csv", b'source,target,x\na,b,"1\n2\n"\nb,c,"\r"\n'),
    "a closed quote at the end": ("e.csv", b'source,target\na,b\nb,"c"'),
}


@pytest.mark.parametrize("case", TEXTS)
def test_unusual_text_files_have_the_same_rows(tmp_path, case):
    assert imported_names(tmp_path, *TEXTS[case]) == (["a", "b", "c"], 2)


def test_whitespace_of_unicode_does_not_make_another_node(tmp_path):
    content = "source,target\na\u00a0,b\n\u2003b,a\na,c\n".encode()
    assert imported_names(tmp_path, "e.csv", content) == (["a", "b", "c"], 2)


def test_a_quote_within_an_id_is_a_character(tmp_path):
    content = b'source,target\na"b,c\nc,d\n'
    assert imported_names(tmp_path, "e.csv", content) == (['a"b', "c", "d"], 2)
