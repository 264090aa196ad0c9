"""The documents of a report: what is chosen, ranked, summed up and missing."""

import json
import zlib

import numpy as np
import pytest
from graphs import suiting
from reported import HARM, measures_of, only_our_table, runs, store_some

from unalike.errors import UserError
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.selection import SelectionOptions, group_by_config
from unalike.reports.site.documents import as_script
from unalike.reports.site.leaderboard import all_runs_table, best_by_group, ranking
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
def survey(tmp_path, monkeypatch):
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


def test_a_table_holds_ours_the_printed_and_what_leads_to_the_runs(survey):
    table = survey.look()["tables"][0]
    cell = cells_of(table)["LINKX", "texas"]
    assert (cell["mean"], cell["std"], cell["runs"]) == (75.0, 1.0, 3)
    assert (cell["printed_mean"], cell["deviations"]) == (70.0, 2.5)
    assert (cell["settings"], cell["of"]) == (2, 2)
    assert cell["sweep"] == "unalike sweep ours/linkx --only dataset=texas"
    assert cell["shelf"] in survey.shelves()


def test_the_printed_number_is_ranked_where_there_is_none_of_ours(survey):
    table = survey.look()["tables"][0]
    assert table["rankings"] == [[2, 0, 1], [1, 2, 0]]


def test_equals_are_ranked_as_they_stand():
    scores = [
        ScoreCell(mean=1.0),
        None,
        ScoreCell(printed_mean=2.0),
        ScoreCell(),
        ScoreCell(mean=1.0),
    ]
    assert ranking(scores) == [2, 0, 4]


def test_everything_that_was_run_is_in_a_table_of_its_own(survey):
    table = survey.look()["tables"][-1]
    assert {row["label"] for row in table["rows"]} == {"linkx", "mlp", "sgc"}
    assert HARM in {column["label"] for column in table["columns"]}
    assert cells_of(table)["linkx", "texas"]["mean"] == 75.0


def test_a_setting_with_fewer_splits_is_not_chosen():
    rows = runs("texas", "linkx", 50.0, 40.0, hidden=4)
    rows += runs("texas", "linkx", 99.0, 99.0, hidden=8)[:2]
    (found,) = best_by_group(rows).values()
    assert (found.chosen.valid, found.num_settings) == (50.0, 1)


def test_nothing_run_is_an_empty_table():
    assert all_runs_table({})["cells"] == []


def test_what_is_missing_says_why(survey):
    site = survey.look()
    assert {(one["reason"], len(one["cells"])) for one in site["missing"]} == {
        (f"failed: MemoryError: no room for {HARM}", 1),
        ("the files of cornell are not here", 1),
    }
    (failure,) = site["failures"]
    assert (failure["method"], failure["runs"], failure["settings"]) == ("gcn", 3, 1)


def test_a_shelf_holds_the_runs_and_the_command_of_each_setting():
    rows = runs("texas", "linkx", 60.0, 40.0, hidden=4)
    rows += runs("texas", "linkx", 80.0, 50.0, hidden=8)
    told = method_runs(rows)
    assert told["options"] == {"hidden": [8, 4]}
    assert told["settings"]["valid"] == [80.0, 60.0]
    assert told["settings"]["count"] == {"all": 3}
    assert told["runs"]["setting"] == [0, 0, 0, 1, 1, 1]
    first = told["settings"]["command"][0]
    assert first.startswith("unalike train texas linkx ")
    assert "--hidden 8" in first
    assert "--splits" not in first


def test_runs_of_a_method_that_is_gone_have_no_command():
    rows = [{**row, "method": "gone"} for row in runs("texas", "mlp", 1.0, 1.0)]
    assert method_runs(rows)["settings"]["command"] == {"all": None}


def test_columns_tell_once_what_all_share():
    assert to_columns([{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == {
        "length": 2,
        "a": {"all": 1},
        "b": [2, 3],
    }


def test_sensitivity_follows_the_best_setting_with_each_value():
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


def test_values_of_several_kinds_are_put_in_order():
    rows = [
        {**row, "options": {**row["options"], "hidden": value}, "setting": str(value)}
        for value in (8, "auto", True, 2)
        for row in runs("texas", "linkx", 1.0, 1.0)
    ]
    assert varying_options(group_by_config(rows))["hidden"] == [2, 8, "auto", True]


def test_curves_are_thinned_but_keep_their_end():
    numbers = np.stack([np.arange(1000.0), np.full(1000, np.nan)], 1).astype("<f4")
    told = curve({"curve": zlib.compress(numbers.tobytes())})
    assert len(told["epochs"]) <= MAX_POINTS + 1
    assert (told["epochs"][-1], told["losses"][-1], told["grades"][-1]) == (
        999,
        999.0,
        None,
    )


def test_a_script_cannot_leave_its_page():
    told = as_script("site", {"name": "</script><!--\u2028"})
    assert "<" not in told
    assert "\u2028" not in told
    inside = told.removeprefix("receive(...").removesuffix(");\n")
    assert json.loads(inside) == ["site", {"name": "</script><!--\u2028"}]


def test_only_what_changed_is_read_again(survey, monkeypatch):
    survey.look()
    asked = []
    read = ResultsDatabase.runs
    monkeypatch.setattr(
        ResultsDatabase,
        "runs",
        lambda self, **facts: asked.append(facts) or read(self, **facts),
    )
    survey.look()
    assert asked == []
    survey.results.store(runs("cornell", "sgc", 50.0, 99.0, hops=1))
    table = survey.look()["tables"][-1]
    assert [fact["dataset"] for fact in asked] == ["cornell"]
    assert cells_of(table)["sgc", "cornell"]["mean"] == 100.0


def test_a_folder_of_something_else_is_left_alone(tmp_path, survey):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="holds no report"):
        check_output_dir(tmp_path / "mine")
    with pytest.raises(UserError, match="is a file"):
        check_output_dir(tmp_path / "mine" / "thesis.txt")


def test_an_older_report_is_replaced(tmp_path, survey):
    place = tmp_path / "site"
    write_site(place, survey, None)
    (place / "data" / "stale.js").write_text("")
    told = write_site(place, survey, measures_of(suiting(nodes=40)))
    assert (told["runs"], told["failures"], told["datasets"]) == (18, 3, 1)
    assert not (place / "data" / "stale.js").exists()
    assert (place / "index.html").is_file()
    assert (place / "assets" / "vendor" / "plot.LICENSE.txt").is_file()
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_measures_hold_the_matrix_and_the_degrees():
    (told,) = measures_of(suiting(nodes=40))["datasets"]
    assert 0 <= told["measures"]["edge_homophily"] <= 1
    assert sum(told["degrees"]["counts"]) + told["degrees"]["alone"] == 40
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in told["compatibility"])
    assert told["command"].endswith("--convention paper")
