"""`unalike sweep --search` around a base, which is trained once."""

import json

import pytest
from sweep_fixtures import stored

from unalike.cli.main import main
from unalike.experiments import run
from unalike.experiments.database import ResultsDatabase
from unalike.methods import base as methods

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
        (told,) = json.loads(capsys.readouterr().out)
        with ResultsDatabase.read(url) as results:
            return told, list(results.runs())

    return found


def test_a_base_is_trained_once_for_all_trials(search, trained):
    told, rows = search()
    assert told["trials"] == 5
    assert len(rows) == 15
    assert trained == [3]


def test_each_base_of_a_space_is_trained_once(search, trained):
    _, rows = search(hidden="[4, 5]", trials=8)
    widths = {row["options"]["hidden"] for row in rows}
    assert widths == {4, 5}
    assert trained == [3] * len(widths)


def graded(rows):
    return [(row["key"], row["train"], row["valid"], row["test"]) for row in rows]


def test_what_is_not_kept_is_trained_again_to_the_same(search, trained, monkeypatch):
    _, kept = search()
    monkeypatch.setattr(run, "MAX_CACHE_BYTES", 0)
    _, forgotten = search(database="other")
    assert trained == [3] * 6
    assert graded(kept) == graded(forgotten)
