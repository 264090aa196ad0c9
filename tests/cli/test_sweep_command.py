"""`unalike sweep`, `unalike table` and `unalike results`, from recipe to table."""

import gc
import gzip
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_server import command
from postgres import serving
from sweep_fixtures import recipe_text, stored

from unalike.cli import console
from unalike.cli import table as table_command
from unalike.cli.main import main
from unalike.experiments import recipe as recipes
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import active_leases, count_active
from unalike.experiments.recipe import parse
from unalike.methods.linkx import LINKX


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    text = recipe_text(stored(tmp_path), hidden="[4, 8]", epochs=3)
    (tmp_path / "mine.toml").write_text(text)
    return tmp_path


def run_json(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def swept(folder, capsys):
    return run_json(capsys, "sweep", "mine.toml", "--device", "cpu")


@pytest.fixture
def ours(folder, monkeypatch):
    """A results table with the small recipe as its only row."""
    table = recipes.PaperTable("ours", "Our table", "best", ["mine"])
    recipe = parse((folder / "mine.toml").read_text(), "ours/mine")
    monkeypatch.setattr(recipes.PaperTable, "recipes", lambda _: [recipe])
    monkeypatch.setattr(table_command, "paper_tables", lambda: {"ours": table})
    return recipe


def test_a_log_tells_how_far_a_sweep_is(folder, capsys, monkeypatch):
    monkeypatch.setattr(console, "LINE_SECONDS", 0.0)
    assert main(["sweep", "mine.toml", "--device", "cpu"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("sweep: 0 of 24 runs; 12 running, 0 failed; now small")
    assert any(line.endswith("now small linkx, 3 of 3 epochs") for line in lines)
    assert lines[-1].startswith("sweep: 24 of 24 runs, about 0 min left; 0 running")


def test_a_log_that_nobody_reads_spoils_no_run(folder, capsys, monkeypatch):
    def closed(*words, **options):
        raise BrokenPipeError

    monkeypatch.setattr(console, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(console.ERR, "print", closed)
    found = run_json(capsys, "sweep", "mine.toml", "--device", "cpu")
    assert (found["done"], found["failed"]) == (24, 0)


def test_a_plan_says_what_failed(folder, capsys, monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(LINKX, "network", broken)
        assert main(["sweep", "mine.toml", "--device", "cpu"]) == 0
    assert "note: 24 runs failed: RuntimeError: broken" in capsys.readouterr().err
    assert main(["sweep", "mine.toml", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert err == "note: 24 runs failed before; --retry tries them again.\n"
    assert out.startswith("0 of 24 runs")
    again = run_json(capsys, "sweep", "mine.toml", "--dry-run", "--retry")
    assert (again["left"], again["failed"]) == (24, 24)


def test_a_plan_says_what_is_left(folder, capsys):
    before = run_json(capsys, "sweep", "mine.toml", "--dry-run")
    assert (before["runs"], before["left"], before["seconds"]) == (24, 24, None)
    assert [group["runs"] for group in before["bundles"]] == [12, 12]
    assert not list(folder.glob("*.db"))
    shorter = run_json(capsys, "sweep", "mine.toml", "--dry-run", "--set", "hidden=4")
    assert shorter["runs"] == 12
    assert main(["sweep", "mine.toml", "--dry-run", "--only", "hidden=4"]) == 0
    out = capsys.readouterr().out
    assert "12 of 12 runs in 1 stacks are left; time: unknown." in out
    assert "epochs=3 hidden=4 layers=2" in out


def test_a_sweep_runs_and_has_then_nothing_left(folder, swept, capsys):
    assert (swept["runs"], swept["done"], swept["failed"]) == (24, 24, 0)
    assert run_json(capsys, "sweep", "mine.toml", "--dry-run")["left"] == 0
    assert main(["sweep", "mine.toml"]) == 0
    assert capsys.readouterr().out.startswith("24 of 24 runs done, 0 failed.\n")


def test_the_table_is_made_of_the_results(folder, swept, ours, capsys):
    document = run_json(capsys, "table", "ours")
    ((row, cells),) = document["rows"].items()
    (cell,) = cells.values()
    assert (row, cell["printed_mean"], cell["shaded"]) == ("ours/mine", 70.0, True)
    assert cell["deviations"] == pytest.approx((cell["mean"] - 70.0) / 2.0)
    (choice,) = run_json(capsys, "table", "ours", "--explain", "linkx", *ours.cells)
    assert choice["test"] == cell["mean"]
    assert (choice["settings"], choice["of"]) == (8, 8)
    results = ResultsDatabase.open("sqlite:///results.db")
    means = {}
    for run in results.runs():
        means.setdefault(run["setting"], []).append(run["valid"])
    results.close()
    assert choice["valid"] == pytest.approx(max(sum(v) / 3 for v in means.values()))
    assert [run["split"] for run in choice["runs"]] == [0, 1, 2]


@pytest.mark.parametrize("form", ["rich", "markdown", "latex", "csv"])
@pytest.mark.long
def test_the_table_in_every_format(folder, swept, ours, capsys, form):
    assert main(["table", "ours", "--format", form]) == 0
    out, err = capsys.readouterr()
    wanted = {"rich": "◆ ", "markdown": "| **", "latex": r"\cellcolor{gray!25} "}
    assert wanted.get(form, "ours/mine,") in out
    assert "70.0" in out
    assert err == "" or form == "csv"


def test_a_table_without_results_says_why(folder, ours, capsys):
    (why,) = run_json(capsys, "table", "ours")["missing"].values()
    assert why == "not run"
    assert main(["table", "ours"]) == 0
    out, err = capsys.readouterr()
    assert "– (70.00 ± 2.00)" in out
    assert "no data, not run." in out
    assert err == ""


def test_a_choice_among_too_few_settings_is_remarked(folder, ours, capsys):
    assert main(["sweep", "mine.toml", "--only", "hidden=4"]) == 0
    capsys.readouterr()
    assert main(["table", "ours"]) == 0
    assert "chosen among 4 of 8 settings" in capsys.readouterr().out


def test_the_command_of_a_choice_can_be_run(folder, swept, ours, capsys):
    (choice,) = run_json(capsys, "table", "ours", "--explain", "linkx", *ours.cells)
    assert main(["table", "ours", "--explain", "linkx", *ours.cells]) == 0
    assert choice["command"] in capsys.readouterr().out
    again = run_json(capsys, *choice["command"].split()[1:])
    assert [row["split"] for row in again["splits"]] == [0, 1, 2]


def test_results_go_out_and_come_in(folder, swept, capsys):
    assert run_json(capsys, "results", "export", "all.gz") == {"runs": 24}
    other = ("--results", "sqlite:///other.db")
    assert run_json(capsys, "results", "import", "all.gz", *other) == {
        "runs": 24,
        "new": 24,
    }
    assert main(["results", "import", "all.gz", *other]) == 0
    assert capsys.readouterr().out == "24 runs, 0 new.\n"
    assert run_json(capsys, "sweep", "mine.toml", "--dry-run", *other)["left"] == 0


def test_what_is_bulky_may_be_left_out(folder, swept, capsys):
    def lines(*words):
        assert run_json(capsys, "results", "export", "some.gz", *words) == {"runs": 24}
        with gzip.open("some.gz", "rt") as file:
            return [json.loads(line) for line in file.readlines()[1:]]

    whole = lines()
    assert all(run["curve"] and run["answers"] for run in whole)
    bare = lines("--no-curves", "--no-answers")
    dropped = {"curve", "answers"}
    for run, other in zip(bare, whole, strict=True):
        assert not (run["curve"] or run.get("answers"))
        assert {key: run[key] for key in run.keys() - dropped} == {
            key: other[key] for key in other.keys() - dropped
        }


def test_a_search_instead_of_the_grid(folder, capsys):
    words = ("sweep", "mine.toml", "--search", "optuna", "--trials")
    (found,) = run_json(capsys, *words, "3")
    assert (found["method"], found["trials"]) == ("linkx", 3)
    (again,) = run_json(capsys, *words, "4")
    assert again["trials"] == 4
    assert again["valid"] >= found["valid"]
    assert main([*words, "4"]) == 0
    assert "after 4 trials" in capsys.readouterr().out


def num_workers(results):
    """How many processes hold runs."""
    with results.engine.connect() as connection:
        return len(set(active_leases(connection).values()))


@pytest.fixture
def working(folder):
    """Two processes that work on something long, and their results."""
    text = (folder / "mine.toml").read_text().replace("epochs = 3", "epochs = 100_000")
    (folder / "long.toml").write_text(
        f'{text}\n"{stored(folder, name="more")}" = {{}}\n'
    )
    words = ["sweep", "long.toml", "--jobs", "2", "--device", "cpu"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with ResultsDatabase.open("sqlite:///results.db") as results:
        process = subprocess.Popen([command(), *words], **quiet)
        while num_workers(results) < 2:
            assert process.poll() is None
            time.sleep(0.1)
        yield process, results
        process.kill()
        process.wait()


@pytest.mark.long
def test_all_processes_stop_when_one_is_interrupted(working):
    process, results = working
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert count_active(results.engine) == 0


@pytest.mark.long
def test_no_process_works_on_when_its_sweep_was_killed(working):
    process, results = working
    process.kill()
    process.wait()
    for _ in range(600):
        if not count_active(results.engine):
            break
        time.sleep(0.1)
    assert count_active(results.engine) == 0
    assert not list(results.runs())


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["sweep", "mine.tom"], "No recipe 'mine.tom'"),
        (["sweep", "mine.toml", "--jobs", "0"], "--jobs is 0; at least 1"),
        (["sweep", "mine.toml", "--lease", "0"], "--lease is 0; at least 1 second"),
        (["sweep", "mine.toml", "--only", "linkx"], "--only is 'linkx'"),
        (["sweep", "mine.toml", "--set", "epochs"], "--set is 'epochs'"),
        (["sweep", "mine.toml", "--only", "datset=small"], "Nothing fits --only"),
        (["sweep", "mine.toml", "--search", "optun"], "Did you mean 'optuna'?"),
        (["sweep", "mine.toml", "--results", "x.db"], "'x.db' names no database"),
        (["table", "full-batches"], "Did you mean 'full-batch'?"),
        (["table", "full-batch", "--settings", "all"], "No choice of settings 'all'"),
        (
            ["table", "ablation", "--explain", "linkx", "pen94"],
            "Did you mean 'penn94'?",
        ),
        (["results", "exprot", "x.gz"], "Did you mean 'export'?"),
        (["results", "import", "x.gz"], "x.gz holds no results"),
    ],
)
def test_mistakes_give_an_error_of_one_line(folder, capsys, words, wanted):
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert wanted in err


@pytest.mark.long
def test_the_password_of_a_database_is_not_shown(folder, capsys):
    with serving() as server:
        url = server.url.replace("test@", "test:se-cret@")
        at = ("--results", url)
        quick = ("--trials", "1", "correct-and-smooth", "mlp", "--epochs", "2")
        commands = [
            ("sweep", "mine.toml", *at),
            ("sweep", "mine.toml", "--dry-run", *at),
            ("tune", "small", *at, *quick),
            ("table", "full-batch", *at),
        ]
        for words in commands:
            for form in ((), ("--json",)):
                assert main([*words, *form]) == 0
    out, err = capsys.readouterr()
    assert out.count("test:***@") == 3
    assert "se-cret" not in out + err


def test_the_password_of_a_missing_database_is_not_shown(folder, capsys):
    url = "sqlite:///none.db?password=se-cret"
    assert main(["report", "--results", url]) == 1
    err = capsys.readouterr().err
    assert "no results database at sqlite:///none.db?password=***; " in err


def open_files(name):
    """The open files of this process with a name."""
    files = [file for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    return [file for file in files if file.readlink().name == name]


@pytest.mark.parametrize("more", [(), ("--explain", "linkx")])
@pytest.mark.long
def test_a_table_closes_its_database(folder, swept, ours, capsys, more):
    gc.collect()
    gc.disable()
    try:
        run_json(capsys, "table", "ours", *more, *(ours.cells if more else ()))
        assert not open_files("results.db")
    finally:
        gc.enable()


@pytest.mark.long
def test_every_results_table_can_be_printed(folder, capsys):
    for name in ("full-batch", "minibatch", "arxiv-coarse-fine", "homophilous"):
        document = run_json(capsys, "table", name)
        cells = [cell for row in document["rows"].values() for cell in row.values()]
        assert all(cell["mean"] is None and cell["missing"] for cell in cells)


def test_recipes_are_listed(capsys):
    rows = {row["name"]: row for row in run_json(capsys, "list", "recipes")}
    assert rows["prior-datasets/linkx"]["settings"] == 384
    assert rows["prior-datasets/geom-gcn-i"]["method"] == ""
    assert rows["homophilous/linkx"]["printed"]["cora"] == 84.64
