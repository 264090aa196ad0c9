"""Temperatures against a search, calibration errors against hand-made bins."""

import math

import pytest
import torch
from graphs import suiting, tasks_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from torch.nn import functional as F

from unalike import (
    MLP,
    CorrectAndSmooth,
    LabelPropagation,
    Training,
    random_splits,
    save_graph,
)
from unalike.data.calibration import (
    MAX_INVERSE_TEMPERATURE,
    MIN_INVERSE_TEMPERATURE,
    Reliability,
    expected_calibration_error,
    probabilities_to_logits,
    temperature,
)
from unalike.experiments.run import train_splits

QUICK = Training(epochs=5)


def noisy(seed, times, nodes=400, classes=3):
    """Scores whose shares are right once they are divided by `times`."""
    draw = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(nodes, classes, generator=draw)
    labels = torch.multinomial(scores.softmax(1), 1, generator=draw)[:, 0]
    return times * scores, labels


@given(st.integers(0, 1000), st.sampled_from([0.05, 0.5, 1.0, 3.0, 30.0]))
def test_the_temperature_is_the_minimiser(seed, times):
    scores, labels = noisy(seed, times)

    def loss(log):
        return float(F.cross_entropy(scores.double() / math.exp(log), labels))

    wanted = minimize_scalar(loss, bracket=(math.log(times), math.log(times) + 0.5))
    assert temperature(scores, labels) == pytest.approx(math.exp(wanted.x), rel=1e-4)


def test_the_temperature_finds_what_scores_were_multiplied_by():
    scores, labels = noisy(0, 5.0, nodes=20_000)
    assert temperature(scores, labels) == pytest.approx(5, rel=0.05)


def test_scores_that_are_all_right_or_all_wrong_stay_within_bounds():
    scores, labels = torch.eye(2)[[0, 1, 0]], torch.tensor([0, 1, 0])
    assert 1 / MAX_INVERSE_TEMPERATURE <= temperature(scores, labels) < 0.1
    assert temperature(-scores, labels) == pytest.approx(
        1 / MIN_INVERSE_TEMPERATURE, rel=0.01
    )
    assert math.isfinite(temperature(torch.zeros(3, 2), labels))


def test_the_order_of_scores_stays():
    scores, labels = noisy(1, 4.0)
    warm = scores / temperature(scores, labels)
    assert torch.equal(warm.argmax(1), scores.argmax(1))
    assert expected_calibration_error(warm.softmax(1), labels) < (
        expected_calibration_error(scores.softmax(1), labels)
    )


def test_bins_by_hand():
    shares = torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.0, 1.0]])
    found = Reliability.of(shares, torch.tensor([0, 1, 1, 0]), bins=2)
    assert found.counts == [0, 4]
    assert found.confidence == pytest.approx([0, 0.8])
    assert found.accuracy == [0, 0.5]
    assert found.error == pytest.approx(0.3)


def test_no_node_no_error():
    none = torch.zeros(0, 2)
    assert expected_calibration_error(none, torch.zeros(0, dtype=torch.int64)) == 0


def test_shares_become_logits_and_back():
    shares = torch.tensor([[0.3, 0.1, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    found = probabilities_to_logits(shares)
    wanted = torch.tensor([[0.75, 0.25, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]])
    torch.testing.assert_close(found.softmax(1), wanted.double(), atol=3e-6, rtol=0)
    assert found.isfinite().all()


@pytest.mark.parametrize(
    "method", [LabelPropagation(), CorrectAndSmooth(base=MLP(training=QUICK))]
)
def test_methods_that_give_shares_are_trusted_as_they_are(method):
    graph = suiting(nodes=120)
    (task,) = tasks_of(graph)
    found = method.solve(task)
    assert found.is_probability
    total = found.scores.double().sum(1, keepdim=True)
    text = total[:, 0] > 0
    torch.testing.assert_close(
        found.logits.softmax(1)[text], (found.scores / total)[text], atol=3e-6, rtol=0
    )
    assert torch.equal(found.logits.argmax(1), found.scores.argmax(1))


def test_methods_that_are_trained_give_logits():
    (task,) = tasks_of(suiting(nodes=60))
    found = MLP(training=QUICK).solve(task)
    assert found.logits is found.scores


def test_a_sitting_is_assessed_by_shares(tmp_path):
    graph = suiting(nodes=120)
    splits = random_splits(graph.labels, count=1)
    output = train_splits(
        save_graph(tmp_path / "g", graph, splits=splits), LabelPropagation()
    )
    (found,) = output.calibrations
    scores = output.solutions[0].scores[splits[0].test].double()
    reached = scores.sum(1) > 0
    sure = (scores / scores.sum(1, keepdim=True)).max(1).values.where(reached, 0.5)
    bins = found.raw
    total = sum(n * mean for n, mean in zip(bins.counts, bins.confidence, strict=True))
    assert total / len(sure) == pytest.approx(float(sure.mean()), abs=1e-5)
