"""Seeded cases: a few hundred in every run, thousands by `make fault-test`."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

FEW, MANY = 200, 4_000
AMOUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]
TRIED = pytest.StashKey[Counter]()
"""Cases that were tried, by family."""


class Cases(Sequence):
    """Generators of random numbers, one for each case; counts those that are used."""

    def __init__(self, seeds: range, used: Counter, family: str) -> None:
        self.seeds, self.used, self.family = seeds, used, family

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, index):
        assert isinstance(index, slice)
        return Cases(self.seeds[index], self.used, self.family)

    def __iter__(self) -> Iterator[random.Random]:
        for seed in self.seeds:
            self.used[self.family] += 1
            yield random.Random(seed)


def family_of(nodeid: str) -> str:
    """The name of a test file, such as stored-graphs."""
    name = nodeid.partition("::")[0].rpartition("/")[2]
    return name.removeprefix("test_").removesuffix(".py").replace("_", "-")


@pytest.fixture(params=AMOUNTS, ids=["few", "many"])
def cases(request):
    """Generators of random numbers, one for each case."""
    first = request.config.getoption("seed")
    used = request.config.stash[TRIED]
    return Cases(
        range(first, first + request.param), used, family_of(request.node.nodeid)
    )


@pytest.fixture
def some(cases):
    """A quarter of the cases, for those that take longer."""
    return cases[: max(50, len(cases) // 4)]


@pytest.fixture
def kills(cases):
    """One of a hundred cases, for those that take seconds."""
    return cases[: len(cases) // 100]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


# What was tried, and what happened, as a file.


def pytest_configure(config):
    config.stash[TRIED] = Counter()
    config.pluginmanager.register(Outcomes(config))


class Outcomes:
    """Writes how many cases of each family were tried and how many tests failed."""

    def __init__(self, config):
        self.config, self.started = config, time.monotonic()
        self.tests, self.failed = Counter(), Counter()

    def pytest_runtest_logreport(self, report):
        family = family_of(report.nodeid)
        self.tests[family] += report.when == "call" and not report.skipped
        self.failed[family] += report.failed

    def pytest_sessionfinish(self):
        if path := self.config.getoption("outcomes"):
            tried = self.config.stash[TRIED]
            families = {
                name: {"tests": n, "cases": tried[name], "failed": self.failed[name]}
                for name, n in sorted(self.tests.items())
            }
            document = {
                "families": families,
                "cases": tried.total(),
                "failed": self.failed.total(),
                "minutes": (time.monotonic() - self.started) / 60,
                "seed": self.config.getoption("seed"),
            }
            path.write_text(json.dumps(document))
