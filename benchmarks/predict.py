"""How many new nodes a second a model scores: from arrays, and from files to a file.

python benchmarks/predict.py                   200,000 new nodes of degree 30
python benchmarks/predict.py --nodes 2000000   the same with more of them
python benchmarks/predict.py --json            one JSON document
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

from unalike import LINKX, Adjacency, Graph, Model
from unalike.inference.new_nodes import TrainingGraph

KNOWN, DEGREE, HIDDEN, FEATURES, CLASSES, TRIES = 1_000_000, 30, 64, 16, 5, 5


def untrained() -> Model:
    """A model with weights as they are drawn: they take as long as learned ones."""
    none = torch.zeros(0, dtype=torch.int64)
    rows = Adjacency.from_edges(none, none, shape=(KNOWN, KNOWN))
    features = torch.zeros(KNOWN, FEATURES)
    graph = Graph.build(rows, features=features, num_classes=CLASSES)
    method = LINKX(hidden=HIDDEN)
    return Model(
        method=method,
        weights=dict(method.network(graph).state_dict()),
        graph_info=TrainingGraph.of(graph),
        classes=list(range(CLASSES)),
    )


def from_arrays(model: Model, nodes: int, random: np.random.Generator) -> float:
    """Seconds from sparse rows and dense features to probabilities, at best."""
    columns = np.sort(random.integers(0, KNOWN, (nodes, DEGREE), np.int32))
    starts = torch.arange(0, nodes * DEGREE + 1, DEGREE)
    rows = Adjacency(starts, torch.from_numpy(columns.ravel()), KNOWN)
    features = torch.from_numpy(random.normal(size=(nodes, FEATURES))).float()
    spent = []
    for _ in range(TRIES):
        began = time.perf_counter()
        model.predict(rows, features)
        spent.append(time.perf_counter() - began)
    return min(spent)


def from_files(
    model: Model, nodes: int, random: np.random.Generator
) -> tuple[float, float]:
    """Seconds of the whole command on Parquet files, and its largest memory in MB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / "model")
        ids = KNOWN + np.arange(nodes)
        known = random.integers(0, KNOWN, nodes * DEGREE)
        order = random.permutation(nodes * DEGREE)
        new = np.repeat(ids, DEGREE)[order]
        edges = pa.table({"source": new, "target": known})
        told = {f"f{i}": random.normal(size=nodes) for i in range(FEATURES)}
        pyarrow.parquet.write_table(edges, folder / "edges.parquet")
        pyarrow.parquet.write_table(pa.table({"id": ids, **told}), folder / "n.parquet")
        words = ["predict", "model", "--edges", "edges.parquet", "--nodes", "n.parquet"]
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "unalike", *words, "--out", "scores.parquet"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        spent = time.perf_counter() - began
    return spent, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3


def main() -> None:
    """Score arrays, then files, and print how fast it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    nodes, random, model = options.nodes, np.random.default_rng(0), untrained()
    arrays = from_arrays(model, nodes, random)
    files, memory = from_files(model, nodes, random)
    sizes = {"nodes": nodes, "known": KNOWN, "degree": DEGREE, "hidden": HIDDEN}
    speeds = {
        "array_nodes_per_second": nodes / arrays,
        "file_nodes_per_second": nodes / files,
        "file_peak_mb": memory,
    }
    if options.json:
        print(json.dumps({**sizes, **speeds}))
        return
    print(f"{torch.get_num_threads()} threads, {KNOWN:,} known nodes, hidden {HIDDEN}")
    print(f"arrays to probabilities: {arrays:6.2f} s, {nodes / arrays:10,.0f} nodes/s")
    print(
        f"files to a file:         {files:6.2f} s, {nodes / files:10,.0f} nodes/s, "
        f"{memory:,.0f} MB"
    )


if __name__ == "__main__":
    main()
