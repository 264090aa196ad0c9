"""The command `unalike import`: what it prints, checks, and leaves when it is ended."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from command_server import command

from unalike import ImportOptions, import_graph, open_graph
from unalike.cli.main import main

EDGES = "from,to\na,b\nb,a\nc,c\na,c\na,zz\n"
NODES = """id,age,town,kind,part
a,1.5,Oslo,x,train
b,2,Bonn,y,valid
c,0,Oslo,x,test
d,4,,,
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("edges.csv").write_text(EDGES)
    Path("nodes.csv").write_text(NODES)


COMMAND = ["import", "edges.csv", "--nodes", "nodes.csv", "--label", "kind"]
COMMAND += ["--features", "age", "town", "--unknown", "drop", "--out", "graph"]


def test_the_summary_as_a_table(capsys):
    assert main([*COMMAND, "--split", "part"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:-2] == [
        ["nodes", "4"],
        ["edges", "3", "undirected"],
        ["merged", "repeats", "1"],
        ["self-loops", "1"],
        ["isolated", "nodes", "1"],
        ["dropped", "edges", "1"],
        ["features", "3", "(1", "numeric,", "1", "scaled,", "2", "one-hot),", "dense"],
        ["classes", "2"],
        ["x", "2"],
        ["y", "1"],
        ["unlabelled", "1"],
        ["splits", "1"],
        ["first", "train", "1,", "valid", "1,", "test", "1"],
    ]
    assert lines[-2][:3] == ["size", "on", "disk"]
    assert lines[-1][0] == "time"


def test_the_summary_as_json(capsys):
    assert main([*COMMAND, "--directed", "--splits", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["seconds"] > 0
    assert result["edges_per_second"] == pytest.approx(5 / result["seconds"])
    assert result["bytes"] == sum(
        file.stat().st_size for file in Path("graph").iterdir()
    )
    del result["seconds"], result["edges_per_second"], result["bytes"]
    assert result == {
        "folder": "graph",
        "nodes": 4,
        "edges": 4,
        "directed": True,
        "repeats": 0,
        "loops": 1,
        "isolated": 1,
        "dropped": 1,
        "features": 3,
        "one_hot_columns": 2,
        "scaled_columns": 1,
        "sparse": False,
        "classes": [{"name": "x", "nodes": 2}, {"name": "y", "nodes": 1}],
        "label_range": None,
        "unlabelled": 1,
        "splits": [{"train": 1, "valid": 0, "test": 2}] * 2,
        "notes": [],
    }


def test_many_classes_are_not_all_shown(capsys):
    rows = "".join(f"{i},[c{i:02}]\n" for i in range(40))
    Path("many.csv").write_text(f"id,kind\n{rows}")
    Path("e.txt").write_text("1 2\n")
    arguments = ["e.txt", "--nodes", "many.csv", "--label", "kind", "--out", "graph"]
    assert main(["import", *arguments]) == 0
    out = capsys.readouterr().out
    assert out.startswith("note: e.txt has no header; its columns are called 1, 2.\n")
    assert "[c09]" in out
    assert "[c10]" not in out
    assert "30 more" in out


def test_a_stored_graph_is_verified(capsys):
    main(COMMAND)
    capsys.readouterr()
    assert main(["import", "--verify", "graph"]) == 0
    line = "graph is intact: 7 arrays, 4 nodes, 3 edges.\n"
    assert capsys.readouterr().out == line
    assert main(["import", "--verify", "graph", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "folder": "graph",
        "arrays": 7,
        "intact": True,
    }
    with Path("graph/columns.npy").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    assert main(["import", "--verify", "graph"]) == 1
    line = "error: graph: the array 'columns' is damaged (sha256 differs).\n"
    assert capsys.readouterr().err == line
    assert main(["import", "--verify", "nowhere"]) == 1
    line = "error: nowhere is not a stored graph: it has no graph.json.\n"
    assert capsys.readouterr().err == line


def test_directed_and_undirected_exclude_each_other(capsys):
    assert main([*COMMAND, "--directed", "--undirected"]) == 2
    assert "not allowed together" in capsys.readouterr().err
    assert main([*COMMAND, "--undirected"]) == 0
    assert not open_graph(Path("graph")).graph.directed


def test_help_has_an_example_that_works(capsys):
    assert main(["import", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    example = "unalike import edges.csv --nodes people.csv --label job --out people"
    assert f"Example: {example}" in out
    Path("edges.csv").write_text("source,target\n1,2\n2,3\n")
    Path("people.csv").write_text("id,job,age\n1,cook,30\n2,smith,40\n3,cook,50\n")
    assert main(example.split()[1:]) == 0


def start(*arguments, **options):
    """The command in a process of its own."""
    words = [command(), "import", *arguments]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, **options)


def begun(process, pattern=".graph.*.partial"):
    """Wait until the process has begun to write."""
    while process.poll() is None and not list(Path().glob(pattern)):
        time.sleep(0.002)
    assert process.poll() is None


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file that takes a while to import."""
    path = tmp_path_factory.mktemp("large") / "large.csv"
    with path.open("w") as file:
        file.write("source,target\n")
        for first in range(0, 2_000_000, 1000):
            file.writelines(f"n{i},m{i}\n" for i in range(first, first + 1000))
    return str(path)


def test_an_interrupt_leaves_no_files(large):
    process = start(large, "--out", "graph")
    begun(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == "error: interrupted; finished results are saved.\n"
    assert not list(Path().glob("*graph*"))


def test_a_killed_import_leaves_no_graph_and_the_next_one_removes_its_files(
    large, capsys
):
    process = start(large, "--out", "graph")
    begun(process)
    process.kill()
    process.communicate()
    assert not Path("graph").exists()
    assert len(list(Path().glob(".graph.*.partial"))) == 1
    assert main(["import", "edges.csv", "--out", "graph"]) == 0
    assert not list(Path().glob(".graph*"))


@pytest.mark.parametrize("limit", [1000, 800_050])
@pytest.mark.long
def test_a_full_disk_is_an_error_and_leaves_no_files(limit):
    rows = "".join(f"{i},{i * 7 % 100_000}\n" for i in range(100_000))
    Path("e.csv").write_text(f"source,target\n{rows}")

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    process = start("e.csv", "--out", "graph", preexec_fn=full)
    _, err = process.communicate()
    assert err == f"error: Cannot write {Path('graph').absolute()}: File too large.\n"
    assert process.returncode == 1
    assert not list(Path().glob("*graph*"))


def test_text_of_digits_is_the_same_in_parquet_and_csv(tmp_path):
    columns = {"id": ["01", "1", "x"], "zip": ["007", "10", "9"], "kind": list("aba")}
    pq.write_table(pa.table(columns), tmp_path / "nodes.parquet")
    pyarrow.csv.write_csv(pa.table(columns), tmp_path / "nodes.csv")
    (tmp_path / "edges.csv").write_text("u,v\n01,1\n1,x\n")
    result = []
    for end in ("csv", "parquet"):
        out = tmp_path / end
        edges, nodes = tmp_path / "edges.csv", tmp_path / f"nodes.{end}"
        options = ImportOptions(label="kind", scale="none")
        import_graph([edges], [nodes], out=out, options=options)
        stored = open_graph(out)
        result.append((stored.names.to_pylist(), stored.graph.features.tolist()))
    assert result[0] == result[1] == (["01", "1", "x"], [[7.0], [10.0], [9.0]])


@pytest.mark.long
def test_the_library_imports_without_the_command_line():
    code = "import sys, unalike; unalike.import_graph; print('tyro' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
