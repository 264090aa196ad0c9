"""The first compilation is announced, and what is loaded from the cache is not."""

import importlib.util

import numba
import numpy as np
import pytest
import torch

from unalike.data import numba_utils
from unalike.data.store import ArrayFile
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


@pytest.mark.parametrize("threads", [1, 2])
def test_compiled_loops_use_as_many_threads_as_torch(tmp_path, threads):
    if threads > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("one core")
    (tmp_path / "numbers").write_bytes(bytes(range(8)))
    file = ArrayFile.open(tmp_path / "numbers", size=8, dtype=np.dtype(np.uint8))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        read = file.read(torch.tensor([5]), torch.tensor([0, 2]))
        assert read.tolist() == [5, 6]
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert numba.get_num_threads() == threads
