"""`unalike tune` on a stored graph."""

import json
import shlex
import sys
from statistics import mean

import pytest
from graphs import suiting

from unalike import random_splits, save_graph
from unalike.cli.main import main
from unalike.experiments.database import ResultsDatabase
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.training.loop import FullBatchEpochs

QUICK = ["--trials", "6", "correct-and-smooth", "mlp", "--hidden", "8", "--epochs", "5"]
KEPT = ["--results", "sqlite:///kept.db"]


@pytest.fixture
def stored(tmp_path, monkeypatch):
    graph = suiting(nodes=80)
    splits = random_splits(graph.labels, count=5)
    save_graph(tmp_path / "likes", graph, splits=splits)
    monkeypatch.chdir(tmp_path)
    return "./likes"


def run_json(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_there_is_a_study_for_each_scaling_and_number_of_hops(stored, capsys):
    output = run_json(capsys, "tune", stored, *QUICK)
    kinds = [(one["flow_hops"], one["scaling"]) for one in output["studies"]]
    assert kinds == [(1, "auto"), (1, "fixed"), (2, "auto"), (2, "fixed")]
    for study in output["studies"]:
        options = study["options"]
        assert 0 <= options["correct_alpha"] <= 1
        assert 0 <= options["smooth_alpha"] <= 1
        assert (options["scale"] == 1) == (study["scaling"] == "auto")
        assert 0.1 <= options["scale"] <= 10
        assert (options["base"], options["hidden"]) == ("mlp", 8)
    for hops, chosen in zip((1, 2), output["chosen"], strict=True):
        rivals = [one for one in output["studies"] if one["flow_hops"] == hops]
        assert chosen["valid_mean"] == max(one["valid_mean"] for one in rivals)


@pytest.mark.long
def test_the_printed_command_gives_the_same_scores(stored, capsys):
    output = run_json(capsys, "tune", stored, *QUICK, "--splits", "0,2")
    for study in output["studies"]:
        _, train, name, *words = shlex.split(study["command"])
        again = run_json(capsys, train, name, *words)
        assert again["test_mean"] == pytest.approx(study["test_mean"])
        valid = mean(row["valid"] for row in again["splits"])
        assert valid == pytest.approx(study["valid_mean"])


@pytest.mark.long
def test_more_trials_are_no_worse_on_validation_nodes(stored, capsys):
    few, many = (
        run_json(capsys, "tune", stored, "--trials", trials, *QUICK[2:])["studies"]
        for trials in ("1", "12")
    )
    for one, twelve in zip(few, many, strict=True):
        assert twelve["valid_mean"] >= one["valid_mean"]
    assert any(
        m["valid_mean"] > f["valid_mean"] for f, m in zip(few, many, strict=True)
    )


@pytest.mark.long
def test_the_table_shows_studies_and_commands(stored, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["tune", stored, *QUICK]) == 0
    out, err = capsys.readouterr()
    assert {"hops", "scaling"} <= set(out.split())
    assert out.count("unalike train ./likes correct-and-smooth") == 2
    assert "likes, 2 hops" in out
    assert "stored in" not in out
    assert err == ""
    assert main(["tune", stored, *KEPT, *QUICK]) == 0
    assert capsys.readouterr().out.endswith("stored in sqlite:///kept.db\n")


@pytest.mark.long
def test_the_best_of_each_study_is_stored_once(stored, tmp_path, capsys):
    output = run_json(capsys, "tune", stored, *KEPT, *QUICK)
    assert output["results"] == KEPT[1]
    for _ in range(2):
        with ResultsDatabase.read(KEPT[1]) as results:
            rows = list(results.runs(answers=True))
        assert sorted(row["split"] for row in rows) == sorted([*range(5)] * 4)
        for study in output["studies"]:
            mine = [row for row in rows if row["options"] == study["options"]]
            assert mean(row["valid"] for row in mine) == study["valid_mean"]
            assert mean(row["test"] for row in mine) == study["test_mean"]
            assert all(row["answers"] for row in mine)
        run_json(capsys, "tune", stored, *KEPT, *QUICK)
    assert [file.name for file in tmp_path.glob("*.db")] == ["kept.db"]


@pytest.mark.long
def test_nothing_is_stored_unless_asked_for(stored, tmp_path, capsys):
    assert run_json(capsys, "tune", stored, *QUICK)["results"] is None
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.long
def test_a_sweep_does_not_repeat_what_is_stored(stored, tmp_path, capsys):
    output = run_json(capsys, "tune", stored, *KEPT, *QUICK)
    options = output["studies"][0]["options"]
    grid = "\n".join(
        f"{name} = {json.dumps(output)}" for name, output in options.items()
    )
    recipe = f'method = "correct-and-smooth"\n[grid]\n{grid}\n[cells]\n"./likes" = {{}}'
    (tmp_path / "mine.toml").write_text(recipe)
    plan = run_json(capsys, "sweep", "mine.toml", "--dry-run", *KEPT)
    assert (plan["runs"], plan["left"]) == (5, 0)


@pytest.mark.long
def test_a_table_shows_what_is_stored(stored, capsys):
    output = run_json(capsys, "tune", stored, *KEPT, *QUICK)
    table = ("table", "full-batch", "--on", stored, *KEPT)
    rows = run_json(capsys, *table)["rows"]
    for hops, best in zip((1, 2), output["chosen"], strict=True):
        (cell,) = rows[f"C&S {hops}-hop"].values()
        assert cell["mean"] == pytest.approx(best["test_mean"])
    (one,) = run_json(capsys, *table, "--explain", "C&S 1-hop", stored)
    assert one["settings"] == 2
    assert one["command"] == output["chosen"][0]["command"].replace("all", "0,1,2,3,4")


@pytest.mark.parametrize(("stops", "known"), [([0], 0), ([3, 4], 6), ([13], 12)])
@pytest.mark.long
def test_a_search_that_was_stopped_goes_on_to_the_same_end(
    stops, known, stored, tmp_path, capsys, monkeypatch
):
    state = tmp_path / "state"
    state.mkdir()
    (state / "base.csv").write_text("somebody's own")
    improve, tried = CorrectAndSmooth.correct_and_smooth, []

    def counted(self, *given):
        tried.append(self)
        if stops and len(tried) > stops[0]:
            raise KeyboardInterrupt
        return improve(self, *given)

    wanted = run_json(capsys, "tune", stored, *QUICK)
    monkeypatch.setattr(CorrectAndSmooth, "correct_and_smooth", counted)
    words = ["tune", stored, "--checkpoint", "state", *QUICK]
    while stops:
        assert main(words) == 130
        with (state / "judged.jsonl").open("a") as lines:
            lines.write('["half a li')
        tried.clear()
        stops.pop(0)
    monkeypatch.setattr(
        FullBatchEpochs, "run_epoch", lambda epochs: pytest.fail("trained again")
    )
    capsys.readouterr()
    assert run_json(capsys, *words) == wanted
    # Each of four studies tries six settings, and the best of them once more.
    assert len(tried) == 4 * 7 - known
    assert [file.name for file in state.iterdir()] == ["base.csv"]


def test_the_state_of_another_search_is_refused(stored, capsys, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    words = ["tune", stored, "--checkpoint", "state", *QUICK]
    with monkeypatch.context() as patch:
        patch.setattr(CorrectAndSmooth, "correct_and_smooth", stopped)
        assert main(words) == 130
    capsys.readouterr()
    assert main([*words, "--lr", "0.1"]) == 1
    assert capsys.readouterr().err == (
        "error: state/base.0 belongs to other runs; remove it.\n"
    )


@pytest.mark.long
def test_another_metric_is_a_view_of_its_own(stored, capsys):
    output = run_json(capsys, "tune", stored, *KEPT, "--metric", "roc-auc", *QUICK)
    assert output["metric"] == "roc-auc"
    assert all("--metric roc-auc" in one["command"] for one in output["studies"])
    with ResultsDatabase.read(KEPT[1]) as results:
        assert all(row["view"] == {"metric": "roc-auc"} for row in results.runs())


def test_mistakes_give_an_error_of_one_line(stored, capsys):
    assert main(["tune", stored, "--trials", "0"]) == 1
    assert capsys.readouterr().err == "error: --trials is 0; at least 1 is needed.\n"
    assert main(["tune", stored, "--results", "results.db"]) == 1
    assert "'results.db' names no database" in capsys.readouterr().err
    assert main(["tune", stored, "--checkpoint", "likes/graph.json", *QUICK]) == 1
    output = "error: likes/graph.json/base.0 cannot be written (Not a directory).\n"
    assert capsys.readouterr().err == output


def test_a_search_without_optuna_names_the_extra(stored, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["tune", stored, *QUICK]) == 1
    assert "pip install 'unalike[tune]'" in capsys.readouterr().err
