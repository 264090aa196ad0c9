"""`unalike sweep --search` around a base, which is trained once."""

import json

import pytest
from sweep_fixtures import stored

from unalike.cli.main import main
from unalike.experiments import base_model_cache
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.recipe import SearchSpace
from unalike.methods import base as methods
from unalike.methods.mlp import MLP

RECIPE = """
method = "correct-and-smooth"
splits = 3

[grid]
scaling = ["auto", "fixed"]
correct_alpha = {{ low = 0.0, high = 1.0 }}
flow_steps = 5
base = "mlp"
hidden = {hidden}
dropout = 0.5
epochs = 4

[cells]
"{dataset}" = {{}}
"""


@pytest.fixture
def trained(monkeypatch):
    """Counts the runs of each stack that is trained."""
    sizes = []

    def fit(runs, **how):
        sizes.append(len(runs))
        return real(runs, **how)

    real = methods.fit
    monkeypatch.setattr(methods, "fit", fit)
    return sizes


@pytest.fixture
def search(tmp_path, monkeypatch, capsys):
    """Searches a small space; what came out, and the rows of the database."""
    monkeypatch.chdir(tmp_path)
    dataset = stored(tmp_path)

    def found(hidden="8", trials=5, database="results"):
        text = RECIPE.format(hidden=hidden, dataset=dataset)
        (tmp_path / "mine.toml").write_text(text)
        url = f"sqlite:///{database}.db"
        words = ["sweep", "mine.toml", "--search", "optuna", "--results", url]
        assert main([*words, "--trials", str(trials), "--json"]) == 0
        (output,) = json.loads(capsys.readouterr().out)
        with ResultsDatabase.read(url) as results:
            return output, list(results.runs())

    return found


def test_a_base_is_trained_once_for_all_trials(search, trained):
    output, rows = search()
    assert output["trials"] == 5
    assert len(rows) == 15
    assert trained == [3]


def test_each_base_of_a_space_is_trained_once(search, trained):
    _, rows = search(hidden="[4, 5]", trials=8)
    widths = {row["options"]["hidden"] for row in rows}
    assert widths == {4, 5}
    assert trained == [3] * len(widths)


def graded(rows):
    return [(row["key"], row["train"], row["valid"], row["test"]) for row in rows]


@pytest.mark.long
def test_what_is_not_kept_is_trained_again_to_the_same(search, trained, monkeypatch):
    _, kept = search()
    monkeypatch.setattr(base_model_cache, "MAX_CACHE_BYTES", 0)
    _, forgotten = search(database="other")
    assert trained == [3] * 6
    assert graded(kept) == graded(forgotten)


PLAIN = """
method = "mlp"
splits = 3

[grid]
hidden = {hidden}
epochs = 2

[cells]
"{dataset}" = {{}}
"""


@pytest.fixture
def searching(tmp_path, monkeypatch, capsys):
    """A function that searches the hidden sizes of an MLP and returns the document."""
    monkeypatch.chdir(tmp_path)
    dataset = stored(tmp_path)

    def found(*words, hidden="[4, 5, 6]", trials=3, also=""):
        text = PLAIN.format(hidden=hidden, dataset=dataset)
        (tmp_path / "mine.toml").write_text(text + also)
        words = ("--search", "optuna", "--trials", str(trials), *words)
        assert main(["sweep", "mine.toml", *words, "--json"]) == 0
        out, err = capsys.readouterr()
        return json.loads(out), err

    return found


def rows_of(name="results"):
    with ResultsDatabase.read(f"sqlite:///{name}.db") as results:
        return list(results.runs())


def test_a_search_starts_again_after_its_grid_became_smaller(searching):
    searching(hidden="[40, 50, 60]", trials=2)
    ((output,), _) = searching(hidden="[4, 5]", trials=2)
    assert output["trials"] == 2
    assert output["options"].split()[-1] in ("hidden=4", "hidden=5")


@pytest.mark.parametrize("hidden", ['["a", 4]', "[true, 4]"])
def test_a_value_that_a_space_of_names_does_not_have_is_no_trial(hidden):
    space = SearchSpace({}, {"hidden": json.loads(hidden)})
    assert space.contains({"hidden": 4})
    assert not space.contains({"hidden": 5})


def test_a_value_outside_a_range_is_no_trial():
    space = SearchSpace({}, {"lr": [{"low": 0.1, "high": 0.5}]})
    values = (0.1, 0.5, 0.05, 0.6, "auto", True)
    contained = [space.contains({"lr": value}) for value in values]
    assert contained == [True, True, False, False, False, False]


def test_trials_of_another_seed_do_not_count(searching):
    searching(trials=3)
    ((output,), _) = searching("--seed", "5", trials=3)
    assert output["trials"] <= 3
    rows = rows_of()
    assert {row["seed"] for row in rows} == {0, 5}
    best = max(
        sum(row["valid"] for row in rows if (row["seed"], row["setting"]) == (5, one))
        for one in {row["setting"] for row in rows}
    )
    assert output["valid"] == pytest.approx(best / 3)


def test_a_dry_run_of_a_search_runs_nothing(searching, tmp_path):
    ((planned,), _) = searching("--dry-run", trials=4)
    assert (planned["trials"], planned["left"], planned["runs"]) == (0, 4, 12)
    assert planned["searched"] == ["hidden"]
    assert not list(tmp_path.glob("*.db"))
    ((output,), _) = searching(trials=2)
    ((planned,), _) = searching("--dry-run", trials=4)
    assert (planned["trials"], planned["left"]) == (
        output["trials"],
        4 - output["trials"],
    )


def test_a_dry_run_of_a_search_in_words(searching, capsys):
    searching("--dry-run")
    words = ["sweep", "mine.toml", "--search", "optuna", "--trials", "2", "--dry-run"]
    assert main(words) == 0
    assert capsys.readouterr().out == (
        "small mlp: 0 trials stored, 2 left with 6 runs; searched: hidden\n"
    )


def test_a_search_tries_failed_runs_again_with_retry(searching, monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(MLP, "network", broken)
        assert searching(hidden="[4, 5]", trials=2)[0] == []
    assert searching(hidden="[4, 5]", trials=2)[0] == []
    ((output,), _) = searching("--retry", hidden="[4, 5]", trials=2)
    assert output["trials"] >= 1


def test_a_search_goes_on_without_a_dataset_that_is_not_here(searching):
    ((output,), err) = searching(trials=1, also='"no-such-graph" = {}\n')
    assert (output["dataset"], output["trials"]) == ("small", 1)
    assert "note: 1 cell cannot be run: No dataset 'no-such-graph'." in err


def test_a_search_of_nothing_is_an_error(searching, capsys):
    searching(trials=1)
    words = ["sweep", "mine.toml", "--search", "optuna", "--only", "method=gcn"]
    assert main(words) == 1
    assert "Nothing fits --only" in capsys.readouterr().err
