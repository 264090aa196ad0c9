"""`unalike demo` replaces an earlier demo and no file of the user."""

from pathlib import Path

import pytest

from unalike.cli.demo import prepare_folder
from unalike.cli.main import main


@pytest.mark.parametrize("name", ["edges.csv", "nodes.csv", "graph/graph.json"])
def test_files_of_the_user_are_not_replaced(tmp_path, capsys, name):
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    assert main(["demo", "--out", str(tmp_path / "out")]) == 1
    assert "is not of a demo" in capsys.readouterr().err
    assert mine.read_text() == "{}"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]


def test_an_earlier_demo_may_be_replaced(tmp_path):
    prepare_folder(tmp_path / "out")
    (tmp_path / "out" / "edges.csv").write_text("source,target\n")
    prepare_folder(tmp_path / "out")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path, capsys):
    Path(tmp_path / "file").touch()
    assert main(["demo", "--out", str(tmp_path / "file" / "out")]) == 1
    assert capsys.readouterr().err.startswith("error: Cannot write")
