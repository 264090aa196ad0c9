"""Stored runs are under the same keys, and every table of them is the same."""

import json

import pytest
from commands import (
    DONE_SWEEPS,
    EXPORT,
    FOLDER,
    PEOPLE,
    RECIPE,
    WHOLE_TABLES,
    call,
    database,
    document,
    dry_run,
    frozen,
    lines,
    plan,
    run_keys,
    select,
    sha256,
)


@pytest.mark.long
def test_run_config_and_stack_keys_of_stored_runs(stored_runs):
    expected = frozen("keys")
    rows = run_keys(stored_runs, expected["columns"])
    found = {row[0]: row for row in rows}
    assert [found.get(row[0]) for row in expected["sample"]] == expected["sample"]
    assert len(rows) == expected["runs"]
    assert sha256(json.dumps(rows)) == expected["sha256"]


@pytest.mark.parametrize("name", frozen("tables"))
def test_tables_of_stored_runs_are_the_same_bytes(table_texts, name):
    assert sha256(table_texts[name]) == frozen("tables")[name], table_texts[name]


def test_every_table_is_compared(table_texts):
    assert set(table_texts) == set(frozen("tables"))


@pytest.mark.parametrize("name", WHOLE_TABLES)
def test_the_text_of_a_table_is_the_same(table_texts, name):
    words, form = WHOLE_TABLES[name]
    text = table_texts[f"{' '.join(words)}: {form}"]
    assert text == (FOLDER / name).read_text("utf-8")


@pytest.mark.parametrize("name", DONE_SWEEPS)
@pytest.mark.long
def test_stored_runs_on_real_graphs_are_done(real_graphs, stored_runs, name):
    words = (*dry_run(DONE_SWEEPS[name]), "--results", database(stored_runs))
    found = plan(document(*words))
    assert found == frozen("done")[name]
    assert found["left"] == 0 < found["runs"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A database file with the runs of the export file."""
    path = tmp_path_factory.mktemp("imported") / "results.db"
    output = document("results", "import", EXPORT, "--results", database(path))
    assert output == {"runs": 8, "new": 8}
    return path


def test_runs_of_an_export_file_have_the_same_keys(imported):
    expected = frozen("export_keys")
    assert run_keys(imported, expected["columns"]) == expected["rows"]


def test_runs_of_an_export_file_are_done(imported):
    words = dry_run((RECIPE, "--on", PEOPLE))
    output = document(*words, "--results", database(imported))
    assert (output["runs"], output["left"]) == (8, 0)


def test_an_imported_export_file_is_exported_with_the_same_rows(imported, tmp_path):
    out = tmp_path / "again.jsonl.gz"
    call("results", "export", out, "--results", database(imported))
    assert lines(out) == lines(EXPORT)


def test_curves_and_test_answers_of_an_export_file_are_in_the_database(imported):
    keys = select(imported, "SELECT key FROM runs ORDER BY key")
    for table in ("curves", "answers"):
        assert select(imported, f"SELECT key FROM {table} ORDER BY key") == keys


def test_the_sweep_of_an_export_file_gives_its_scores(tmp_path):
    path, out = tmp_path / "own.db", tmp_path / "own.jsonl.gz"
    words = ("--results", database(path))
    call("sweep", RECIPE, "--on", PEOPLE, "--device", "cpu", *words)
    call("results", "export", out, *words)
    found, expected = outcomes(out), outcomes(EXPORT)
    assert found.keys() == expected.keys()
    for name, scores in found.items():
        assert scores == pytest.approx(expected[name])


def outcomes(path):
    """The scores of each run of an export file, by all that makes it that run."""
    names = ("dataset_hash", "options", "split", "seed", "view", "metric")
    scores = ("train", "valid", "test", "best_epoch")
    return {
        json.dumps([row[name] for name in names]): [row[name] for name in scores]
        for row in lines(path)[1:]
    }
