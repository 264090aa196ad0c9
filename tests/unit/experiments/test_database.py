"""The database stores each run completely and once, and reads it again."""

import gzip
import json
import multiprocessing
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as some
from result_rows import row_of

from unalike import UserError
from unalike.experiments.config import (
    Config,
    DatasetOptions,
    build_method,
    config_from_dict,
)
from unalike.experiments.database import (
    ResultsDatabase,
    compress_curves,
    decompress_curves,
    rekey,
    result_from_row,
)
from unalike.experiments.database_connection import hide_password, write_transaction
from unalike.experiments.export import export_runs, import_runs
from unalike.experiments.plan import DatasetRef
from unalike.experiments.selection import (
    best_by_validation,
    group_by_config,
    on_splits,
)


def test_a_result_comes_back_as_it_was(results):
    results.store([row := row_of()])
    (found,) = results.runs(curves=True)
    assert result_from_row(found) == result_from_row(row)
    assert result_from_row(found).losses == [1.0, 0.5]
    assert "--hidden 32" in result_from_row(found).command
    (short,) = results.runs()
    assert result_from_row(short).losses == []


def test_a_run_is_kept_once_and_as_it_was_first(results):
    assert results.store([row_of(valid=50.0)]) == 1
    assert results.store([row_of(valid=60.0), row_of(1)]) == 1
    assert [row["valid"] for row in results.runs()] == [50.0, 50.0]


def test_all_of_a_stack_is_kept_or_nothing(results):
    broken = {**row_of(1), "test": None}
    with pytest.raises(Exception, match="NOT NULL"):
        results.store([row_of(), broken])
    assert not list(results.runs())
    assert not results.done([row_of()["key"]])


def test_many_keys_are_asked_for_at_once(results):
    rows = [row_of(split) for split in range(3)]
    results.store(rows)
    keys = [row["key"] for row in rows]
    others = [f"{number:032}" for number in range(2_000)]
    assert results.finished_or_failed([*others, *keys]) == set(keys)


def test_a_failure_is_forgotten_when_the_run_succeeds(results):
    row = row_of()
    results.store_failures([row], "too large")
    assert results.failed([row["key"]]) == {row["key"]: "too large"}
    assert results.finished_or_failed([row["key"]]) == {row["key"]}
    results.store([row])
    assert not results.failures()


def test_settings_are_chosen_by_validation_alone(results):
    for split in range(3):
        results.store(
            [
                row_of(split, valid=60.0 + split, test=30.0, hidden=4),
                row_of(split, valid=59.0 + split, test=90.0, hidden=8),
            ]
        )
    results.store([row_of(0, valid=99.0, test=99.0, hidden=16)])
    found = group_by_config(results.runs())
    whole = on_splits(found, range(3))
    assert (len(found), len(whole)) == (3, 2)
    chosen = best_by_validation(whole)
    assert chosen.runs[0]["options"]["hidden"] == 4
    assert (chosen.valid, chosen.test, chosen.std) == (61.0, 30.0, 0.0)
    assert best_by_validation([]) is None


def test_runs_on_other_data_or_seeds_are_not_mixed(results):
    other = DatasetRef("texas", "texas", "def", 3)
    rows = [row_of(0), row_of(1, dataset=other), row_of(2, seed=7)]
    results.store(rows)
    assert len(group_by_config(results.runs())) == 3
    assert not on_splits(group_by_config(results.runs()), range(3))


def test_results_are_carried_to_another_database(results, tmp_path):
    results.store([row_of(0), row_of(1)])
    file = tmp_path / "some.jsonl.gz"
    assert export_runs(results, file) == 2
    first = file.read_bytes()
    assert export_runs(results, file) == 2
    assert file.read_bytes() == first
    other = ResultsDatabase.open(f"sqlite:///{tmp_path / 'other.db'}")
    other.store([row_of(1)])
    assert import_runs(other, file) == (2, 1)
    assert import_runs(other, file) == (2, 0)
    assert [row["key"] for row in other.runs()] == [
        row["key"] for row in results.runs()
    ]
    assert next(iter(other.runs(curves=True)))["curve"]
    other.close()


def test_results_of_a_version_with_fewer_options_keep_their_keys():
    row = row_of(hidden=8)
    old = {**row, "options": {"hidden": 8, "epochs": 500}, "key": "0", "setting": "0"}
    assert rekey(old) == row


def test_a_config_survives_json():
    config = Config(
        build_method("gcn", {"hidden": 8, "lr": 0.5}), DatasetOptions(metric="accuracy")
    )
    document = json.loads(json.dumps(config.to_dict))
    assert config_from_dict(document) == config
    assert config_from_dict(document).hash == config.hash
    assert config.describe() == "lr=0.5 hidden=8 metric=accuracy"


@pytest.mark.parametrize(
    ("lines", "packed"),
    [
        (b"", bytes),
        (b"nothing", bytes),
        (b'"other"\n', gzip.compress),
        (b"{}\n{}", gzip.compress),
    ],
)
def test_files_that_hold_no_results(results, tmp_path, lines, packed):
    file = tmp_path / "broken.gz"
    file.write_bytes(packed(lines))
    with pytest.raises(UserError, match=r"broken\.gz holds no results"):
        import_runs(results, file)
    assert not list(results.runs())


def test_a_file_that_was_cut(results, tmp_path):
    results.store([row_of(split) for split in range(3)])
    file = tmp_path / "cut.gz"
    export_runs(results, file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"cut\.gz holds no results"):
        import_runs(results, file)


@given(some.lists(some.tuples(*[some.floats(width=32, allow_nan=False)] * 2)))
def test_curves_are_packed_and_unpacked(pairs):
    curves = [list(curve) for curve in zip(*pairs, strict=True)] or [[], []]
    assert decompress_curves(compress_curves(curves)) == curves


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("results.db", "names no database; write sqlite:///results.db"),
        ("mysql://host/name", "No kind of database 'mysql'"),
        ("sqlite:////nowhere/at/all.db", "cannot be opened"),
    ],
)
def test_databases_that_are_none(url, message):
    with pytest.raises(UserError, match=message):
        ResultsDatabase.open(url)


def test_looking_makes_no_file(tmp_path):
    file = tmp_path / "none.db"
    kept = ResultsDatabase.read(f"sqlite:///{file}")
    assert not list(kept.runs())
    assert not file.exists()
    kept.close()


SECRET = "postgresql://me:se/cr:et@host/name"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (SECRET, "postgresql://me:***@host/name"),
        ("postgresql://me:a@b@host:1/n", "postgresql://me:***@host:1/n"),
        ("postgresql:///n?password=x&host=h", "postgresql:///n?password=***&host=h"),
        ("no postgresql://:x@h/n here", "no postgresql://:***@h/n here"),
        ("postgresql://me@host:5432/n", "postgresql://me@host:5432/n"),
        ("sqlite:///results.db", "sqlite:///results.db"),
    ],
)
def test_passwords_of_urls_are_hidden(text, shown):
    assert hide_password(text) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:se-cret@127.0.0.1:1/name",
        "postgresql://me@127.0.0.1:1/name?password=se-cret",
        "postgresql//me:se-cret@host/name",
        "post gresql://me:se-cret@host:port/name",
        "postgresql://me:se-cret@host:port/name",
    ],
)
def test_errors_do_not_show_the_password_of_a_database(url):
    for connect in (ResultsDatabase.open, ResultsDatabase.read):
        with pytest.raises(UserError) as error:
            connect(url)
        assert "se-cret" not in str(error.value)


def test_a_database_is_read_while_another_process_writes(url, results):
    results.store([row_of()])
    with write_transaction(results.engine), ResultsDatabase.read(url) as reader:
        assert len(list(reader.runs())) == 1


def read_without_rights(file, out):
    """Read a database as a user who may not write it, and write what is found."""
    if os.getuid() == 0:
        os.setuid(65534)
    with ResultsDatabase.read(f"sqlite:///{file}") as results:
        found = [row["answers"] for row in results.runs(answers=True)]
    os.write(out, json.dumps(found).encode())


def test_a_database_file_that_cannot_be_written_is_read(readable_folder):
    file = readable_folder / "a results.db"
    with ResultsDatabase.open(f"sqlite:///{file}") as results:
        results.store([row_of(0), row_of(1)])
    assert as_reader(readable_folder, file) == [None, None]


def test_an_older_database_file_that_cannot_be_written_is_read(readable_folder):
    file = readable_folder / "results.db"
    with ResultsDatabase.open(f"sqlite:///{file}") as results:
        results.store([row_of(0)])
        with results.engine.begin() as connection:
            connection.exec_driver_sql("drop table answers")
    assert as_reader(readable_folder, file) == [None]


@pytest.fixture
def readable_folder():
    """A folder that all users can read; its owner too can write nothing in the end."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)
        Path(folder).chmod(0o755)


def as_reader(folder, file):
    file.chmod(0o444)
    folder.chmod(0o555)
    before = file.read_bytes()
    reader, writer = os.pipe()
    process = multiprocessing.get_context("fork").Process(
        target=read_without_rights, args=(file, writer)
    )
    process.start()
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    process.join()
    assert process.exitcode == 0
    assert file.read_bytes() == before
    return json.loads(text)


def test_a_postgres_user_who_may_only_read_reads(postgres):
    with ResultsDatabase.open(postgres) as results:
        results.store([row_of()])
        with results.engine.begin() as connection:
            connection.exec_driver_sql("drop role if exists reader")
            connection.exec_driver_sql("create role reader login")
            grant = "grant select on all tables in schema public to reader"
            connection.exec_driver_sql(grant)
    try:
        with ResultsDatabase.read(postgres.replace("test@", "reader@")) as reader:
            assert len(list(reader.runs())) == 1
    finally:
        with (
            ResultsDatabase.open(postgres) as results,
            results.engine.begin() as connection,
        ):
            connection.exec_driver_sql("drop owned by reader")
            connection.exec_driver_sql("drop role reader")
