"""Damaged and locked databases: a result, or an error of one line."""

import sqlite3
from contextlib import suppress

import pytest
from damage import damage, run_command
from sweep_fixtures import small_plan, stored

from unalike import UserError
from unalike.experiments import database, database_connection
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.sweep import sweep


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The file of a database with twelve runs, without a log."""
    monkeypatch.chdir(tmp_path)
    sweep(small_plan(stored(tmp_path), hidden="[4]", epochs=2), "sqlite:///results.db")
    path = tmp_path / "results.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path


COMMANDS = [
    ["results", "export", "out.jsonl.gz"],
    ["table", "prior-datasets"],
    ["report", "--no-measures", "--out", "site"],
    ["results", "import", "whole.jsonl.gz"],
]


def test_a_damaged_database_ends_in_a_result_or_an_error_of_one_line(
    results, some, capsys
):
    assert run_command(["results", "export", "whole.jsonl.gz"], capsys)[0] == 0
    whole = results.read_bytes()
    for number, rng in enumerate(some):
        content = damage(whole, rng)
        if rng.random() < 0.5:
            content = damage(content, rng)
        results.write_bytes(content)
        for end in ("-wal", "-shm"):
            results.with_name(results.name + end).unlink(missing_ok=True)
        run_command(COMMANDS[0 if number % 10 else number // 10 % 4], capsys)


@pytest.mark.long
def test_a_value_of_a_wrong_type_is_an_error_of_one_line(results, some, capsys):
    columns = list(database.COLUMN_TYPES)
    whole = results.read_bytes()
    for rng in some[: max(25, len(some) // 10)]:  # a report takes seconds
        results.write_bytes(whole)
        name = rng.choice(columns)
        value = rng.choice(["'x'", "x'00ff'", "1e999", "-9e99", "'[1]'", "'{'", "7"])
        connection = sqlite3.connect(results)
        with suppress(sqlite3.IntegrityError):  # keys are unique
            connection.execute(f'UPDATE runs SET "{name}" = {value} WHERE split = 1')
        connection.commit()
        connection.close()
        run_command(rng.choice([*COMMANDS[:1] * 8, *COMMANDS[1:3]]), capsys)


@pytest.mark.parametrize("column", ["dataset", "method"])
def test_a_report_of_names_that_are_no_text_is_an_error_of_one_line(
    results, column, capsys
):
    with sqlite3.connect(results) as connection:
        connection.execute(f"UPDATE runs SET {column} = x'00ff' WHERE split = 1")
    connection.close()
    assert run_command(COMMANDS[2], capsys)[0] == 1


def test_a_database_that_stays_locked_is_an_error_of_one_line(results, monkeypatch):
    monkeypatch.setattr(database_connection, "WRITE_PRAGMAS", ("busy_timeout = 50",))
    connection = sqlite3.connect(results, isolation_level=None)
    with ResultsDatabase.open(f"sqlite:///{results}") as opened:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UserError, match="locked"):
            opened.delete_failures(["a"])
        connection.execute("ROLLBACK")
    connection.close()


def test_damaged_sql_in_a_database_is_an_error_of_one_line(results, capsys):
    content = results.read_bytes()
    place = content.index(b"CREATE TABLE runs") + 7
    results.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
    assert run_command(COMMANDS[0], capsys)[0] == 1
