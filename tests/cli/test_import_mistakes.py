"""Errors of an import are one line with the file, the row and the value."""

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unalike.cli.main import main

EDGES = "source,target\na,b\nb,c\n"
NODES = "id,age,kind\na,1,x\nb,2,y\nc,3,x\n"
WITH_NODES = ["edges.csv", "--nodes", "nodes.csv", "--label", "kind"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text(EDGES)
    Path("nodes.csv").write_text(NODES)


def parquet(columns):
    """The bytes of a Parquet file."""
    file = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), file, compression="none")
    return file.getvalue().to_pybytes()


def error_line(capsys, arguments):
    """The error of an import that must fail and leave no files."""
    before = sorted(Path().iterdir())
    assert main(["import", *arguments, "--out", "deep/graph"]) == 1
    assert sorted(Path().iterdir()) == before
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.rstrip("\n").removeprefix("error: ")


NO_ENDING = (
    "edges.xlsx has a suffix of no known format; known are .csv, .csv.gz, .tsv, "
    ".tsv.gz, .txt, .txt.gz, .parquet, .pq."
)
EDGE_FILES = {
    "empty": ("e.csv", b"", "e.csv is empty."),
    "empty Parquet": ("e.parquet", b"", "e.parquet is empty."),
    "header only": ("e.csv", b"source,target\n", "e.csv has no rows."),
    "Parquet without rows": (
        "e.parquet",
        parquet({"u": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
        "e.parquet has no rows.",
    ),
    "one column": (
        "e.csv",
        b"source\na\n",
        "e.csv has one column only, 'source'; an edge needs two.",
    ),
    "repeated column": (
        "e.csv",
        b"a,b,a\n1,2,3\n",
        "e.csv has 2 columns called 'a'.",
    ),
    "not UTF-8": (
        "e.csv",
        b"source,target\na,b\n\nc,\xff\n",
        "e.csv, row 2 (line 4): 'c,\\xff' is not UTF-8.",
    ),
    "header not UTF-8": (
        "e.csv",
        b"so\xffurce,target\na,b\n",
        "e.csv, line 1: the text is not UTF-8.",
    ),
    "ragged": (
        "e.csv",
        b"source,target\na,b\nc,d,e\n",
        "e.csv, row 2 (line 3): 'c,d,e' has 3 columns; the first line has 2.",
    ),
    "too short": (
        "e.txt",
        b"1 2\n3\n",
        "e.txt, row 2 (line 2): '3' has 1 columns; the first line has 2.",
    ),
    "several blanks": (
        "e.txt",
        b"# aligned\n1   2\n3   4\n",
        "e.txt, line 2: several blanks between columns; leave one.",
    ),
    "source missing": (
        "e.csv",
        b"source,target\na,b\n,c\n",
        "e.csv, row 2 (line 3): the source is missing.",
    ),
    "target missing": (
        "e.parquet",
        parquet({"u": [1, 2], "v": [3, None]}),
        "e.parquet, row 2: the target is missing.",
    ),
    "id not a number": (
        "e.parquet",
        parquet({"u": [1.0, float("nan")], "v": [1, 2]}),
        "e.parquet, row 2: the source is missing.",
    ),
    "fraction": (
        "e.parquet",
        parquet({"u": [1.0, 2.5], "v": [1, 2]}),
        "e.parquet, row 2: the source 2.5 is not an integer.",
    ),
    "nested id": (
        "e.parquet",
        parquet({"u": [[1]], "v": [2]}),
        "e.parquet, row 1: the source is of the type list<element: int64>; "
        "ids are numbers or text.",
    ),
    "truncated gz": (
        "e.csv.gz",
        gzip.compress(os.urandom(9999).hex().encode())[:2000],
        "e.csv.gz is damaged: Compressed file ended before the end-of-stream marker "
        "was reached.",
    ),
    "not gz": (
        "e.csv.gz",
        b"source,target\na,b\n",
        "e.csv.gz is damaged: Not a gzipped file (b'so').",
    ),
    "unclosed quote": (
        "e.csv",
        b'source,target\na,b\n"c,d\n',
        "e.csv, row 2 (line 3): '\"c,d' has a quote that is never closed.",
    ),
    "unclosed quote in the last column": (
        "e.csv",
        b'source,target\na,b\nc,"d\ne,f\ng,h\n',
        "e.csv, row 2 (line 3): 'c,\"d e,f g,h' has a quote that is never closed.",
    ),
    "unclosed quote in a column that is not read": (
        "e.csv",
        b'source,target,note\na,b,\n\nc,d,"\ne,f,\n',
        "e.csv, row 2 (line 4): 'c,d,\" e,f,' has a quote that is never closed.",
    ),
    "unclosed quote in a compressed file": (
        "e.csv.gz",
        gzip.compress(b'source,target\na,b\nc,"d\n'),
        "e.csv.gz, row 2 (line 3): 'c,\"d' has a quote that is never closed.",
    ),
    "unclosed quote in the header": (
        "e.csv",
        b'source,"tar\nget",c\na,b\n',
        "e.csv, line 1: 'source,\"tar' has a quote that is not closed in this line.",
    ),
    "quote within an id before a ragged row": (
        "e.csv",
        b'source,target\na"b,c\nd\n',
        "e.csv, row 2 (line 3): 'd' has 1 columns; the first line has 2.",
    ),
    "CR line ends": (
        "e.csv",
        b"source,target\ra,b\rc\r",
        "e.csv, row 2 (line 3): 'c' has 1 columns; the first line has 2.",
    ),
    "long header field": (
        "e.csv",
        b"source," + b"t" * 200_000 + b"\na,b\n",
        "e.csv, line 1: field larger than field limit (131072).",
    ),
    "long line": (
        "e.csv.gz",
        gzip.compress(b"a" * 12_000_000),
        "e.csv.gz, line 1: it is longer than 8 MB; is this a text file?",
    ),
    "Parquet without columns": (
        "e.parquet",
        parquet({}),
        "e.parquet has no columns.",
    ),
    "unknown ending": ("edges.xlsx", b"PK", NO_ENDING),
}


@pytest.mark.parametrize("case", EDGE_FILES)
def test_an_invalid_edge_file_is_an_error(capsys, case):
    name, content, line = EDGE_FILES[case]
    Path(name).write_bytes(content)
    assert error_line(capsys, [name]) == line


def test_a_truncated_gz_file_is_an_error(capsys):
    compressed = gzip.compress(b"source,target\n" + b"a,b\n" * 99_999)
    Path("e.csv.gz").write_bytes(compressed[:-50])
    assert error_line(capsys, ["e.csv.gz"]) == (
        "e.csv.gz is damaged: Compressed file ended before the end-of-stream marker "
        "was reached."
    )


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_truncated_parquet_file_is_an_error(capsys, keep):
    content = parquet({"u": list(range(999)), "v": list(range(999))})
    Path("e.parquet").write_bytes(content[: int(keep * len(content))])
    line = error_line(capsys, ["e.parquet"])
    assert line.startswith("e.parquet is damaged or no Parquet file: Parquet magic")


def test_a_damaged_parquet_file_is_an_error(capsys):
    content = bytearray(parquet({"u": list(range(999)), "v": list(range(999))}))
    content[4:40] = b"\xff" * 36
    Path("e.parquet").write_bytes(content)
    line = error_line(capsys, ["e.parquet"])
    assert line.startswith("e.parquet is damaged or no Parquet file: ")


def test_missing_files_are_named(capsys):
    assert error_line(capsys, ["no.csv"]) == "There is no file no.csv."
    assert error_line(capsys, ["no/*.csv"]) == "No file matches 'no/*.csv'."
    Path("bare").mkdir()
    assert error_line(capsys, ["bare"]) == (
        "bare has no table; known are .csv, .csv.gz, .tsv, .tsv.gz, .txt, .txt.gz, "
        ".parquet, .pq."
    )


COLUMNS = {
    "source": (
        ["edges.csv", "--source", "sorce"],
        "edges.csv has no column 'sorce'. Did you mean 'source'? "
        "Its columns: source, target.",
    ),
    "target": (
        ["edges.csv", "--target", "xyz"],
        "edges.csv has no column 'xyz'. Its columns: source, target.",
    ),
    "id": (
        [*WITH_NODES, "--id", "idd"],
        "nodes.csv has no column 'idd'. Did you mean 'id'? Its columns: id, age, kind.",
    ),
    "label": (
        [*WITH_NODES[:3], "--label", "kid"],
        "nodes.csv has no column 'kid'. Did you mean 'kind'? "
        "Its columns: id, age, kind.",
    ),
    "features": (
        [*WITH_NODES, "--features", "age", "sex"],
        "nodes.csv has no column 'sex'. Its columns: id, age, kind.",
    ),
    "ignore": (
        [*WITH_NODES, "--ignore", "ages"],
        "nodes.csv has no column 'ages'. Did you mean 'age'? "
        "Its columns: id, age, kind.",
    ),
    "categories": (
        [*WITH_NODES, "--categories", "ages"],
        "nodes.csv has no column 'ages'. Did you mean 'age'? "
        "Its columns: id, age, kind.",
    ),
    "split": (
        [*WITH_NODES, "--split", "part"],
        "nodes.csv has no column 'part'. Its columns: id, age, kind.",
    ),
    "metric": (
        [*WITH_NODES, "--metric", "acuracy"],
        "No metric 'acuracy'. Did you mean 'accuracy'? Known: accuracy, roc-auc, "
        "average-precision, f1, macro-f1, balanced-accuracy.",
    ),
    "metric of two classes": (
        ["edges.csv", "--nodes", "nodes.csv", "--label", "age", "--metric", "roc-auc"],
        "--metric roc-auc needs 2 classes; the label 'age' has 3.",
    ),
    "label without nodes": (
        ["edges.csv", "--label", "kind"],
        "--label needs a node table; give it with --nodes.",
    ),
    "no edges": (
        [],
        "Name the tables of edges; 'unalike import --help' has an example.",
    ),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_an_unknown_column_or_metric_is_an_error(capsys, case):
    arguments, line = COLUMNS[case]
    assert error_line(capsys, arguments) == line


def nodes_with(row):
    return f"{NODES}{row}\n".encode()


NODE_FILES = {
    "empty": ("n.csv", b"", "n.csv is empty."),
    "no rows": ("n.csv", b"id,age,kind\n", "n.csv has no rows."),
    "unknown target": (
        "n.csv",
        b"id,kind\na,x\nb,y\n",
        "edges.csv, row 2 (line 3): the target 'c' (column 'target') is not in the "
        "node table; --unknown drop leaves such edges out.",
    ),
    "id missing": (
        "n.csv",
        nodes_with(",4,y"),
        "n.csv, row 4 (line 5): the node id is missing.",
    ),
    "id repeated": (
        "n.csv",
        nodes_with("b,4,y"),
        "n.csv, row 4 (line 5): the node id 'b' is a duplicate.",
    ),
    "feature infinite": (
        "n.parquet",
        parquet({"id": [*"abc"], "x": [1.0, float("inf"), 2.0], "kind": [*"xyx"]}),
        "n.parquet, row 2: the feature 'x' is inf, not a finite number; "
        "--ignore x leaves the column out.",
    ),
    "feature too large": (
        "n.parquet",
        parquet({"id": [*"abc"], "x": [1.0, 2.0, 1e300], "kind": [*"xyx"]}),
        "n.parquet, row 3: the feature 'x' is 1e+300, not a finite number; "
        "--ignore x leaves the column out.",
    ),
    "feature nested": (
        "n.parquet",
        parquet({"id": [*"abc"], "x y": [{"a": 1}] * 3, "kind": [*"xyx"]}),
        "n.parquet, row 1: the column 'x y' is of the type struct<a: int64>, which "
        "cannot be a feature; --ignore 'x y' leaves it out.",
    ),
    "label nested": (
        "n.parquet",
        parquet({"id": [*"abc"], "kind": [{"a": 1}] * 3}),
        "n.parquet, row 1: the label 'kind' is of the type struct<a: int64>; "
        "labels are numbers or text.",
    ),
    "label a fraction": (
        "n.parquet",
        parquet({"id": [*"abc"], "kind": [1.0, 2.5, None]}),
        "n.parquet, row 2: the label 'kind' 2.5 is not an integer.",
    ),
    "label a fraction in text": (
        "n.csv",
        b"id,kind\na,1\nb,\nc,2.5\n",
        "n.csv, row 3 (line 4): the label 'kind' 2.5 is not an integer.",
    ),
    "label of 29 digits": (
        "n.csv",
        b"id,kind\na,1\nb,2\nc,12345678901234567890123456789\n",
        "n.csv, row 3 (line 4): the label 'kind' 12345678901234567890123456789 "
        "is too large for 64 bits.",
    ),
    "label with an exponent": (
        "n.csv",
        b"id,kind\na,1\nb,2\nc,1e999999\n",
        "n.csv, row 3 (line 4): the label 'kind' 1e999999 is too large for 64 bits.",
    ),
    "unclosed quote": (
        "n.csv",
        b'id,kind,note\na,x,\nb,y,"\nc,x,\n',
        "n.csv, row 2 (line 3): 'b,y,\" c,x,' has a quote that is never closed.",
    ),
    "one class": (
        "n.csv",
        b"id,kind\na,x\nb,\nc,x\n",
        "The label 'kind' has one class only, 'x'; two are needed.",
    ),
    "no class": (
        "n.csv",
        b"id,kind\na,\nb,\nc,\n",
        "The label 'kind' has no value at all; two are needed.",
    ),
    "ragged": (
        "n.csv",
        nodes_with("d,4"),
        "n.csv, row 4 (line 5): 'd,4' has 2 columns; the first line has 3.",
    ),
}


@pytest.mark.parametrize("case", NODE_FILES)
def test_an_invalid_node_file_is_an_error(capsys, case):
    name, content, line = NODE_FILES[case]
    Path(name).write_bytes(content)
    arguments = ["edges.csv", "--nodes", name, "--label", "kind"]
    assert error_line(capsys, arguments) == line


def test_an_unknown_split_name_is_an_error(capsys):
    Path("n.csv").write_text("id,kind,part\na,x,train\nb,y,dev\nc,x,\n")
    arguments = ["edges.csv", "--nodes", "n.csv", "--label", "kind", "--split", "part"]
    assert error_line(capsys, arguments) == (
        "n.csv, row 2 (line 3): the split 'dev' is unknown; "
        "known are train, valid, val, validation, test."
    )


def test_line_numbers_count_blank_lines_and_quoted_line_ends(capsys):
    Path("n.csv").write_text('id,note,kind\na,"two\nlines",x\n\nb,n,y\n,n,y\n')
    arguments = ["edges.csv", "--nodes", "n.csv", "--label", "kind"]
    assert error_line(capsys, arguments) == (
        "n.csv, row 3 (line 6): the node id is missing."
    )


def test_an_existing_folder_is_not_changed(capsys):
    Path("taken").mkdir()
    Path("taken/keep").write_text("mine")
    assert main(["import", "edges.csv", "--out", "taken"]) == 1
    line = f"error: {Path('taken').absolute()} exists already; "
    assert capsys.readouterr().err == f"{line}name another folder or remove it.\n"
    assert list(Path("taken").iterdir()) == [Path("taken/keep")]


def test_a_missing_out_argument_is_an_error(capsys):
    assert main(["import", "edges.csv"]) == 1
    assert capsys.readouterr().err == (
        "error: Name the folder to write (--out); "
        "'unalike import --help' has an example.\n"
    )
