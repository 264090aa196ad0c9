"""A cell of a table compares runs on the same data, the same splits and one seed."""

import pytest
from graphs import suiting
from result_rows import row_of
from sweep_fixtures import stored

from unalike import UserError, random_splits, save_graph
from unalike.datasets import find
from unalike.experiments.plan import DatasetRef
from unalike.experiments.recipe import PaperTable, parse
from unalike.experiments.selection import CellSelector, SelectionOptions
from unalike.reports.result_tables import results_table

TABLE = PaperTable("ours", "Our table", "best", [])
RECIPE = """
row = "{method}"
method = "{method}"
{splits}
[grid]
hidden = [4, 8]
[cells]
texas = {{}}
"""


def recipe(dataset, splits="splits = 10", method="linkx"):
    text = RECIPE.format(method=method, splits=splits)
    return parse(text, "ours/row").on_datasets([dataset])


def store(results, dataset, valid, test, *, splits=range(3), **options):
    """Runs of a configuration with equal scores on some splits."""
    results.store(
        [
            row_of(split, valid=valid, test=test, dataset=dataset, **options)
            for split in splits
        ]
    )


def graph_at(folder, seed=0):
    """A stored graph with three splits, and the reference that its runs have."""
    graph = suiting(nodes=60)
    splits = random_splits(graph.labels, count=3, seed=seed)
    save_graph(folder, graph, splits=splits)
    return DatasetRef.of(str(folder), find(str(folder)))


def selected(results, row, **options):
    selector = CellSelector(results, SelectionOptions(**options))
    (cell,) = row.cells.values()
    return selector.select(row, cell)


def test_a_graph_with_fewer_splits_than_the_recipe_fills_its_cell(results, tmp_path):
    graph = graph_at(tmp_path / "people")
    store(results, graph, 60.0, 70.0, hidden=4)
    assert selected(results, recipe(graph.lookup_name)).chosen.test == 70.0


def test_an_unknown_graph_with_fewer_splits_fills_its_cell_by_its_runs(results):
    store(results, DatasetRef("gone", "gone", "abc", 3), 60.0, 70.0, hidden=4)
    assert selected(results, recipe("gone")).chosen.test == 70.0


def test_a_known_dataset_that_is_not_here_needs_all_splits_of_the_recipe(results):
    store(results, DatasetRef("texas", "texas", "abc", 3), 60.0, 70.0, hidden=4)
    found = selected(results, recipe("texas"))
    assert (found.chosen, found.missing) == (None, "no setting has all 10 splits yet")


def test_a_missing_cell_has_the_number_of_splits_also_without_one_in_the_recipe(
    results, tmp_path
):
    graph = graph_at(tmp_path / "people")
    store(results, graph, 60.0, 70.0, splits=[0], hidden=4)
    found = selected(results, recipe(graph.lookup_name, splits=""))
    assert found.missing == "no setting has all 3 splits yet"


def test_two_graphs_of_one_name_do_not_compete(results, tmp_path):
    first, second = graph_at(tmp_path / "a/people"), graph_at(tmp_path / "b/people", 1)
    assert (first.name, second.name) == ("people", "people")
    assert first.hash != second.hash
    store(results, first, 60.0, 70.0, hidden=4)
    store(results, second, 90.0, 95.0, hidden=8)
    found = [selected(results, recipe(one.lookup_name)) for one in (first, second)]
    assert [one.chosen.test for one in found] == [70.0, 95.0]
    assert [one.num_complete for one in found] == [1, 1]


def test_runs_on_older_data_are_not_shown_for_the_data_at_hand(results, tmp_path):
    graph = graph_at(tmp_path / "people")
    store(results, DatasetRef("people", "people", "old", 3), 90.0, 95.0, hidden=4)
    row = recipe(graph.lookup_name)
    found = selected(results, row)
    assert found.chosen is None
    assert found.missing == "all runs are on other data than those at hand"
    report = results_table(TABLE, [row], results, SelectionOptions())
    assert report.remarks == ["people: 3 of 3 runs are on other data"]


def test_a_cell_with_runs_outside_the_grid_is_not_said_to_be_not_run(results):
    store(results, DatasetRef("gone", "gone", "abc", 3), 60.0, 70.0, hidden=16)
    found = selected(results, recipe("gone"))
    assert found.missing == (
        "run only with settings outside the grid, which --settings any shows"
    )
    assert selected(results, recipe("gone"), settings="any").chosen.test == 70.0


def test_without_data_all_methods_have_the_version_with_the_most_runs(results):
    old, new = (DatasetRef("gone", "gone", hash, 3) for hash in ("old", "new"))
    store(results, old, 60.0, 70.0, hidden=4)
    store(results, old, 61.0, 71.0, hidden=8)
    store(results, new, 90.0, 95.0, hidden=4)
    assert selected(results, recipe("gone")).chosen.test == 71.0
    other = selected(results, recipe("gone", method="mlp"))
    assert (other.chosen, other.num_complete) == (None, 0)


def test_without_data_the_newer_of_two_versions_with_equally_many_runs(results):
    for hash, finished in (("b", 10.0), ("c", 30.0), ("a", 20.0)):
        rows = [row_of(0, test=finished, dataset=DatasetRef("gone", "gone", hash, 1))]
        results.store([{**row, "finished": finished} for row in rows])
    found = selected(results, recipe("gone"), settings="any")
    assert found.chosen.test == 30.0


def test_seeds_do_not_compete_unless_asked(results):
    gone = DatasetRef("gone", "gone", "abc", 3)
    store(results, gone, 60.0, 70.0, hidden=4)
    store(results, gone, 50.0, 71.0, hidden=8)
    store(results, gone, 90.0, 95.0, hidden=4, seed=1)
    row = recipe("gone")
    found = selected(results, row)
    assert (found.chosen.test, found.num_complete, found.grid_size) == (70.0, 2, 2)
    assert selected(results, row, seed="1").chosen.test == 95.0
    assert selected(results, row, seed="any").chosen.test == 95.0
    assert selected(results, row, seed="2").chosen is None
    with pytest.raises(UserError, match="--seed is 'one'; write a number, most or any"):
        selected(results, row, seed="one")


def test_of_two_seeds_with_equally_many_configurations_the_lower_is_shown(results):
    gone = DatasetRef("gone", "gone", "abc", 3)
    store(results, gone, 90.0, 95.0, hidden=4, seed=1)
    store(results, gone, 60.0, 70.0, hidden=4, seed=0)
    assert selected(results, recipe("gone")).chosen.test == 70.0


def test_a_configuration_with_more_splits_is_compared_on_the_same_splits(results):
    texas = DatasetRef("texas", "texas", "abc", 10)
    store(results, texas, 60.0, 70.0, splits=range(3), hidden=4)
    store(results, texas, 50.0, 20.0, splits=range(3), hidden=8)
    store(results, texas, 99.0, 99.0, splits=range(3, 10), hidden=8)
    found = selected(results, recipe("texas", splits="splits = 3"))
    assert (found.chosen.test, len(found.chosen.runs)) == (70.0, 3)


def test_the_mean_of_a_cell_is_over_the_splits_of_the_recipe(results):
    texas = DatasetRef("texas", "texas", "abc", 10)
    store(results, texas, 60.0, 70.0, splits=range(3), hidden=4)
    store(results, texas, 60.0, 100.0, splits=range(3, 10), hidden=4)
    found = selected(results, recipe("texas", splits="splits = 3"))
    assert (found.chosen.test, found.chosen.std) == (70.0, 0.0)


def test_a_dataset_is_not_converted_for_a_table(results, tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(data))
    found = selected(results, recipe("chameleon-twin"), data=data)
    assert found.missing == "not run"
    assert not any(data.iterdir())


def test_a_table_reads_the_runs_of_a_stored_graph_by_its_path(results, tmp_path):
    path = stored(tmp_path)
    store(results, DatasetRef.of(path, find(path)), 60.0, 70.0, hidden=4)
    report = results_table(TABLE, [recipe(path)], results, SelectionOptions())
    assert (report.rows["linkx"][path].mean, report.remarks) == (
        70.0,
        ["linkx " + path + ": chosen among 1 of 2 settings"],
    )
