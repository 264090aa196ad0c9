"""`unalike list`: names, sizes, and what is at hand."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from unalike import DATASETS
from unalike.cli.main import main


@pytest.fixture
def root(tmp_path: Path, data: Path, monkeypatch) -> Path:
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))
    (tmp_path / "facebook100").mkdir()
    for school in ("Reed98", "JohnsHopkins55"):
        link = tmp_path / "facebook100" / f"{school}.mat"
        link.symlink_to(data / "facebook100" / f"{school}.mat")
    (tmp_path / "facebook100" / "New School1.mat").symlink_to(
        data / "facebook100" / "Reed98.mat"
    )
    return tmp_path


def listed(capsys, *arguments: str) -> dict[str, dict]:
    assert main(["list", "datasets", "--json", *arguments]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_a_short_list_names_the_schools_that_are_here(root: Path, capsys):
    rows = listed(capsys)
    assert {"penn94", "reed98", "johns-hopkins55", "new-school1"} < set(rows)
    assert not {"harvard1", "amherst41"} & set(rows)
    assert len(listed(capsys, "--all")) == len(DATASETS) + 1


def test_a_row_tells_what_is_known(root: Path, capsys):
    rows = listed(capsys)
    assert rows["reed98"]["num_edges"] == 18_812
    assert (rows["reed98"]["raw"], rows["reed98"]["stored"]) == ("all", False)
    assert (rows["penn94"]["raw"], rows["penn94"]["num_features"]) == ("none", 4_814)
    assert rows["penn94"]["published"]["num_features"] == 5
    assert rows["genius"]["metric"] == "roc-auc"
    assert rows["wiki"]["licence"] == "CC BY-SA 3.0 and GFDL"
    assert rows["new-school1"]["num_nodes"] is None


def test_what_is_stored_is_counted(root: Path, capsys):
    assert main(["fetch", "new-school1"]) == 0
    capsys.readouterr()
    row = listed(capsys)["new-school1"]
    assert (row["stored"], row["num_nodes"]) == (True, 962)


def test_the_table_ends_with_what_it_leaves_out(root: Path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "132")
    assert main(["list", "datasets"]) == 0
    out = capsys.readouterr().out
    header, *rows, last = out.strip().splitlines()
    for head in ("nodes", "edges", "classes", "edge h", "class h", "licence", "files"):
        assert head in header
    assert last == "and 97 more schools of Facebook100; `--all` names them."
    (wiki,) = (row for row in rows if row.startswith("wiki "))
    assert wiki.split()[1:6] == ["1,925,342", "303,434,860", "5", "0.389", "0.107"]
    assert main(["list", "datasets", "--all"]) == 0
    assert "harvard1" in capsys.readouterr().out


def test_a_damaged_file_does_not_spoil_the_list(root: Path, capsys):
    (root / "heterophilous").mkdir()
    (root / "heterophilous" / "broken_graph.npz").write_bytes(b"PK")
    assert listed(capsys)["broken-graph"]["raw"] == "all"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("metrics", "roc-auc"),
        ("measures", "class_homophily"),
        ("methods", "linkx"),
        ("twins", "genius-twin"),
        ("datasets", "wiki"),
    ],
)
def test_every_kind_is_listed_in_any_width(root: Path, capsys, monkeypatch, kind, name):
    assert main(["list", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert name in [row["name"] for row in rows]
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list", kind]) == 0
    out = capsys.readouterr().out
    assert name in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_without_a_kind_the_kinds_are_listed(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    kinds = ["datasets", "twins", "methods", "batchings", "recipes"]
    kinds += ["measures", "metrics"]
    assert [line.split()[0] for line in lines] == ["name", *kinds]


def test_a_method_tells_its_defaults(capsys):
    assert main(["list", "methods", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    linkx = rows["linkx"]
    assert linkx["family"] == "row-wise"
    assert linkx["hyperparameters"]["hidden"] == 32
    assert linkx["training"]["epochs"] == 500


def test_an_unknown_kind(capsys):
    assert main(["list", "dataset"]) == 1
    assert "Did you mean 'datasets'?" in capsys.readouterr().err


@pytest.mark.parametrize("labels", ["text", "empty", "nested", "huge", "no array"])
def test_an_odd_file_does_not_break_the_list(
    tmp_path: Path, monkeypatch, capsys, labels: str
):
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))
    folder = tmp_path / "heterophilous"
    folder.mkdir()
    arrays = {
        "text": np.array(["a", "b"]),
        "empty": np.zeros((0, 3)),
        "nested": np.array([(1, b"x")], [("one", "i4"), ("two", "S1")]),
        "huge": np.zeros(3, np.int64),
        "no array": np.float64(1.5),
    }
    np.savez(folder / "odd.npz", node_labels=arrays[labels])
    if labels == "huge":
        header = io.BytesIO()
        about = {"descr": "<i8", "fortran_order": False, "shape": (1 << 50,)}
        np.lib.format.write_array_header_1_0(header, about)
        with zipfile.ZipFile(folder / "odd.npz", "w") as archive:
            archive.writestr("node_labels.npy", header.getvalue())
    assert "odd" in listed(capsys)
    assert main(["measure", "nothing"]) == 1
    assert "No dataset 'nothing'" in capsys.readouterr().err
