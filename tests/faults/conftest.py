"""Seeded cases: a few hundred in every run, thousands by `make fault-test`."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from unalike.device import commit

FEW, MANY = 200, 4_000
AMOUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]
TRIED = pytest.StashKey[Counter]()
"""The number of cases that a test has tried, which its reports have too."""


class Cases(Sequence):
    """Generators of random numbers, one for each case; counts those that are used."""

    def __init__(self, seeds: range, used: Counter) -> None:
        self.seeds, self.used = seeds, used

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, index):
        assert isinstance(index, slice)
        return Cases(self.seeds[index], self.used)

    def __iter__(self) -> Iterator[random.Random]:
        for seed in self.seeds:
            self.used["cases"] += 1
            yield random.Random(seed)


@pytest.fixture(params=AMOUNTS, ids=["few", "many"])
def cases(request):
    """Generators of random numbers, one for each case."""
    first = request.config.getoption("seed")
    used = request.node.stash.setdefault(TRIED, Counter())
    return Cases(range(first, first + request.param), used)


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Tell the process that writes the outcomes how many cases were tried."""
    report = yield
    report.user_properties += item.stash.get(TRIED, {}).items()
    return report


def pytest_configure(config):
    if path := config.getoption("outcomes"):
        config.pluginmanager.register(Outcomes(path, config))


class Outcomes:
    """Writes how many cases each test tried and whether it failed, test by test.

    Tests that are in the file already do not run again, so that a run which was
    stopped goes on.
    """

    def __init__(self, path, config):
        self.path, self.config = path, config
        self.tests = json.loads(path.read_text()) if path.exists() else {}

    def pytest_collection_modifyitems(self, config, items):
        done = [item for item in items if item.nodeid in self.tests]
        items[:] = [item for item in items if item.nodeid not in self.tests]
        config.hook.pytest_deselected(items=done)

    def pytest_runtest_logreport(self, report):
        if report.skipped or not (report.failed or report.when == "call"):
            return
        if hasattr(self.config, "workerinput"):  # the main process gets it too
            return
        self.tests[report.nodeid] = {
            "cases": dict(report.user_properties).get("cases", 0),
            "failed": report.failed,
            "minutes": report.duration / 60,
            "seed": self.config.getoption("seed"),
            "commit": commit(),
        }
        self.path.write_text(json.dumps(self.tests))
