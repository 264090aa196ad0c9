"""Temperatures against a search, calibration errors against hand-made bins."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from torch.nn import functional as F

from unalike.calibration import (
    FLATTEST,
    SHARPEST,
    Reliability,
    expected_calibration_error,
    temperature,
)


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
    assert 1 / SHARPEST <= temperature(scores, labels) < 0.1
    assert temperature(-scores, labels) == pytest.approx(1 / FLATTEST, rel=0.01)
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
