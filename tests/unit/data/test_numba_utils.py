"""The first compilation is announced, and what is loaded from the cache is not."""

import importlib.util

import pytest

from unalike.data import numba_utils
from unalike.progress import listening

MODULE = """
from unalike.data.numba_utils import njit

@njit()
def double(number):
    return 2 * number
"""


@pytest.fixture
def notices(monkeypatch):
    monkeypatch.setattr(numba_utils.NOTICE, "given", False)
    heard = []
    with listening(heard.append):
        yield heard


def imported(path):
    """The module of a file, as a process that starts would import it."""
    spec = importlib.util.spec_from_file_location("some_loops", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_compilation_is_announced_once_and_a_cached_one_never(
    tmp_path, notices, monkeypatch
):
    file = tmp_path / "some_loops.py"
    file.write_text(MODULE)
    loops = imported(file)
    assert notices == []
    assert loops.double(3) == 6
    assert loops.double(1.5) == 3.0
    (notice,) = notices
    assert notice.startswith("compiling once")
    monkeypatch.setattr(numba_utils.NOTICE, "given", False)
    assert imported(file).double(4) == 8
    assert len(notices) == 1
