"""Stored runs are under the same keys, and every table of them is the same."""

import json

import pytest
from commands import (
    DONE_SWEEPS,
    EXPORT,
    FOLDER,
    OUTPUTS,
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
    table_words,
)


def test_run_config_and_stack_keys_of_stored_runs(stored_runs):
    expected = frozen("keys")
    rows = run_keys(stored_runs, expected["columns"])
    found = {row[0]: row for row in rows}
    assert [found.get(row[0]) for row in expected["sample"]] == expected["sample"]
    assert len(rows) == expected["runs"]
    assert sha256(json.dumps(rows)) == expected["sha256"]


@pytest.mark.parametrize(("words", "form"), OUTPUTS)
def test_tables_of_stored_runs_are_the_same_bytes(stored_runs, no_data, words, form):
    more = ("--results", database(stored_runs), "--data", no_data)
    text = call(*table_words(words, form), *more)
    assert sha256(text) == frozen("tables")[f"{' '.join(words)}: {form}"], text


@pytest.mark.parametrize("name", WHOLE_TABLES)
def test_the_text_of_a_table_is_the_same(stored_runs, no_data, name):
    words, form = WHOLE_TABLES[name]
    more = ("--results", database(stored_runs), "--data", no_data)
    text = call(*table_words(words, form), *more)
    assert text == (FOLDER / name).read_text("utf-8")


@pytest.mark.parametrize("name", DONE_SWEEPS)
def test_stored_runs_on_real_graphs_are_done(real_graphs, stored_runs, name):
    words = (*dry_run(DONE_SWEEPS[name]), "--results", database(stored_runs))
    found = plan(document(*words))
    assert found == frozen("done")[name]
    assert found["left"] == 0 < found["runs"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A database file with the runs of the export file."""
    path = tmp_path_factory.mktemp("imported") / "results.db"
    told = document("results", "import", EXPORT, "--results", database(path))
    assert told == {"runs": 8, "new": 8}
    return path


def test_runs_of_an_export_file_have_the_same_keys(imported):
    expected = frozen("export_keys")
    assert run_keys(imported, expected["columns"]) == expected["rows"]


def test_runs_of_an_export_file_are_done(imported):
    words = dry_run((RECIPE, "--on", PEOPLE))
    told = document(*words, "--results", database(imported))
    assert (told["runs"], told["left"]) == (8, 0)


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
    assert list(map(outcome, lines(out)[1:])) == list(map(outcome, lines(EXPORT)[1:]))


def outcome(row):
    """What a run came to, without time, place and version."""
    names = ("dataset_hash", "options", "split", "seed", "view", "metric")
    scores = ("train", "valid", "test", "best_epoch")
    return [row[name] for name in names], pytest.approx([row[n] for n in scores])
