"""Training that diverges: the run fails with one line, and other runs go on."""

import json
import math
from dataclasses import replace

import pytest
import torch
from graphs import suiting, tasks_of
from safetensors.torch import save_file
from sweep_fixtures import recipe_text, stored

from unalike import (
    GCN,
    LINKX,
    METRICS,
    CorrectAndSmooth,
    NodeClassifier,
    Training,
    UserError,
    load_model,
)
from unalike.cli.main import main
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.plan import SweepRequest, plan_sweep
from unalike.experiments.recipe import parse
from unalike.experiments.sweep import sweep
from unalike.inference import model_file
from unalike.inference.model import fit_model
from unalike.methods import METHODS
from unalike.methods.base import train_stacks
from unalike.samplers import SAMPLERS

HUGE = 1e30


def linkx(lr=0.01, **options):
    training = Training(epochs=5, lr=lr)
    return LINKX(hidden=4, layers=2, dropout=0.0, training=training, **options)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_scores_that_are_not_finite_have_no_grade(metric, value):
    labels, weight = torch.tensor([0, 1, 0, 1]), torch.ones(2, 4)
    scores = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(0))
    before = metric.score(scores, labels, weight)
    scores[0, 2, 1] = value
    found = metric.score(scores, labels, weight)
    assert found[0].isnan()
    assert found[1] == before[1]
    weight[0, 2] = 0
    assert metric.score(scores, labels, weight).isfinite().all()


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize(
    "method",
    [
        linkx(HUGE),
        linkx(HUGE, batching=SAMPLERS["rows"](size=50)),
        GCN(hidden=4, training=Training(epochs=5, lr=1e38)),
        GCN(hidden=4, training=Training(epochs=5, weight_decay=1e38)),
    ],
)
def test_a_diverged_run_fails_with_one_line(method, metric):
    (task,) = tasks_of(suiting(), metric=metric)
    with pytest.raises(UserError, match=r"Training diverged, .*; lower") as error:
        method.solve(task)
    assert "\n" not in str(error.value)


def test_one_epoch_that_diverges_has_no_scores_of_untrained_weights():
    (task,) = tasks_of(suiting())
    method = replace(linkx(), training=Training(epochs=1, lr=1e38))
    with pytest.raises(UserError, match="no epoch has finite scores"):
        method.solve(task)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["linkx", "gcn", "mlp"])
def test_features_that_are_not_finite_fail_the_run(name, value):
    graph = suiting()
    features = graph.features.clone()
    features[7, 1] = value
    (task,) = tasks_of(replace(graph, features=features))
    with pytest.raises(UserError, match="diverged"):
        METHODS[name](training=Training(epochs=3)).solve(task)


def test_a_classifier_that_diverges_is_not_fitted():
    graph, classifier = suiting(), NodeClassifier(linkx(HUGE))
    with pytest.raises(UserError, match="diverged"):
        classifier.fit(graph, graph.labels.numpy())
    assert not hasattr(classifier, "scores_")


def test_a_diverged_run_of_a_stack_leaves_the_others_as_they_are():
    (task,) = tasks_of(suiting())
    rates = [(0.01, other, 0.05) for other in (HUGE, 0.02)]
    found, expected = (
        train_stacks([linkx(lr) for lr in stack], [task] * 3) for stack in rates
    )
    assert [bool(one.error) for one in found] == [False, True, False]
    assert not any(one.error for one in expected)
    for index in (0, 2):
        assert torch.equal(found[index].scores, expected[index].scores)
        assert found[index].curve.losses == expected[index].curve.losses


def test_a_diverged_base_model_fails_correct_and_smooth():
    (task,) = tasks_of(suiting())
    with pytest.raises(UserError, match="diverged"):
        CorrectAndSmooth(base=linkx(HUGE), flow_steps=2).solve(task)


def test_a_nan_score_does_not_end_a_sweep(tmp_path, url, capsys):
    text = recipe_text(stored(tmp_path), hidden="[4]")
    text = text.replace("lr = [0.01, 0.05]", f"lr = [0.01, {HUGE}]")
    plan = plan_sweep(SweepRequest(recipes=[parse(text, "small")]))
    assert sweep(plan, url) == {"runs": 12, "done": 6, "failed": 6}
    with ResultsDatabase.open(url) as results:
        assert {row["options"]["lr"] for row in results.runs()} == {0.01}
        errors = {row["error"] for row in results.failures()}
    assert all(error.startswith("Training diverged") for error in errors)
    path = tmp_path / "small.toml"
    path.write_text(text)
    words = ["sweep", str(path), "--results", url, "--device", "cpu", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["failed"] == 6


def test_the_command_names_the_split_that_diverged(tmp_path, capsys):
    words = ["--splits", "1", "--epochs", "3", "--lr", str(HUGE), "--layers", "2"]
    assert main(["train", stored(tmp_path), "linkx", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: Split 1: Training diverged")
    assert len(captured.err.splitlines()) == 1


def test_models_with_nan_weights_are_neither_saved_nor_loaded(tmp_path):
    (task,) = tasks_of(suiting())
    model, _ = fit_model(linkx(), task)
    name = next(name for name, weight in model.weights.items() if weight.dim() == 2)
    model.weights[name][0, 0] = math.nan
    with pytest.raises(UserError, match=rf"{name} of the model has NaN"):
        model.save(tmp_path / "refused.safetensors")
    assert not list(tmp_path.iterdir())
    tensors = {f"weights/{name}": weight for name, weight in model.weights.items()}
    about = model_file._metadata(model)
    digest = model_file._checksum(about, tensors)
    document = json.dumps({**about, "sha256": digest}, ensure_ascii=False)
    path = tmp_path / "damaged.safetensors"
    save_file(tensors, path, {"unalike": document})
    with pytest.raises(UserError, match="train the model again"):
        load_model(path)
