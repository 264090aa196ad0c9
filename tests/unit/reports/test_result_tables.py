"""Results tables: selection, comparison, highlighting and missing results."""

from dataclasses import replace

import pytest
from result_rows import DATASET, row_of
from sweep_fixtures import stored

from unalike.datasets import find
from unalike.experiments.plan import DatasetRef
from unalike.experiments.recipe import PaperTable, paper_tables, parse
from unalike.experiments.selection import SelectionOptions
from unalike.reports.result_tables import explain_cells, results_table
from unalike.reports.tables import csv_text, latex, markdown

TABLE = PaperTable("ours", "Our table", "best", [])
ROWS = """
row = "{row}"
method = "{method}"
splits = 2
[grid]
hidden = {hidden}
[cells]
texas = {{ mean = {mean}, std = 2.0 }}
"""


def row(name="LINKX", method="linkx", hidden="[4, 8]", mean=70.0):
    text = ROWS.format(row=name, method=method, hidden=hidden, mean=mean)
    return parse(text, f"ours/{name}")


def cells_of(report):
    return {name: cells["texas"] for name, cells in report.rows.items()}


def store(results, grades, **options):
    """A setting with a pair of grades, validation and test, for each split."""
    results.store(
        [
            row_of(split, valid=valid, test=test, **options)
            for split, (valid, test) in enumerate(grades)
        ]
    )


def test_cells_hold_our_and_the_published_numbers(results):
    store(results, [(60.0, 73.0), (60.0, 75.0)], hidden=4)
    store(results, [(50.0, 90.0), (50.0, 90.0)], hidden=8)
    store(results, [(99.0, 99.0)], hidden=16)
    report = results_table(
        TABLE, [row(), row("MLP", "mlp", mean=73.0)], results, SelectionOptions()
    )
    cells = cells_of(report)
    assert cells["LINKX"].mean == 74.0
    assert cells["LINKX"].std == pytest.approx(2**0.5)
    assert cells["LINKX"].text == "74.00 ± 1.41 (70.00 ± 2.00, +2.0σ)"
    assert cells["LINKX"].highlighted
    assert cells["MLP"].text == "– (73.00 ± 2.00)"
    assert not cells["MLP"].highlighted
    assert set(report.missing) == {"MLP texas"}
    assert not report.remarks


PUBLISHED = """
row = "best published"
[cells]
texas = { mean = 89.73, quoted = "FSGNN [V] F" }
"""


def test_a_table_by_dataset_has_sources_and_notes(results):
    store(results, [(60.0, 73.0), (60.0, 75.0)], hidden=4)
    table = replace(TABLE, by_dataset=True, legend="ours; {}", notes=["labels are in"])
    recipes = [parse(PUBLISHED, "ours/published"), row(), row("MLP", "mlp")]
    recipes[1:] = [recipe.on_datasets(["texas"]) for recipe in recipes[1:]]
    report = results_table(table, recipes, results, SelectionOptions())
    cells = report.rows["texas"]
    assert report.headings == ["dataset", "best published", "LINKX", "MLP"]
    assert cells["best published"].text == "89.73 FSGNN [V] F"
    assert cells["best published"].highlighted
    assert cells["LINKX"].text == "74.00 ± 1.41"
    assert set(report.missing) == {"texas MLP"}
    incomplete = "texas LINKX: chosen among 1 of 2 settings"
    assert report.legend == "ours; best"
    assert report.remarks == ["labels are in", incomplete]
    assert "89.73 FSGNN [V] F" in markdown(report)
    assert csv_text(report).splitlines()[1].startswith("texas,best published,,,89.73")


def test_selection_is_from_the_grid_unless_any_setting_counts(results):
    store(results, [(60.0, 73.0), (60.0, 75.0)], hidden=4)
    store(results, [(80.0, 80.0), (80.0, 80.0)], hidden=64)
    found = [
        cells_of(
            results_table(TABLE, [row()], results, SelectionOptions(settings=which))
        )["LINKX"].mean
        for which in ("grid", "any")
    ]
    assert found == [74.0, 80.0]


def test_fixed_options_of_the_recipe_hold_for_any_setting(results):
    store(results, [(80.0, 80.0), (80.0, 80.0)], hidden=64)
    report = results_table(
        TABLE, [row(hidden="4")], results, SelectionOptions(settings="any")
    )
    assert cells_of(report)["LINKX"].mean is None


def test_settings_without_all_splits_are_not_selected(results):
    store(results, [(60.0, 73.0)], hidden=4)
    (why,) = results_table(TABLE, [row()], results, SelectionOptions()).missing.values()
    assert why == "no setting has all 2 splits yet"


def test_failures_are_the_reason_of_missing_cells(results):
    results.store_failures([row_of(0, hidden=4)], "Traceback\nMemoryError: too large")
    (why,) = results_table(TABLE, [row()], results, SelectionOptions()).missing.values()
    assert why == "failed: MemoryError: too large"


def test_failures_of_other_settings_are_not_the_reason_of_a_missing_cell(results):
    failed = row_of(0, hidden=4, batching="rows")
    results.store_failures([failed], "MemoryError: too large")
    (why,) = results_table(TABLE, [row()], results, SelectionOptions()).missing.values()
    assert "too large" not in why


def test_runs_with_other_dataset_options_are_not_selected(results):
    text = ROWS.format(row="LINKX", method="linkx", hidden="4", mean=70.0)
    seen = parse(text.replace("mean =", "both_ways = true, mean ="), "ours/seen")
    store(results, [(60.0, 73.0), (60.0, 75.0)], hidden=4)
    for which in ("grid", "any"):
        report = results_table(TABLE, [seen], results, SelectionOptions(settings=which))
        assert cells_of(report)["LINKX"].mean is None


def test_minibatches_are_compared_with_the_full_batch(results):
    table = paper_tables()["arxiv-coarse-fine"]
    recipes = [recipe for recipe in table.recipes() if recipe.method == "gcn-jk"]
    dataset = DatasetRef("ogbn-arxiv", "ogbn-arxiv", "abc", 1)
    column = "ogbn-arxiv coarse"
    for recipe, test in zip(recipes, (80.0, 60.0), strict=False):
        (config,) = recipe.configs(recipe.cells[column])
        row = row_of(0, test=test, dataset=dataset, config=config)
        results.store([row])
    report = results_table(table, recipes, results, SelectionOptions())
    full, clusters, *_ = (cells[column] for cells in report.rows.values())
    assert (full.mean, full.relative_error) == (80.0, None)
    assert clusters.relative_error == pytest.approx(25.0)
    assert clusters.printed_relative_error == 2.9
    assert clusters.text == "60.00, 25.0 % lost (68.28, 2.9 % lost)"


@pytest.mark.long
def test_numbers_that_the_paper_quotes_name_their_source(results):
    table = paper_tables()["prior-datasets"]
    report = results_table(table, table.recipes(), results, SelectionOptions())
    assert report.missing["Geom-GCN-I texas"].startswith("quoted from Pei et al.")
    assert report.missing["H2GCN-1 texas"].startswith("quoted from Zhu et al.")
    assert DATASET.name in report.columns


def test_a_number_of_runs_without_a_newer_option_is_explained(results):
    rows = [row_of(split, hidden=4) for split in range(2)]
    for one in rows:
        del one["options"]["directions"]
        del one["options"]["epochs"]
    results.store(rows)
    (cell,) = explain_cells([row()], ("linkx", "texas"), results, SelectionOptions())
    words = cell["command"].split()
    assert words[:4] == ["unalike", "train", "texas", "linkx"]
    assert words[words.index("--directions") + 1] == "out"
    assert words[words.index("--epochs") + 1] == "500"


def test_the_command_of_a_number_finds_a_graph_by_its_path(results, tmp_path):
    path = stored(tmp_path)
    graph = DatasetRef.of(path, find(path))
    results.store([row_of(split, dataset=graph, hidden=4) for split in range(2)])
    recipes = [row().on_datasets([path])]
    (cell,) = explain_cells(recipes, ("linkx", path), results, SelectionOptions())
    assert cell["command"].startswith(f"unalike train {path} linkx ")


@pytest.mark.parametrize("name", ["minibatch", "gcn-minibatch"])
def test_minibatch_tables_lack_the_daggers_of_the_paper(results, name):
    table = paper_tables()[name]
    report = results_table(table, table.recipes(), results, SelectionOptions())
    marked = ["pokec†", "snap-patents†", "twitch-gamers†", "wiki†"]
    assert [head for head in report.headings if "†" in head] == marked
    assert "†: the paper evaluates GraphSAINT on ten random parts" in report.legend
    assert "pokec" in report.rows["LINKX Minibatch"]
    assert r"pokec$\dagger$" in latex(report)


def test_other_tables_have_no_daggers(results):
    report = results_table(TABLE, [row()], results, SelectionOptions())
    assert "†" not in report.legend + "".join(report.headings)


def test_markdown_and_latex_have_the_reasons_of_missing_cells_below_the_table(results):
    table = paper_tables()["prior-datasets"]
    report = results_table(table, table.recipes(), results, SelectionOptions())
    for text in (markdown(report), latex(report)):
        below = text.partition("Geom-GCN-S")[2]
        assert "Geom-GCN-S: no data, quoted from Pei et al. 2020, https" in below
        assert "GCNII texas, GCNII wisconsin" in below


def test_a_choice_among_too_few_settings_is_in_the_markdown(results):
    store(results, [(60.0, 73.0), (60.0, 75.0)], hidden=4)
    text = markdown(results_table(TABLE, [row()], results, SelectionOptions()))
    assert text.endswith("- LINKX texas: chosen among 1 of 2 settings.")


def test_the_legend_says_that_printed_numbers_are_shaded_only_where_they_are(results):
    store(results, [(60.0, 73.0), (60.0, 75.0)], hidden=4)
    for printed, said in ((73.0, False), (75.0, True)):
        rows = [row(), row("MLP", "mlp", mean=printed)]
        report = results_table(TABLE, rows, results, SelectionOptions())
        assert cells_of(report)["MLP"].highlighted is said
        assert ("printed numbers stand in" in report.legend) is said


def test_cells_in_bf16_are_named_below_tables_of_grids_and_of_any_settings(results):
    store(results, [(60.0, 73.0), (60.0, 75.0)], hidden=4, precision="bf16")
    grid = parse(
        ROWS.format(
            row="LINKX", method="linkx", hidden="4\nprecision='bf16'", mean=1.0
        ),
        "ours/grid",
    )
    for recipe, which in ((grid, "grid"), (row(hidden="4"), "any")):
        query = SelectionOptions(settings=which)
        report = results_table(TABLE, [recipe], results, query)
        assert report.notes == ["in bf16, not float32: texas"]


def test_runs_of_a_commit_with_changes_are_counted_below_the_table(results):
    store(results, [(60.0, 73.0)], hidden=4)
    changed = row_of(1, valid=60.0, test=75.0, hidden=4, commit="abc+changes")
    results.store([changed])
    report = results_table(TABLE, [row(hidden="4")], results, SelectionOptions())
    (note,) = report.notes
    assert note.startswith("1 of the 2 runs of these numbers name a commit whose files")
