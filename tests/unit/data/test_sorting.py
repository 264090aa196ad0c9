"""Runs of numbers sorted in place, and searched."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unalike.data.numba_utils import binary_search, sort_range

NONE = np.empty(0, np.float32)


@given(
    st.lists(st.integers(-5, 5) | st.integers(-(2**31), 2**31 - 1), max_size=200),
    st.sampled_from([np.int32, np.int64]),
    st.data(),
)
def test_a_run_is_sorted_and_the_rest_stays(numbers, kind, data):
    given = np.array(numbers, kind)
    begin = data.draw(st.integers(0, len(given)))
    end = data.draw(st.integers(begin, len(given)))
    found = given.copy()
    sort_range(found, NONE, begin, end)
    wanted = given.copy()
    wanted[begin:end].sort()
    np.testing.assert_array_equal(found, wanted)


@given(st.sets(st.integers(-50, 50)), st.integers(-60, 60), st.data())
def test_a_number_is_found_where_it_stands(numbers, wanted, data):
    run = np.array(sorted(numbers), np.int32)
    begin = data.draw(st.integers(0, len(run)))
    end = data.draw(st.integers(begin, len(run)))
    places = begin + (run[begin:end] == wanted).nonzero()[0]
    assert binary_search(run, begin, end, wanted) == (places[0] if len(places) else -1)


SHAPES = {
    "random": lambda n: np.random.default_rng(0).integers(0, n, n),
    "ascending": np.arange,
    "descending": lambda n: np.arange(n)[::-1].copy(),
    "all alike": lambda n: np.zeros(n, np.int64),
    "up and down": lambda n: np.minimum(np.arange(n), np.arange(n)[::-1]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [0, 1, 2, 17, 1_000, 100_000])
def test_what_lies_along_moves_too(shape, size):
    given = SHAPES[shape](size).astype(np.int32)
    found, along = given.copy(), np.arange(size).astype(np.float32)
    sort_range(found, along, 0, size)
    np.testing.assert_array_equal(found, np.sort(given))
    np.testing.assert_array_equal(given[along.astype(np.int64)], found)
    assert len(np.unique(along)) == size
