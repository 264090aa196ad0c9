"""What tests of sweeps and results share: a small agenda, and where results go."""

import pytest
from sweeps import small_agenda, stored

from unalike.experiments.results import Results


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture
def results(url):
    kept = Results.open(url)
    yield kept
    kept.close()


@pytest.fixture
def agenda(tmp_path):
    return small_agenda(stored(tmp_path))
