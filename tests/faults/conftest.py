"""Seeded cases: a few hundred in every run, thousands by `make fault-test`."""

import random

import pytest

FEW, MANY = 200, 4_000
AMOUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]


@pytest.fixture(params=AMOUNTS, ids=["few", "many"])
def cases(request):
    """Generators of random numbers, one for each case."""
    return [random.Random(seed) for seed in range(request.param)]


@pytest.fixture
def some(cases):
    """A quarter of the cases, for those that take longer."""
    return cases[: max(50, len(cases) // 4)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
