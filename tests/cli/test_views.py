"""`unalike views` writes a table that other learners can use."""

import pyarrow.parquet
import pytest

from unalike.cli.main import main


def test_the_table_has_a_row_per_node_and_named_columns(tmp_path, capsys):
    out = tmp_path / "views.parquet"
    words = ["views", "chameleon-twin", "--out", str(out)]
    assert main([*words, "--views", "structure", "labels", "duplicates"]) == 0
    table = pyarrow.parquet.read_table(out)
    assert table.num_rows == 2277
    assert table.column_names[:4] == ["node", "part", "fold", "label"]
    assert any(name.startswith("labels:a:") for name in table.column_names)
    assert set(table["part"].to_pylist()) == {"train", "valid", "test"}
    assert "2,277 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--out", "views.txt"], "ends in .parquet or .csv"),
        (["--out", "views.csv", "--split", "99"], "splits, from 0"),
        (["--out", "views.csv", "--views", "label"], "Did you mean 'labels'"),
        (["--out", "views.csv", "--folds", "1"], "at least 3"),
        (["--out", "views.csv", "--seed", "9" * 30], "it must be from 0 to"),
    ],
)
def test_a_bad_option_is_one_line_and_nothing_is_written(
    words, reason, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    groups = [] if "--views" in words else ["--views", "structure", "labels"]
    assert main(["views", "chameleon-twin", *words, *groups]) == 1
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.glob("views.*"))
