"""Precision, F1 and balanced accuracy against scikit-learn; ties, absent classes."""

import math
import warnings

import numpy as np
import pytest
import torch
from graphs import suiting
from hypothesis import given
from metric_values import graded
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
)

from unalike import METRICS, RunOptions, UserError, random_splits, run, save_graph
from unalike.data.metrics import confusion
from unalike.experiments.config import DatasetOptions
from unalike.methods.link import LINK
from unalike.training.state import Training


def weighing(case):
    """The case without nodes of weight 0, as arrays."""
    scores, labels, weight = case
    kept = weight > 0
    return scores[kept].numpy(), labels[kept].numpy(), weight[kept].numpy()


@given(graded(2))
def test_average_precision(case):
    scores, labels, weight = weighing(case)
    found = float(METRICS["average-precision"].score(*case))
    if not labels.any():
        assert math.isnan(found)
        return
    margin = scores[:, 1] - scores[:, 0]
    wanted = average_precision_score(labels, margin, sample_weight=weight)
    assert found == pytest.approx(wanted, abs=1e-12)


@given(graded(2))
def test_f1(case):
    scores, labels, weight = weighing(case)
    wanted = f1_score(
        labels, scores.argmax(1), sample_weight=weight, zero_division=np.nan
    )
    found = float(METRICS["f1"].score(*case))
    assert found == pytest.approx(wanted, abs=1e-12, nan_ok=True)


@given(graded(4))
def test_macro_f1(case):
    scores, labels, weight = weighing(case)
    wanted = f1_score(labels, scores.argmax(1), average="macro", sample_weight=weight)
    found = float(METRICS["macro-f1"].score(*case))
    assert found == pytest.approx(wanted, abs=1e-12)


@given(graded(4))
def test_balanced_accuracy(case):
    scores, labels, weight = weighing(case)
    with warnings.catch_warnings():
        # Answers of classes that do not occur are no mistake of the test.
        warnings.simplefilter("ignore")
        wanted = balanced_accuracy_score(labels, scores.argmax(1), sample_weight=weight)
    found = float(METRICS["balanced-accuracy"].score(*case))
    assert found == pytest.approx(wanted, abs=1e-12)


@given(graded(4))
def test_confusion(case):
    scores, labels, weight = weighing(case)
    wanted = confusion_matrix(
        labels, scores.argmax(1), labels=range(4), sample_weight=weight
    )
    assert np.allclose(confusion(*case), wanted, atol=1e-12)


def test_average_precision_of_a_stack_of_many():
    draw = np.random.default_rng(0)
    scores = draw.normal(size=(3, 5000, 2)).round(1).astype(np.float32)
    labels = draw.integers(2, size=5000)
    weight = draw.random((3, 5000)).astype(np.float32)
    given_ = (torch.from_numpy(part) for part in (scores, labels, weight))
    found = METRICS["average-precision"].score(*given_)
    for run_ in range(3):
        margin = scores[run_, :, 1] - scores[run_, :, 0]
        wanted = average_precision_score(labels, margin, sample_weight=weight[run_])
        assert float(found[run_]) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.long
def test_training_takes_every_metric(name, tmp_path):
    graph = suiting(nodes=80)
    splits = random_splits(graph.labels, count=2)
    source = save_graph(tmp_path / "graph", graph, splits=splits)
    method = LINK(training=Training(epochs=30))
    for result in run(
        DatasetOptions(metric=name).apply(source), method, options=RunOptions()
    ):
        assert result.metric == name
        assert 50 < result.test <= 100


def test_a_metric_of_two_classes_refuses_three(tmp_path):
    graph = suiting(nodes=80, classes=3)
    splits = random_splits(graph.labels, count=1)
    source = save_graph(tmp_path / "graph", graph, splits=splits)
    with pytest.raises(UserError, match="f1 is for 2 classes; split 0 of graph has 3"):
        run(
            DatasetOptions(metric="f1").apply(source), LINK(training=Training(epochs=1))
        )
