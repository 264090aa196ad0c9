"""How fast random rows of a stored graph become a batch, beside scipy.

python benchmarks/row_loader.py                     60 million edges
python benchmarks/row_loader.py --edges 300000000   the same with more edges
python benchmarks/row_loader.py --json              one JSON document
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeAlias

import numpy as np
import scipy.sparse
import torch

from unalike import Adjacency, open_graph
from unalike.data import store as store_module
from unalike.data.store import StoredGraph, atomic_graph_writer

Work: TypeAlias = Callable[[torch.Tensor], object]

MEAN_DEGREE, FEATURES, BATCHES = 150, 600, 30


def store(folder: Path, edges: int, width: int) -> None:
    """A random graph with a heavy tail of degrees, written piece by piece."""
    random = np.random.default_rng(0)
    nodes = edges // MEAN_DEGREE
    lengths = random.pareto(2.5, nodes) + 1
    lengths = (lengths * MEAN_DEGREE / lengths.mean()).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    with atomic_graph_writer(folder) as draft:
        draft.add("starts", starts)
        with draft.append_array("columns", np.int32) as append:
            for first in range(0, nodes, 10_000):
                size = starts[min(first + 10_000, nodes)] - starts[first]
                append(random.integers(0, nodes, size, dtype=np.int32))
        features = draft.create_memmap("features", np.float16, (nodes, width))
        features[:] = 1
        draft.add("labels", np.zeros(nodes, np.int64))
        draft.add("splits", np.zeros((0, nodes), np.int8))
        counts = {"num_nodes": nodes, "num_edges": int(starts[-1]), "num_loops": 0}
        kinds = {"num_features": width, "num_classes": 1, "directed": True}
        draft.commit({**counts, **kinds, "metric": "accuracy"})


def seconds(works: dict[str, Work], nodes: int, size: int) -> dict[str, float]:
    """The usual time each work takes for a batch, each time of other rows."""
    chance = torch.Generator().manual_seed(0)
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(BATCHES):
        for name, work in works.items():
            ids = torch.randperm(nodes, generator=chance)[:size]
            start = time.perf_counter()
            work(ids)
            spent[name].append(time.perf_counter() - start)
    return {name: median(times) for name, times in spent.items()}


def filed(stored: StoredGraph) -> Adjacency:
    """The rows of a stored graph, as those of a large one are read."""
    usual, store_module.FILE_BACKED_BYTES = store_module.FILE_BACKED_BYTES, 0
    try:
        return stored.graph.adjacency
    finally:
        store_module.FILE_BACKED_BYTES = usual


def speeds(stored: StoredGraph, size: int) -> dict[str, object]:
    """The speed of each way to the same kind of rows."""
    graph = stored.graph
    rows, features = graph.adjacency, graph.features
    peer = scipy.sparse.csr_array(rows.to_scipy())
    works: dict[str, Work] = {
        "unalike rows": rows.select_rows,
        "scipy csr[rows]": lambda ids: peer[ids.numpy()],
        "unalike rows with features": graph.select_rows,
        "unalike rows, read from files": filed(stored).select_rows,
        "torch features[ids]": lambda ids: features[ids],
    }
    for touched in (rows.indices, features.view(torch.int16)):
        touched.sum()
    edges = size * rows.nnz / graph.num_nodes
    spent = seconds(works, graph.num_nodes, size)
    rows_found = [
        {
            "what": name,
            "ms": 1e3 * taken,
            "million_edges_per_second": edges / taken / 1e6,
            "times_scipy": spent["scipy csr[rows]"] / taken,
        }
        for name, taken in spent.items()
    ]
    sizes = {"rows": size, "nodes": graph.num_nodes, "edges": edges}
    return {**sizes, "ways": rows_found}


def print_table(found: dict[str, object]) -> None:
    """Print the speeds as a table."""
    rows, nodes, edges = (found[name] for name in ("rows", "nodes", "edges"))
    print(f"{rows:,} random rows of {nodes:,}, {edges:,.0f} edges a batch")
    print(f"{'':30}{'ms':>8}{'million edges/s':>18}{'times scipy':>14}")
    for way in found["ways"]:
        shown = f"{way['million_edges_per_second']:18,.0f}{way['times_scipy']:14.2f}"
        if "[ids]" in way["what"]:
            shown = ""
        print(f"{way['what']:30}{way['ms']:8.2f}{shown}")


def main() -> None:
    """Store a graph, read batches of it, remove it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=60_000_000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="unalike-bench-") as work:
        store(Path(work) / "graph", options.edges, options.features)
        found = speeds(open_graph(Path(work) / "graph"), options.rows)
    if options.json:
        print(json.dumps(found))
    else:
        print_table(found)


if __name__ == "__main__":
    main()
