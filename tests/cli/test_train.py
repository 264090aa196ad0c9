"""`unalike train` on a stored graph."""

import json
import shlex
from pathlib import Path
from statistics import mean, stdev

import pytest
from graphs import suiting

from unalike import METRICS, random_splits, save_graph
from unalike.cli import console
from unalike.cli.main import main
from unalike.data.task import Solution
from unalike.experiments.evaluation import PredictionSummary
from unalike.methods import METHODS
from unalike.options import options_of

QUICK = ["--epochs", "3"]
TRAINED = [name for name, kind in METHODS.items() if "epochs" in options_of(kind())]
KEYS = {
    "dataset",
    "method",
    "options",
    "metric",
    "splits",
    "test_mean",
    "test_std",
    "seconds",
    "peak_memory_mb",
    "device",
    "command",
    "view",
}
SPLIT_KEYS = {"split", "train", "valid", "test", "best_epoch", "seconds"}


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=80)
    splits = random_splits(graph.labels, count=3)
    return str(save_graph(tmp_path / "likes", graph, splits=splits).folder)


def trained(capsys, *words):
    assert main(["train", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.long
def test_json_tells_everything(stored, capsys, name):
    output = trained(capsys, stored, name, *(QUICK if name in TRAINED else ()))
    assert set(output) == KEYS
    assert (output["dataset"], output["method"]) == ("likes", name)
    assert output["metric"] == "accuracy"
    assert [row["split"] for row in output["splits"]] == [0, 1, 2]
    assert all(set(row) == SPLIT_KEYS for row in output["splits"])
    tests = [row["test"] for row in output["splits"]]
    assert output["test_mean"] == pytest.approx(mean(tests))
    assert output["test_std"] == pytest.approx(stdev(tests))
    assert output["seconds"] == pytest.approx(
        sum(r["seconds"] for r in output["splits"])
    )
    assert output["peak_memory_mb"] > 0
    assert all(0 <= test <= 100 for test in tests)


def test_options_are_those_that_were_given(stored, capsys):
    words = ["--hidden", "7", "--lr", "0.05", "--inner-activation", *QUICK]
    options = trained(capsys, stored, "linkx", *words)["options"]
    assert (options["hidden"], options["lr"], options["epochs"]) == (7, 0.05, 3)
    assert options["inner_activation"] is True
    assert options["dropout"] == 0.5


def test_some_splits(stored, capsys):
    every = trained(capsys, stored, "linkx", "--dropout", "0", *QUICK)
    output = trained(capsys, stored, "link", *QUICK, "--splits", "0,2")
    assert [row["split"] for row in output["splits"]] == [0, 2]
    alone = trained(capsys, stored, "linkx", "--dropout", "0", *QUICK, "--splits", "2")
    assert alone["test_std"] is None
    assert alone["splits"][0]["train"] == pytest.approx(every["splits"][2]["train"])


def test_the_same_command_gives_the_same_grades(stored, capsys):
    def grades(*words):
        rows = trained(capsys, stored, "linkx", "--layers", "2", *QUICK, *words)
        return [
            {key: value for key, value in row.items() if key != "seconds"}
            for row in rows["splits"]
        ]

    assert grades() == grades()
    assert grades("--seed", "1") != grades()


@pytest.mark.parametrize(
    "words",
    [
        ["linkx", "--layers", "2"],
        ["correct-and-smooth", "--correct-alpha", "0.7"],
        ["correct-and-smooth", "--flow-hops", "2", "sgc", "--hops", "2"],
    ],
    ids=" ".join,
)
def test_the_printed_command_repeats_the_runs(stored, capsys, words):
    output = trained(capsys, stored, *words, *QUICK, "--splits", "1,0")
    program, command, *words = shlex.split(output["command"])
    assert (program, command) == ("unalike", "train")
    again = trained(capsys, *words)
    for one, other in zip(again["splits"], output["splits"], strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}


def test_the_table_shows_splits_and_their_mean(stored, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["train", stored, "link", *QUICK]) == 0
    out = capsys.readouterr().out
    assert out.split()[:6] == ["split", "train", "valid", "test", "best", "epoch"]
    assert "likes link: accuracy" in out
    assert "±" in out


def test_a_sentence_in_a_file_is_one_line(stored, capsys, monkeypatch):
    monkeypatch.setattr(console.OUT, "width", 30)
    assert main(["train", stored, "link", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    (output,) = (line for line in lines if "on the test nodes" in line)
    assert output.startswith("likes link: accuracy ")
    assert " MB, " in output


def test_another_metric(tmp_path, capsys):
    graph = suiting(nodes=80)
    splits = random_splits(graph.labels, count=1)
    folder = tmp_path / "graph"
    save_graph(folder, graph, splits=splits, metric=METRICS["roc-auc"])
    output = trained(capsys, str(folder), "mlp", "--epochs", "30")
    assert output["metric"] == "roc-auc"
    assert output["test_mean"] > 70


def test_a_checkpoint_is_gone_when_all_is_done(stored, tmp_path, capsys):
    trained(capsys, stored, "link", *QUICK, "--checkpoint", str(tmp_path / "state"))
    assert not list(tmp_path.glob("*state*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{}", "link", "--splits", "0,x"], "--splits is '0,x'; write all, or numbers"),
        (["{}", "link", "--splits", ""], "--splits is ''"),
        (["{}", "link", "--splits", "0,3"], "no split 3; they run from 0 to 2"),
        (["{}", "link", "--splits=-1"], "no split -1; they run from 0 to 2"),
        (["penn49", "link"], "No dataset 'penn49'. Did you mean 'penn94'?"),
        (["{}/nothing", "link"], "is not a stored graph"),
        (["{}", "link", "--epochs", "0"], "--epochs is 0; at least 1"),
        (["{}", "link", "--lr", "-1"], "--lr is -1.0"),
        (
            ["{}", "mlp", "--dropout", "1"],
            "The dropout is 1.0; it must be at least 0 and below 1",
        ),
        (
            ["{}", "linkx", "--inner-dropout", "-0.5"],
            "--inner-dropout is -0.5; it must be at least 0",
        ),
        (["{}", "linkx", "--hidden", "0"], "--hidden is 0; it must be at least 1"),
        (
            ["{}", "link-concat", "--layers", "0"],
            "--layers is 0; it must be at least 1",
        ),
        (["{}", "linkx", "--edge-layers", "-1"], "is -1; it must be at least"),
        (
            ["{}", "correct-and-smooth", "--smooth-alpha", "2"],
            "--smooth-alpha is 2.0; it must be at most 1",
        ),
        (
            ["{}", "correct-and-smooth", "--flow-hops", "0"],
            "--flow-hops is 0; it must be at least 1",
        ),
        (["{}", "correct-and-smooth", "mlp", "--epochs", "0"], "--epochs is 0"),
        (["{}", "link", "--device", "cup"], "No device 'cup'. Did you mean 'cpu'?"),
    ],
)
def test_mistakes_give_an_error_of_one_line(stored, capsys, words, message):
    assert main(["train", *(word.format(stored) for word in words)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_an_unknown_method_is_a_usage_mistake_that_names_the_methods(stored, capsys):
    assert main(["train", stored, "linkxx"]) == 2
    err = capsys.readouterr().err
    assert all(name in err for name in METHODS)


def test_what_is_corrected_is_trained(stored, capsys):
    assert main(["train", stored, "correct-and-smooth", "correct-and-smooth"]) == 2
    assert main(["train", stored, "correct-and-smooth", "label-propagation"]) == 2
    output = capsys.readouterr().err
    assert all(name in output for name in ("mlp", "linkx"))


def test_a_graph_without_splits(tmp_path, capsys):
    save_graph(tmp_path / "graph", suiting(nodes=30))
    assert main(["train", str(tmp_path / "graph"), "link"]) == 1
    assert "graph has no splits" in capsys.readouterr().err


@pytest.mark.parametrize("name", METHODS)
def test_help_shows_the_options_of_a_method(stored, capsys, name):
    assert main(["train", stored, name, "--help"]) == 0
    output = capsys.readouterr().out
    assert ("--epochs" in output) == (name in TRAINED)
    assert ("--weight-decay" in output) == (name in TRAINED)


@pytest.mark.parametrize("options", [[], ["--metric", "macro-f1"]])
def test_the_stored_graph_of_a_dataset_is_opened_once(
    data, capsys, monkeypatch, options
):
    trained(capsys, "texas", "mlp", *QUICK, "--data", str(data), *options)
    opened, read_text = [], Path.read_text

    def read(path, *args, **kwargs):
        text = read_text(path, *args, **kwargs)
        opened.append(path.name)
        return text

    monkeypatch.setattr(Path, "read_text", read)
    trained(capsys, "texas", "mlp", *QUICK, "--data", str(data), *options)
    assert opened.count("graph.json") == 1


def test_splits_are_evaluated_once_whatever_is_written(
    stored, tmp_path, capsys, monkeypatch
):
    pytest.importorskip("matplotlib")
    summarised, fitted = [], []
    from_scores = PredictionSummary.from_scores
    temperature = Solution.temperature

    def summarise(*args, **kwargs):
        summarised.append(1)
        return from_scores(*args, **kwargs)

    def fit(*args):
        fitted.append(1)
        return temperature(*args)

    monkeypatch.setattr(PredictionSummary, "from_scores", summarise)
    monkeypatch.setattr(Solution, "temperature", fit)
    document = trained(
        capsys,
        *(stored, "link", *QUICK, "--calibrate"),
        *("--save", str(tmp_path / "model.safetensors")),
        *("--figures", str(tmp_path / "figures")),
    )
    assert len(document["splits"]) == len(summarised) == len(fitted) == 3
