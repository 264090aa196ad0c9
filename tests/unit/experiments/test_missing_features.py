"""Methods that need features are refused on a graph without them."""

import gzip

import pytest

from unalike import GCN, LINK, MLP, CorrectAndSmooth, Training, UserError, find, run
from unalike.cli.main import main
from unalike.experiments.plan import SweepRequest, plan_sweep
from unalike.experiments.recipe import PaperTable, parse
from unalike.experiments.selection import SelectionOptions
from unalike.experiments.sweep import sweep
from unalike.experiments.tuning import tune
from unalike.reports.result_tables import results_table

NODES = 60
NEED_NONE = "label-propagation, link, link-concat, linkx, views, views-trees"
ROW = """
row = "{method}"
method = "{method}"
[grid]
epochs = 2
[cells]
arxiv-year = {{}}
"""


@pytest.fixture
def arxiv_year(tmp_path):
    """A data root with the edges and the years of arxiv-year, without features."""
    folder = tmp_path / "arxiv-year"
    folder.mkdir()
    pairs = [(u, (u * step + 1) % NODES) for u in range(NODES) for step in (3, 7)]
    tables = {
        "edge": "".join(f"{source},{target}\n" for source, target in pairs),
        "node_year": "".join(f"{2010 + node % 10}\n" for node in range(NODES)),
    }
    for name, text in tables.items():
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def recipe(method):
    return parse(ROW.format(method=method), f"ours/{method}")


QUICK = Training(epochs=2)


@pytest.mark.parametrize(
    "method",
    [MLP(training=QUICK), GCN(training=QUICK), CorrectAndSmooth(base=MLP())],
    ids=lambda method: type(method).__name__,
)
def test_a_method_that_needs_features_is_refused_without_them(arxiv_year, method):
    with pytest.raises(UserError) as error:
        run(find("arxiv-year", arxiv_year), method)
    text = str(error.value)
    assert "\n" not in text
    assert "arxiv-year/node-feat.csv.gz" in text
    assert text.endswith(f"methods that need none are {NEED_NONE}.")


def test_a_method_that_needs_no_features_trains_without_them(arxiv_year):
    source = find("arxiv-year", arxiv_year)
    assert run(source, LINK(training=QUICK), splits=[0])
    smoothed = CorrectAndSmooth(base=LINK(training=QUICK))
    assert run(source, smoothed, splits=[0])


def test_the_command_ends_in_one_line_without_features(arxiv_year, capsys):
    words = ["train", "arxiv-year", "gcn", "--data", str(arxiv_year)]
    assert main(words) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_tuning_is_refused_without_features(arxiv_year):
    with pytest.raises(UserError, match="has no features"):
        tune(find("arxiv-year", arxiv_year), trials=1)


def test_sweeps_leave_out_cells_without_features(arxiv_year):
    recipes = [recipe("gcn"), recipe("link")]
    plan = plan_sweep(SweepRequest(recipes=recipes, data=arxiv_year))
    assert [group.first.to_dict["method"] for group in plan.groups] == ["link"]
    (reason,) = plan.missing.values()
    assert "gcn needs them" in reason


@pytest.mark.parametrize("converted", [False, True])
def test_tables_say_which_cells_of_arxiv_year_lack_features(
    arxiv_year, results, converted
):
    if converted:
        find("arxiv-year", arxiv_year).open_stored()
    report = results_table(
        PaperTable("ours", "Our table", "best", []),
        [recipe("gcn"), recipe("link")],
        results,
        SelectionOptions(data=arxiv_year),
    )
    assert "node-feat.csv.gz" in report.missing["gcn arxiv-year"]
    assert report.missing["link arxiv-year"] == "not run"


def test_tables_say_that_the_edges_of_arxiv_year_are_not_here(arxiv_year, results):
    (arxiv_year / "arxiv-year" / "edge.csv.gz").unlink()
    report = results_table(
        PaperTable("ours", "Our table", "best", []),
        [recipe("gcn")],
        results,
        SelectionOptions(data=arxiv_year),
    )
    (reason,) = report.missing.values()
    assert reason == "the files of arxiv-year are not here"


def test_tables_say_that_numbers_of_arxiv_year_are_without_features(
    arxiv_year, results, url
):
    def remarks(method):
        table = PaperTable("ours", "Our table", "best", [])
        query = SelectionOptions(data=arxiv_year)
        return results_table(table, [recipe(method)], results, query).remarks

    assert remarks("linkx") == []
    plan = plan_sweep(SweepRequest(recipes=[recipe("linkx")], data=arxiv_year))
    sweep(plan, url)
    assert "numbers of it are without them" in remarks("linkx")[0]
    assert remarks("link-concat") == []
