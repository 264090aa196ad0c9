"""The documents of a report: selected, ranked, aggregated and missing results."""

import json
import zlib

import numpy as np
import pytest
from graphs import suiting
from report_fixtures import HARM, measures_of, only_our_table, runs, store_some
from result_rows import row_of
from sweep_fixtures import stored

from unalike import open_graph
from unalike.errors import UserError
from unalike.experiments.config import dataset_hash
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.plan import DatasetRef
from unalike.experiments.recipe import parse
from unalike.experiments.selection import SelectionOptions, group_by_config
from unalike.reports.site.datasets import dataset_documents
from unalike.reports.site.documents import as_script
from unalike.reports.site.leaderboard import (
    all_runs_table,
    best_by_group,
    opening_table,
    rankings,
)
from unalike.reports.site.method_runs import (
    MAX_POINTS,
    curve,
    method_runs,
    sensitivity,
    to_columns,
    varying_options,
)
from unalike.reports.site.site_data import SiteData
from unalike.reports.site.writer import check_output_dir, write_site
from unalike.reports.tables import ScoreCell


@pytest.fixture
def site_data(tmp_path, monkeypatch):
    only_our_table(monkeypatch)
    url = f"sqlite:///{tmp_path / 'results.db'}"
    store_some(url)
    with ResultsDatabase.open(url) as results:
        yield SiteData(results, SelectionOptions(data=tmp_path))


def cells_of(table):
    return {
        (row["label"], column["label"]): cell
        for row, cells in zip(table["rows"], table["cells"], strict=True)
        for column, cell in zip(table["columns"], cells, strict=True)
    }


def test_a_cell_holds_our_score_the_published_score_and_the_id_of_its_runs(site_data):
    table = site_data.site_document()["tables"][0]
    cell = cells_of(table)["LINKX", "texas"]
    assert (cell["mean"], cell["std"], cell["runs"]) == (75.0, 1.0, 3)
    assert (cell["printed_mean"], cell["deviations"]) == (70.0, 2.5)
    assert (cell["configs"], cell["grid_size"]) == (2, 2)
    assert cell["sweep"] == "unalike sweep ours/linkx --only dataset=texas"
    assert cell["method_runs"] in site_data.method_run_ids()


def test_the_published_score_is_ranked_where_ours_is_missing(site_data):
    table = site_data.site_document()["tables"][0]
    assert table["rankings"] == [[2, 0, 1], [1, 2, 0]]


def test_equal_scores_are_ranked_in_row_order():
    rows = [
        {"texas": ScoreCell(mean=1.0)},
        {},
        {"texas": ScoreCell(printed_mean=2.0)},
        {"texas": ScoreCell()},
        {"texas": ScoreCell(mean=1.0)},
    ]
    assert rankings(rows, ["texas"]) == [[2, 0, 4]]


def test_all_runs_have_their_own_table(site_data):
    table = site_data.site_document()["tables"][-1]
    assert {row["label"] for row in table["rows"]} == {"linkx", "mlp", "sgc"}
    assert HARM in {column["label"] for column in table["columns"]}
    assert cells_of(table)["linkx", "texas"]["mean"] == 75.0


def test_a_configuration_with_fewer_splits_is_not_selected():
    rows = runs("texas", "linkx", 50.0, 40.0, hidden=4)
    rows += runs("texas", "linkx", 99.0, 99.0, hidden=8)[:2]
    (best,) = best_by_group(rows).values()
    assert (best.chosen.valid, best.num_complete) == (50.0, 1)


def test_configurations_on_other_splits_are_not_compared():
    rows = runs("texas", "linkx", 50.0, 40.0, hidden=4)
    rows += runs("texas", "linkx", 49.0, 41.0, hidden=16)
    others = runs("texas", "linkx", 99.0, 99.0, hidden=8)
    rows += [{**row, "split": row["split"] + 3} for row in others]
    (best,) = best_by_group(rows).values()
    assert (best.chosen.valid, best.num_complete) == (50.0, 2)


def test_seeds_are_not_compared_unless_asked():
    rows = runs("texas", "linkx", 50.0, 40.0, hidden=4)
    rows += runs("texas", "linkx", 49.0, 41.0, hidden=8)
    rows += [{**row, "seed": 1, "valid": 99.0} for row in rows[:3]]
    found = {
        seed: one.chosen.valid
        for seed in ("most", "1", "any")
        for one in best_by_group(rows, seed).values()
    }
    assert found == {"most": 50.0, "1": 99.0, "any": 99.0}
    assert not best_by_group(rows, "2")


def test_each_version_of_a_dataset_has_its_own_column():
    rows = runs("texas", "linkx", 50.0, 40.0, hidden=4)
    rows += runs("cornell", "linkx", 50.0, 40.0, hidden=4)
    newer = [{**row, "dataset_hash": "0123456789", "valid": 99.0} for row in rows[:3]]
    table = all_runs_table(best_by_group([*rows, *newer]))
    labels = [column["label"] for column in table["columns"]]
    assert labels == ["cornell", "texas (data 012345)", "texas (data abc)"]
    assert [cell["valid"] for cell in table["cells"][0]] == [50.0, 99.0, 50.0]


def test_hyperparameters_are_compared_on_the_same_data_splits_and_seed():
    rows = runs("texas", "linkx", 50.0, 40.0, hidden=4)
    rows += runs("texas", "linkx", 51.0, 40.0, hidden=8)
    for change in ({"seed": 1}, {"dataset_hash": "def"}):
        rows += [{**row, **change, "valid": 99.0} for row in rows[:3]]
    rows += [{**row, "split": row["split"] + 3, "setting": "x"} for row in rows[:3]]
    found = method_runs(rows)["sensitivity"]["hidden"]
    assert [one["valid"] for one in found] == [50.0, 51.0]


def test_a_page_follows_the_version_of_a_dataset_with_the_most_runs(site_data):
    def texas():
        return cells_of(site_data.site_document()["tables"][0])

    assert texas()["LINKX", "texas"]["mean"] == 75.0
    assert texas()["MLP", "texas"]["mean"] == 65.0
    newer = DatasetRef("texas", "texas", "newer", 3)
    for hidden in range(4, 20):
        rows = [
            row_of(split, valid=1.0, test=2.0, dataset=newer, hidden=hidden)
            for split in range(3)
        ]
        site_data.results.store(rows)
    assert texas()["LINKX", "texas"]["mean"] == 2.0
    assert "mean" not in texas()["MLP", "texas"]


def test_the_table_of_no_runs_is_empty():
    assert all_runs_table({})["cells"] == []


def recipe(*datasets):
    cells = "\n".join(f"{name} = {{}}" for name in datasets)
    return parse(f'method = "mlp"\n[cells]\n{cells}\n', "row")


def filled(name, *rows):
    """A table whose cells have a number of ours where the rows say so."""
    return {
        "name": name,
        "cells": [[{"mean": 1.0} if c else {} for c in r] for r in rows],
    }


def test_the_page_opens_with_the_widest_filled_table_of_non_homophilous_datasets():
    recipes = {
        "wide": [recipe("texas", "penn94", "genius")],
        "empty": [recipe("texas", "penn94", "genius", "wiki")],
        "homophilous": [recipe("cora", "citeseer", "pubmed")],
        "filled": [recipe("texas", "actor", "pokec"), recipe("texas", "actor")],
    }
    tables = [
        filled("wide", [True, False, True]),
        filled("empty", [False] * 4),
        filled("homophilous", [True] * 3),
        filled("filled", [True, False, True], [True, True, False]),
        filled("all-runs", [True] * 9),
    ]
    assert opening_table(tables, recipes, None) == "filled"
    assert opening_table([*tables[:3], tables[4]], recipes, None) == "wide"
    assert opening_table([*tables[1:3], tables[4]], recipes, None) == "all-runs"


def test_missing_cells_are_grouped_by_reason(site_data):
    site = site_data.site_document()
    assert {(one["reason"], len(one["cells"])) for one in site["missing"]} == {
        (f"failed: MemoryError: no room for {HARM}", 1),
        ("the files of cornell are not here", 1),
    }
    (failure,) = site["failed_runs"]
    assert (failure["method"], failure["runs"], failure["configs"]) == ("gcn", 3, 1)


def test_method_runs_hold_the_runs_and_the_command_of_each_configuration():
    rows = runs("texas", "linkx", 60.0, 40.0, hidden=4)
    rows += runs("texas", "linkx", 80.0, 50.0, hidden=8)
    document = method_runs(rows)
    assert document["varying_options"] == {"hidden": [8, 4]}
    assert document["configs"]["valid"] == [80.0, 60.0]
    assert document["configs"]["num_splits"] == {"constant": 3}
    assert document["runs"]["config"] == [0, 0, 0, 1, 1, 1]
    first = document["configs"]["command"][0]
    assert first.startswith("unalike train texas linkx ")
    assert "--hidden 8" in first
    assert "--splits" not in first


def test_runs_of_an_unknown_method_have_no_command():
    rows = [{**row, "method": "gone"} for row in runs("texas", "mlp", 1.0, 1.0)]
    assert method_runs(rows)["configs"]["command"] == {"constant": None}


def test_columns_store_a_common_value_once():
    assert to_columns([{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == {
        "length": 2,
        "a": {"constant": 1},
        "b": [2, 3],
    }


def test_sensitivity_has_the_best_configuration_of_each_value():
    rows = [
        row
        for hidden, lr, valid in [(4, 0.1, 50.0), (4, 0.01, 60.0), (16, 0.1, 55.0)]
        for row in runs("texas", "linkx", valid, 1.0, hidden=hidden, lr=lr)
    ]
    settings = group_by_config(rows)
    assert varying_options(settings) == {"hidden": [4, 16], "lr": [0.01, 0.1]}
    found = sensitivity(settings)
    assert [one["valid"] for one in found["hidden"]] == [60.0, 55.0]
    assert [one["valid"] for one in found["lr"]] == [60.0, 55.0]


def test_option_values_of_several_types_are_sorted():
    rows = [
        {**row, "options": {**row["options"], "hidden": value}, "setting": str(value)}
        for value in (8, "auto", True, 2)
        for row in runs("texas", "linkx", 1.0, 1.0)
    ]
    assert varying_options(group_by_config(rows))["hidden"] == [2, 8, "auto", True]


def test_curves_are_thinned_and_end_at_the_last_epoch():
    numbers = np.stack([np.arange(1000.0), np.full(1000, np.nan)], 1).astype("<f4")
    thinned = curve({"curve": zlib.compress(numbers.tobytes())})
    assert len(thinned["epochs"]) <= MAX_POINTS + 1
    assert (thinned["epochs"][-1], thinned["losses"][-1], thinned["scores"][-1]) == (
        999,
        999.0,
        None,
    )


def test_a_script_cannot_end_its_script_element():
    script = as_script("site", {"name": "</script><!--\u2028"})
    assert "<" not in script
    assert "\u2028" not in script
    inside = script.removeprefix("receive(...").removesuffix(");\n")
    assert json.loads(inside) == ["site", {"name": "</script><!--\u2028"}]


def test_only_changed_runs_are_read_again(site_data, monkeypatch):
    site_data.site_document()
    asked = []
    read = ResultsDatabase.runs
    monkeypatch.setattr(
        ResultsDatabase,
        "runs",
        lambda self, **facts: asked.append(facts) or read(self, **facts),
    )
    site_data.site_document()
    assert asked == []
    site_data.results.store(runs("cornell", "sgc", 50.0, 99.0, hops=1))
    table = site_data.site_document()["tables"][-1]
    assert [fact["dataset"] for fact in asked] == ["cornell"]
    assert cells_of(table)["sgc", "cornell"]["mean"] == 100.0


def test_a_folder_that_is_no_report_is_not_replaced(tmp_path, site_data):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="holds no report"):
        check_output_dir(tmp_path / "mine")
    with pytest.raises(UserError, match="is a file"):
        check_output_dir(tmp_path / "mine" / "thesis.txt")


def test_an_older_report_is_replaced(tmp_path, site_data):
    folder = tmp_path / "site"
    write_site(folder, site_data, None)
    (folder / "written-files.json").unlink()  # reports before manifests have none
    (folder / "data" / "stale.js").write_text("")
    counts = write_site(folder, site_data, measures_of(suiting(nodes=40)))
    assert (counts["runs"], counts["failures"], counts["datasets"]) == (18, 3, 1)
    assert not (folder / "data" / "stale.js").exists()
    assert (folder / "index.html").is_file()
    assert "vegaEmbed" in (folder / "assets" / "vega.js").read_text("utf-8")
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_files_beside_a_report_are_not_removed(tmp_path, site_data):
    folder = tmp_path / "site"
    write_site(folder, site_data, None)
    write_site(folder, site_data, None)
    for name in (".git/config", "notes.md", "data/mine.js"):
        mine = folder / name
        mine.parent.mkdir(exist_ok=True)
        mine.write_text("years of work")
        with pytest.raises(UserError, match=f"not part of it, as {name}"):
            write_site(folder, site_data, None)
        assert mine.read_text() == "years of work"
        mine.unlink()
    write_site(folder, site_data, None)


def test_dataset_documents_hold_compatibility_and_degrees():
    (document,) = measures_of(suiting(nodes=40))["datasets"]
    degrees, matrix = document["degrees"], document["compatibility"]
    assert 0 <= document["measures"]["edge_homophily"] <= 1
    assert sum(degrees["rows"]["nodes"]) + degrees["num_isolated"] == 40
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in matrix)
    assert document["command"].endswith("--convention stored")


@pytest.mark.parametrize("damaged", ["{", "[1]", ""])
def test_a_damaged_file_in_the_cache_is_measured_again(tmp_path, monkeypatch, damaged):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stored(tmp_path, nodes=60, name="g")
    paths = {("g", dataset_hash(open_graph(tmp_path / "g"))): str(tmp_path / "g")}
    measured = dataset_documents(tmp_path, paths)
    assert [one["name"] for one in measured["datasets"]] == ["g"]
    [cached] = (tmp_path / "cache" / "unalike" / "report").glob("*.json")
    cached.write_text(damaged)
    assert dataset_documents(tmp_path, paths) == measured
