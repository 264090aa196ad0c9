"""Grades and losses against scikit-learn and torch, ties and weights included."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from metric_values import graded
from sklearn.metrics import accuracy_score, roc_auc_score

from unalike import METRICS


@given(graded(4, fewest=2))
def test_accuracy(case):
    scores, labels, weight = case
    wanted = accuracy_score(labels, scores.argmax(1), sample_weight=weight)
    found = METRICS["accuracy"].score(scores, labels, weight)
    assert float(found) == pytest.approx(wanted, abs=1e-12)


@given(graded(2, fewest=2))
def test_roc_auc(case):
    scores, labels, weight = case
    assume({0, 1} == set(labels[weight > 0].tolist()))
    margin = (scores[:, 1] - scores[:, 0]).numpy()
    wanted = roc_auc_score(labels, margin, sample_weight=weight)
    found = METRICS["roc-auc"].score(scores, labels, weight)
    assert float(found) == pytest.approx(wanted, abs=1e-12)


def test_roc_auc_of_a_stack_of_many():
    draw = np.random.default_rng(0)
    scores = draw.normal(size=(3, 5000, 2)).round(1).astype(np.float32)
    labels = draw.integers(2, size=5000)
    weight = draw.random((3, 5000)).astype(np.float32)
    given_ = (torch.from_numpy(part) for part in (scores, labels, weight))
    found = METRICS["roc-auc"].score(*given_)
    for run in range(3):
        margin = scores[run, :, 1] - scores[run, :, 0]
        wanted = roc_auc_score(labels, margin, sample_weight=weight[run])
        assert float(found[run]) == pytest.approx(wanted, abs=1e-9)


@given(graded(4, fewest=2))
def test_cross_entropy(case):
    scores, labels, weight = case
    chosen = torch.log_softmax(scores.double(), 1)[torch.arange(len(labels)), labels]
    wanted = -(chosen * weight).sum() / weight.sum()
    found = METRICS["accuracy"].loss(scores, labels, weight)
    assert float(found) == pytest.approx(float(wanted), rel=1e-5)


@given(graded(2, fewest=2))
def test_two_column_cross_entropy(case):
    scores, labels, weight = case
    share = torch.sigmoid(scores.double())
    hot = torch.eye(2)[labels].double()
    text = -(hot * share.log() + (1 - hot) * (1 - share).log()).mean(1)
    wanted = (text * weight).sum() / weight.sum()
    found = METRICS["roc-auc"].loss(scores, labels, weight)
    assert float(found) == pytest.approx(float(wanted), rel=1e-5)
