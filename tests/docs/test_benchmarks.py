"""The programs of benchmarks/ run, on small inputs."""

import json
import os
import subprocess
import sys

import pytest
from pages import ROOT

SMALL = {
    "advice": "--only table",
    "batch_cost": "--nodes 60000 --json",
    "cross_fit": "--datasets chameleon-twin --json",
    "defaults": "--datasets chameleon-twin --methods link --epochs 3 --json",
    "dumps": "--articles 300 --links 3000 --json",
    "import_edges": "--edges 2000",
    "larger_than_memory": "--graph chameleon-twin --size 500 --hidden 8 --epochs 1",
    "measures": "--edges 300000",
    "patience": "--datasets chameleon-twin --methods link --epochs 3 --json",
    "predict": "--nodes 100 --json",
    "row_loader": "--edges 30000 --rows 50 --features 3 --json",
    "serve": "--seconds 1",
    "speed_ablation": "--cases MLP --nodes 3000 --rounds 1",
    "start": "--only help --repeats 1 --json",
    "stacks": "--datasets chameleon-twin --hidden 8 --epochs 1 --device cpu",
    "twins": "chameleon-twin --json",
    "views": "--nodes 2000 --head mlp --json",
    "warehouse": "--nodes 2000 --jobs measures scores --json",
    "warehouse_sample": "--only chameleon-twin --size 100 --epochs 2 --json",
}
"""Options that let a benchmark end within seconds."""
NOT_RUN = {
    "faults": "runs all slow tests of tests/faults",
    "crawl": "needs PHP and MediaWiki",
    "report": "needs Chromium; tests/browser opens the same page",
}


def test_every_benchmark_is_run_or_has_a_reason():
    files = {file.stem for file in (ROOT / "benchmarks").glob("*.py")}
    assert files == {*SMALL, *NOT_RUN}


@pytest.mark.docs
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(name, tmp_path):
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", *SMALL[name].split()],
        cwd=ROOT,
        env={**os.environ, "UNALIKE_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "--json" in SMALL[name]:
        assert json.loads(done.stdout)
    assert done.stdout


@pytest.mark.docs
def test_the_table_of_advice_has_every_graph(tmp_path):
    words = [sys.executable, "benchmarks/advice.py", "--only", "table"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "not run: []" in done.stdout
