"""The table of the state of the art: our runs beside the best published numbers."""

import json

import pytest
from result_rows import row_of

from unalike.cli.main import main
from unalike.experiments.config import Config, DatasetOptions, build_method
from unalike.experiments.database import ResultsDatabase

RUNS = {
    "LINKX": ({"hidden": 64, "precision": "bf16"}, "linkx", {}, 70.0),
    "LINKX with labels": ({"hidden": 32}, "linkx", {"label_inputs": True}, 75.0),
    "VIEWS-trees": ({}, "views-trees", {"as_stored": True}, 82.0),
}


@pytest.fixture
def url(tmp_path):
    url = f"sqlite:///{tmp_path}/results.db"
    one_group = build_method("views-trees", {"views": ["labels"], "rounds": 1})
    ablation = Config(one_group, DatasetOptions(as_stored=True))
    with ResultsDatabase.open(url) as results:
        for options, method, view, test in RUNS.values():
            config = Config(build_method(method, options), DatasetOptions(**view))
            results.store([row_of(split, config=config, test=test) for split in (0, 1)])
        results.store([row_of(split, config=ablation, valid=99.0) for split in (0, 1)])
    return url


def cells(url, table, tmp_path, capsys):
    words = ["table", table, "--results", url, "--data", str(tmp_path), "--json"]
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)["rows"]["texas"]


def test_runs_of_any_setting_stand_beside_the_published_number(url, tmp_path, capsys):
    texas = cells(url, "state-of-the-art", tmp_path, capsys)
    assert {name: texas[name]["mean"] for name in RUNS} == {
        name: test for name, (*_, test) in RUNS.items()
    }
    assert texas["best published"]["printed_mean"] == 89.73
    assert texas["best published"]["quoted"].startswith("FSGNN [V]")
    assert texas["best published"]["shaded"]
    assert texas["VIEWS"]["mean"] is None


def test_the_text_has_a_line_per_graph_and_the_notes(url, tmp_path, capsys):
    words = ["table", "state-of-the-art", "--format", "markdown", "--results", url]
    assert main([*words, "--data", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "| texas | **89.73 FSGNN [V] F** | 70.00 ± 0.00 |" in out
    assert "take the labels of train nodes as inputs" in out
    assert "in bf16, not float32: texas LINKX" in out


def test_the_ablation_counts_runs_of_its_own_groups_only(url, tmp_path, capsys):
    texas = cells(url, "views-ablation", tmp_path, capsys)
    assert {cell["mean"] for cell in texas.values()} == {None}
