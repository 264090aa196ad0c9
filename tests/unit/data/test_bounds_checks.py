"""Compiled loops neither read nor write out of bounds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
FILES = (
    "unit/data/test_adjacency.py",
    "unit/data/test_memmap.py",
    "unit/data/test_sharding.py",
    "unit/data/test_sorting.py",
    "unit/datasets/test_twins_generator.py",
    "unit/datasets/test_undirected.py",
    "unit/importing/test_edges.py",
    "unit/importing/test_import_files.py",
    "unit/nn/test_kernels.py",
    "unit/samplers/test_graphsaint.py",
    "unit/samplers/test_neighbours.py",
    "unit/wiki/test_dump_errors.py",
    "unit/wiki/test_dump_rows.py",
    "unit/wiki/test_dumps.py",
    "contracts/test_measures.py",
    "oracles/test_attention.py",
    "oracles/test_measures_defined.py",
    "oracles/test_normalized_spmm.py",
    "oracles/test_spmm.py",
)
"""Tests that together call every compiled function."""


@pytest.mark.slow
def test_no_compiled_loop_leaves_its_arrays(tmp_path: Path):
    environment = {
        **os.environ,
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path),  # the usual one has code without checks
        "PYTHONPATH": os.pathsep.join(map(str, sys.path)),
    }
    words = ["-m", "pytest", "-n", "0", "-p", "bounds_checks"]
    done = subprocess.run(
        [sys.executable, *words, *(str(TESTS / file) for file in FILES)],
        env=environment,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "not called: \n" in done.stdout
