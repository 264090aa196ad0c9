"""`unalike tune GRAPH METHOD`, own recipes in sweeps, and their tables."""

import json
import shlex

import pytest
from sweep_fixtures import recipe_text, stored

from unalike.cli.main import main
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.method_search import search_space
from unalike.methods import METHODS
from unalike.options import with_options

URL = "sqlite:///results.db"
QUICK = ["linkx", "--epochs", "3", "--hidden", "6"]


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return stored(tmp_path)


def tuned(capsys, graph, *words):
    assert main(["tune", graph, "--device", "cpu", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def num_runs():
    with ResultsDatabase.read(URL) as results:
        return sum(1 for _ in results.runs())


def test_a_search_finds_the_best_by_validation_and_its_command_repeats_it(
    graph, capsys
):
    found = tuned(capsys, graph, "--trials", "6", *QUICK)
    valid = [trial["valid_mean"] for trial in found["trials"]]
    assert len(valid) == 6
    assert valid == sorted(valid, reverse=True)
    assert "hidden" not in found["trials"][0]["options"]
    assert set(found["importance"]) == set(found["trials"][0]["options"])
    words = shlex.split(found["command"])[1:]
    assert "--hidden" in words
    assert words[words.index("--hidden") + 1] == "6"
    assert main([*words, "--device", "cpu", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["test_mean"] == pytest.approx(found["trials"][0]["test_mean"])


def test_a_search_goes_on_from_what_is_stored(graph, capsys):
    first = tuned(capsys, graph, "--trials", "3", *QUICK)
    assert num_runs() == 9
    assert tuned(capsys, graph, "--trials", "3", *QUICK) == first
    assert num_runs() == 9
    more = tuned(capsys, graph, "--trials", "5", *QUICK)
    assert num_runs() == 15
    options = [trial["options"] for trial in more["trials"]]
    assert all(trial["options"] in options for trial in first["trials"])


def test_no_trial_begins_after_the_time(graph, capsys):
    tuned(capsys, graph, "--trials", "1", *QUICK)
    found = tuned(capsys, graph, "--trials", "9", "--minutes", "1e-9", *QUICK)
    assert len(found["trials"]) == 1


def test_the_table_and_the_importance_are_shown(graph, capsys, tmp_path):
    figure = tmp_path / "importance.svg"
    words = ["--trials", "5", "--figure", str(figure), *QUICK]
    assert main(["tune", graph, "--device", "cpu", *words]) == 0
    out = capsys.readouterr().out
    assert "importance: " in out
    assert "the best of 5 trials by validation" in out
    assert "unalike train" in out
    assert "weight decay" in figure.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--trials", "0", "mlp"], "--trials is 0; at least 1 is needed."),
        (["--minutes", "0", "mlp"], "--minutes is 0; it must be above 0."),
        (["--splits", "0", "mlp"], "--splits and --checkpoint are for correct"),
        (["--figure", "x.txt", "mlp"], "A figure ends in"),
    ],
)
def test_mistakes_are_one_line(graph, capsys, words, message):
    assert main(["tune", graph, *words]) == 1
    assert f"error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("name", METHODS)
def test_every_searched_option_is_an_option_of_the_method(name):
    method = METHODS[name]()
    space = search_space(method)
    for option, values in space.items():
        ends = (values["low"], values["high"]) if isinstance(values, dict) else values
        for value in ends:
            with_options(method, {option: value}, name)


def test_a_sweep_of_an_own_recipe_ends_with_what_won(graph, capsys, tmp_path):
    recipe = tmp_path / "own.toml"
    recipe.write_text(recipe_text(graph, hidden="[4]", epochs=2))
    words = ["sweep", str(recipe), "--device", "cpu", "--only", "dropout=0.0"]
    assert main([*words, "--json"]) == 0
    (best,) = json.loads(capsys.readouterr().out)["best"]
    assert best["settings"] == 2
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "best setting" in out
    assert f"{best['test']:.2f}" in out
    assert best["command"] in out
    assert shlex.split(best["command"])[2] == graph
    assert main(["table", str(recipe), "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert f"{best['test']:.1f}" in json.dumps(table) or best["test"] in [
        cell.get("mean") for row in table["rows"] for cell in row.values()
    ]
    assert main(["table", str(recipe)]) == 0
    assert "best mean validation score" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hidden =", "hiden =", "No option of linkx 'hiden'. Did you mean 'hidden'?"),
        ('"linkx"', '"links"', "No method 'links'. Did you mean 'link"),
    ],
)
def test_a_mistake_in_a_recipe_is_an_error(graph, capsys, tmp_path, old, new, message):
    recipe = tmp_path / "own.toml"
    recipe.write_text(recipe_text(graph).replace(old, new, 1))
    for command in (["sweep", "--dry-run"], ["table"]):
        assert main([command[0], str(recipe), *command[1:]]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"error: {recipe}: ")
        assert message in error
