"""Damaged results files and recipes: what is wrong is named, what is right is kept."""

import gzip
import json

import pytest
from damage import damage, run_command
from sweep_fixtures import outcome, recipe_text, small_plan, stored

from unalike import UserError
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.export import export_runs, import_runs
from unalike.experiments.recipe import parse
from unalike.experiments.sweep import sweep

ODD = [None, True, -1, 2**70, 1e308, "", "x" * 50, [], {}, [[1]], "nan", {"a": 1}]


@pytest.fixture
def file(tmp_path):
    """A results file of twelve runs."""
    url = f"sqlite:///{tmp_path / 'first.db'}"
    sweep(small_plan(stored(tmp_path), hidden="[4]", epochs=2), url)
    path = tmp_path / "runs.jsonl.gz"
    with ResultsDatabase.open(url) as results:
        export_runs(results, path)
    return path


@pytest.fixture
def imported(tmp_path):
    """Import a file into a new database; the runs it holds, and the error."""
    url = f"sqlite:///{tmp_path / 'second.db'}"

    def read(path):
        (tmp_path / "second.db").unlink(missing_ok=True)
        error = ""
        with ResultsDatabase.open(url) as results:
            try:
                import_runs(results, path)
            except UserError as raised:
                error = str(raised)
        return outcome(url), error

    return read


def test_a_damaged_results_file_loses_nothing_silently(file, imported, some):
    whole, (expected, _) = file.read_bytes(), imported(file)
    assert len(expected) == 12
    for rng in some:
        file.write_bytes(damage(whole, rng))
        found, error = imported(file)
        assert set(found) <= set(expected)
        assert error or found == expected


def test_wrong_values_are_counted_and_named(file, imported, some):
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    expected = set(imported(file)[0])
    for rng in some:
        number = rng.randrange(1, len(lines))
        row = json.loads(lines[number])
        name = rng.choice(list(row))
        row[name] = rng.choice(ODD)
        if rng.random() < 0.2:
            del row[name]
        changed = [*lines[:number], json.dumps(row), *lines[number + 1 :]]
        file.write_bytes(gzip.compress("\n".join([*changed, ""]).encode()))
        found, error = imported(file)
        assert len(found) >= 11
        assert len(expected & set(found)) >= 11
        assert "\n" not in error
        if error:
            assert f"1 lines that are no runs: line {number + 1} (" in error


def test_a_long_line_does_not_fill_the_memory(file, imported, monkeypatch):
    monkeypatch.setattr("unalike.experiments.export.MAX_LINE_BYTES", 1000)
    _, error = imported(file)
    assert "longer than 1,000 bytes" in error


def test_a_curve_that_inflates_without_end_is_refused(file, imported, monkeypatch):
    monkeypatch.setattr("unalike.experiments.database.MAX_CURVE_BYTES", 8)
    _, error = imported(file)
    assert "12 lines that are no runs" in error
    assert "too long" in error


def test_recipes_with_wrong_types_are_refused_or_planned(
    tmp_path, monkeypatch, some, capsys
):
    monkeypatch.chdir(tmp_path)
    text = recipe_text(stored(tmp_path), hidden="[4]", epochs=2)
    assert parse(text, "whole").cells
    words = ["sweep", "own.toml", "--dry-run"]
    for rng in some:
        lines = text.splitlines()
        number = rng.choice([i for i, line in enumerate(lines) if " = " in line])
        name = lines[number].partition(" = ")[0]
        value = rng.choice(
            ['"x"', "-1", "[]", "{ a = 1 }", "1e999", "nan", "true", "7"]
        )
        lines[number] = f"{name} = {value}"
        content = "\n".join(lines).encode()
        (tmp_path / "own.toml").write_bytes(
            damage(content, rng) if rng.random() < 0.3 else content
        )
        run_command(words, capsys)
