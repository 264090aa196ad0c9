"""Numbers as text, and documents without NaN."""

import json
import math

import numpy as np
import pytest

from unalike.formatting import (
    format_duration,
    format_mean_std,
    format_memory,
    json_safe,
    printable,
)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([71.625], "71.62"),
        ([60.0, 62.0], "61.00 ± 1.41"),
        ((70.0, 70.0, 70.0), "70.00 ± 0.00"),
    ],
)
def test_mean_and_sample_standard_deviation(numbers, text):
    assert format_mean_std(numbers) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.01, "1 s"),
        (1.4, "1 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3599, "60 min"),
        (3600, "1.0 h"),
        (90_000, "25.0 h"),
    ],
)
def test_durations_have_the_unit_that_fits(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("megabytes", "text"),
    [(0.2, "1 MB"), (12.6, "13 MB"), (1023, "1023 MB"), (1024, "1.0 GB")],
)
def test_memory_has_the_unit_that_fits(megabytes, text):
    assert format_memory(megabytes) == text


def test_controls_and_bytes_that_are_no_utf8_are_printed_as_escapes():
    assert printable("a\x1b[2J\udcff\tb\n") == "a\\x1b[2J\\udcff\tb\n"


def test_nan_and_infinity_become_null():
    document = {
        "a": [1.5, math.nan, (math.inf, -math.inf)],
        "b": {"c": np.float64("nan"), "d": "NaN", "e": None, "f": True, "g": 3},
    }
    safe = json_safe(document)
    assert safe == {
        "a": [1.5, None, [None, None]],
        "b": {"c": None, "d": "NaN", "e": None, "f": True, "g": 3},
    }
    assert json.loads(json.dumps(safe, allow_nan=False)) == safe
