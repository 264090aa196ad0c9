"""Metrics on answers known by hand."""

import math

import pytest
import torch

from unalike import METRICS

LABELS = torch.tensor([0, 1, 1, 0])
EVEN = torch.ones(4)


def columns(*margins):
    """Scores of two classes whose difference is given."""
    return torch.tensor([[0.0, margin] for margin in margins])


@pytest.mark.parametrize(
    ("margins", "accuracy", "auc"),
    [
        ((-1, 1, 1, -1), 1.0, 1.0),
        ((1, -1, -1, 1), 0.0, 0.0),
        ((1, 2, 3, 1), 0.5, 1.0),
        ((0, 0, 0, 0), 0.5, 0.5),
        ((-1, 1, -1, -1), 0.75, 0.75),
    ],
)
def test_known_grades(margins, accuracy, auc):
    scores = columns(*margins)
    assert float(METRICS["accuracy"].score(scores, LABELS, EVEN)) == accuracy
    assert float(METRICS["roc-auc"].score(scores, LABELS, EVEN)) == auc


def test_an_absent_class_has_no_curve():
    ones = torch.ones(4, dtype=torch.int64)
    found = METRICS["roc-auc"].score(columns(1, 2, 3, 4), ones, EVEN)
    assert math.isnan(float(found))


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_weight_zero_leaves_a_node_out(metric):
    labels = torch.tensor([0, 1, -1, 0, 1])
    weight = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0])
    scores = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    kept = weight > 0
    for judge in (metric.score, metric.loss):
        found = judge(scores, labels, weight)
        wanted = judge(scores[kept], labels[kept], torch.ones(3))
        assert float(found) == pytest.approx(float(wanted), rel=1e-6)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_stack_is_graded_run_by_run(metric):
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 20, 2, generator=draw)
    labels = torch.randint(2, (20,), generator=draw)
    weight = (torch.rand(3, 20, generator=draw) < 0.7).float()
    for judge in (metric.score, metric.loss):
        found = judge(scores, labels, weight)
        assert found.shape == (3,)
        for run in range(3):
            alone = judge(scores[run], labels, weight[run])
            assert float(found[run]) == pytest.approx(float(alone), rel=1e-6)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_better_scores_have_a_lower_loss(metric):
    good, bad = columns(-1, 1, 1, -1), columns(1, -1, 1, -1)
    assert metric.loss(good, LABELS, EVEN) < metric.loss(bad, LABELS, EVEN)


def test_metrics_are_listed_by_their_names():
    assert [metric.name for metric in METRICS.values()] == list(METRICS)
    assert list(METRICS) == [
        "accuracy",
        "roc-auc",
        "average-precision",
        "f1",
        "macro-f1",
        "balanced-accuracy",
    ]
