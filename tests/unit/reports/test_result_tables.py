"""Results tables: selection, comparison, highlighting and missing results."""

import pytest
from result_rows import DATASET, row_of

from unalike.experiments.plan import DatasetRef
from unalike.experiments.recipe import PaperTable, paper_tables, parse
from unalike.experiments.selection import SelectionOptions
from unalike.reports.result_tables import results_table

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


def test_numbers_that_the_paper_quotes_name_their_source(results):
    table = paper_tables()["prior-datasets"]
    report = results_table(table, table.recipes(), results, SelectionOptions())
    assert report.missing["Geom-GCN-I texas"].startswith("quoted from Pei et al.")
    assert report.missing["H2GCN-1 texas"].startswith("quoted from Zhu et al.")
    assert DATASET.name in report.columns
