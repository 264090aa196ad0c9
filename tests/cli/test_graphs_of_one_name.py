"""Two stored graphs of one name stay apart in measures, results and the report."""

import json
import shlex

import pytest
from graphs import suiting
from report_fixtures import only_our_table
from sweep_fixtures import recipe_text, stored

from unalike import import_graph, open_graph, random_splits, save_graph
from unalike.cli.main import main
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.selection import SelectionOptions
from unalike.importing.options import ImportOptions
from unalike.reports.site.datasets import dataset_documents
from unalike.reports.site.site_data import SiteData

URL = "sqlite:///results.db"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    only_our_table(monkeypatch)
    for number, place in enumerate(("a", "b")):
        (tmp_path / place).mkdir()
        stored(tmp_path / place, nodes=60 + 20 * number, name="g")
    return tmp_path


@pytest.fixture
def swept(folder, capsys):
    for place in ("a", "b"):
        recipe = folder / f"{place}.toml"
        recipe.write_text(recipe_text(folder / place / "g", hidden="[4]", epochs=2))
        assert main(["sweep", str(recipe), "--only", "lr=0.01", "dropout=0.0"]) == 0
    capsys.readouterr()
    return folder


def test_measures_of_both_graphs_are_shown(folder, capsys):
    assert main(["measure", "a/g", "b/g", "--only", "edge-homophily", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert {path: one["num_nodes"] for path, one in values.items()} == {
        "a/g": 60,
        "b/g": 80,
    }


def test_a_graph_keeps_the_name_of_its_import(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    for name, expected in ((None, "shop"), ("my shop", "my shop")):
        out = tmp_path / "shop"
        import_graph(
            [tmp_path / "edges.csv"], out=out, options=ImportOptions(name=name)
        )
        moved = out.rename(tmp_path / f"moved {expected}")
        assert open_graph(moved).name == expected


def test_the_report_keeps_both_graphs_apart_and_its_commands_find_them(swept):
    with ResultsDatabase.read(URL) as results:
        site = SiteData(results, SelectionOptions())
        entries = site.site_document()["method_runs"]
        documents = [
            site.method_runs_document(site.method_run_ids()[entry["id"]])
            for entry in entries
        ]
        columns = site.site_document()["tables"][-1]["columns"]
    paths = [str(swept / place / "g") for place in ("a", "b")]
    labels = {f"g ({path})" for path in paths}
    assert {entry["dataset"] for entry in entries} == labels
    assert {column["label"] for column in columns} == labels
    assert [entry["runs"] for entry in entries] == [3, 3]
    found = {
        shlex.split(document["configs"]["command"]["constant"])[2]
        for document in documents
    }
    assert found == set(paths)


def test_a_command_of_the_report_repeats_the_run(swept, capsys):
    with ResultsDatabase.read(URL) as results:
        site = SiteData(results, SelectionOptions())
        site.site_document()
        key = next(iter(site.method_run_ids().values()))
        prefix = site.method_runs_document(key)["configs"]["command"]["constant"]
        row = next(results.runs(dataset_hash=key[1], split=0))
    words = shlex.split(prefix)[1:]
    assert main([*words, "--splits", "0", "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["test_mean"] == pytest.approx(
        row["test"]
    )


def test_the_report_measures_own_graphs_as_measure_does(swept, capsys):
    with ResultsDatabase.read(URL) as results:
        paths = results.graph_paths()
    found = dataset_documents(swept / "no data", paths)
    assert not found["skipped"]
    for document in found["datasets"]:
        assert document["convention"] == "stored"
        assert main([*shlex.split(document["command"])[1:], "--json"]) == 0
        values = json.loads(capsys.readouterr().out)
        assert values["edge_homophily"] == pytest.approx(
            document["measures"]["edge_homophily"], abs=1e-4
        )


def test_a_graph_that_was_replaced_is_not_measured_under_its_old_runs(swept):
    with ResultsDatabase.read(URL) as results:
        paths = results.graph_paths()
    (swept / "a" / "g").rename(swept / "a" / "old")
    graph = suiting(nodes=70)
    splits = random_splits(graph.labels, count=3)
    save_graph(swept / "a" / "g", graph, splits=splits)
    found = dataset_documents(swept / "no data", paths)
    (reason,) = found["skipped"].values()
    assert reason == "its folder has other data now"
    assert len(found["datasets"]) == 1
