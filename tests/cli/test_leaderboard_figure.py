"""`unalike figure leaderboard` draws stored results."""

import json
import re

import pytest
from result_rows import row_of

from unalike.cli.main import main
from unalike.experiments.config import Config, build_method
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.plan import DatasetRef


def runs(dataset, method, valid, test, splits=5, **options):
    """Runs of one configuration whose test scores are `test`, `test` + 1, …"""
    config = Config(build_method(method, options))
    stored_as = DatasetRef(dataset, dataset, "abc", splits)
    return [
        row_of(split, valid=valid, test=test + split, dataset=stored_as, config=config)
        for split in range(splits)
    ]


@pytest.fixture
def database(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'results.db'}"
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path / "data"))
    with ResultsDatabase.open(url) as results:
        for dataset in ("cornell5", "wisconsin87", "cora"):
            results.store(runs(dataset, "mlp", 60.0, 60.0))
            results.store(runs(dataset, "linkx", 70.0, 80.0))
            results.store(runs(dataset, "linkx", 75.0, 78.0, hidden=16))
        results.store(runs("cornell5", "gcn", 70.0, 70.0))
        results.store(runs("cornell5", "gat", 70.0, 65.0, splits=4))
        results.store(runs("texas", "linkx", 70.0, 50.0, splits=10))
    return url


def figure(url, out, *names):
    return main(["figure", "leaderboard", *names, "--results", url, "--out", str(out)])


def texts(svg):
    """The texts of a picture, from the top of the file to its end."""
    return re.findall(r">([^<>\n]+)</text>", svg.read_text("utf-8"))


def test_methods_stand_in_order_with_the_score_of_the_chosen_configuration(
    database, tmp_path
):
    out = tmp_path / "board.svg"
    assert figure(database, out, "cornell5") == 0
    shown = texts(out)
    names = [text for text in shown if text in {"LINKX", "GCN", "GAT", "MLP"}]
    assert names == ["LINKX", "GCN", "MLP"]
    assert {"80.0", "72.0", "62.0"} <= {*shown}
    assert "82.0" not in shown
    assert "cornell5: 18,660 nodes, 790,777 edges" in shown


def test_scores_are_those_of_the_table(database, tmp_path, capsys):
    table = ["table", "full-batch", "--on", "cornell5", "--settings", "any", "--json"]
    assert main([*table, "--results", database]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    means = [row["cornell5"]["mean"] for row in rows.values()]
    out = tmp_path / "board.svg"
    assert figure(database, out, "cornell5") == 0
    assert {f"{mean:.1f}" for mean in means if mean is not None} <= {*texts(out)}


def test_the_usual_datasets_are_not_homophilous_and_have_many_methods(
    database, tmp_path, capsys
):
    out = tmp_path / "board.png"
    shown = ["figure", "leaderboard", "--results", database, "--out", str(out)]
    assert main([*shown, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "figure": "leaderboard",
        "file": str(out),
        "datasets": ["cornell5", "wisconsin87"],
        "missing": [],
    }
    assert out.stat().st_size > 10_000


def test_a_dataset_without_results_is_named_and_left_out(database, tmp_path, capsys):
    assert figure(database, tmp_path / "board.svg", "cornell5", "squirrel") == 0
    assert "left out, no data: squirrel" in capsys.readouterr().err


def test_a_figure_is_the_same_each_time(database, tmp_path):
    for name in ("one.svg", "two.svg"):
        assert figure(database, tmp_path / name) == 0
    one, two = (tmp_path / name for name in ("one.svg", "two.svg"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("names", [(), ("cornell5",)], ids=["usual", "named"])
def test_a_database_without_results_is_a_mistake(tmp_path, capsys, names):
    out = tmp_path / "board.svg"
    assert figure(f"sqlite:///{tmp_path / 'none.db'}", out, *names) == 1
    assert "`unalike sweep` add some" in capsys.readouterr().err
    assert not out.exists()
