"""How fast the one-hop measures are, and how much memory they take.

python benchmarks/measures.py                    300 million edges from disk, and PyG
python benchmarks/measures.py --edges 30000000   the same with fewer edges
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from numba import njit

from unalike import Graph, measure, open_graph
from unalike.data.adjacency import Adjacency
from unalike.data.store import atomic_graph_writer
from unalike.measures.registry import MATRIX_MEASURES, ONE_PASS_MEASURES

ONE_PASS = [*ONE_PASS_MEASURES, *MATRIX_MEASURES]
NEIGHBOURS, CLASSES, BLOCK = 150, 5, 20_000


@njit(nogil=True, cache=True)
def fill(columns, first, nodes, neighbours):
    """Ascending neighbours without repeats: a random start, then random steps."""
    for row in range(len(columns) // neighbours):
        state = np.uint64(first + row + 1) * np.uint64(0x9E3779B97F4A7C15)
        widest = nodes // neighbours
        column = 0
        for place in range(neighbours):
            state = state * np.uint64(6364136223846793005) + np.uint64(1)
            step = np.int64((state >> np.uint64(33)) % np.uint64(widest))
            columns[row * neighbours + place] = column + step
            column += widest


def store(folder: Path, edges: int) -> None:
    """A directed random graph, written block by block."""
    nodes = edges // NEIGHBOURS
    with atomic_graph_writer(folder) as draft:
        draft.add("starts", np.arange(nodes + 1) * NEIGHBOURS)
        columns = draft.create_memmap("columns", np.int32, (nodes * NEIGHBOURS,))
        for first in range(0, nodes, BLOCK):
            part = columns[first * NEIGHBOURS : (first + BLOCK) * NEIGHBOURS]
            fill(part, first, nodes, NEIGHBOURS)
        draft.add("labels", np.random.default_rng(0).integers(-1, CLASSES, nodes))
        draft.add("features", np.zeros((nodes, 0), np.float32))
        draft.add("splits", np.zeros((0, nodes), np.int8))
        counts = {"num_nodes": nodes, "num_edges": nodes * NEIGHBOURS, "num_loops": 0}
        kinds = {"num_features": 0, "num_classes": CLASSES, "directed": True}
        draft.commit({**counts, **kinds, "metric": "accuracy"})


def peak_memory() -> int:
    """The most memory this process has held, in bytes, mapped pages included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def from_disk(folder: Path) -> None:
    """Measure a stored graph in a process of its own; print what it took."""
    measure(open_graph(folder).load().subgraph(torch.arange(1000)), only=ONE_PASS)
    before = peak_memory()
    start = time.perf_counter()
    graph = open_graph(folder).load()
    found = measure(graph, only=ONE_PASS)
    seconds = time.perf_counter() - start
    mapped = graph.adjacency.indices.nbytes + graph.adjacency.indptr.nbytes
    print(
        json.dumps(
            {
                "edges": found["num_edges"],
                "threads": torch.get_num_threads(),
                "seconds": round(seconds, 2),
                "million_edges_per_second": round(found["num_edges"] / seconds / 1e6),
                "mapped_mb": round(mapped / 2**20),
                "memory_beyond_it_mb": round((peak_memory() - before - mapped) / 2**20),
                "whole_process_mb": round(peak_memory() / 2**20),
            }
        )
    )


def against_pyg(edges: int) -> None:
    """The same graph in memory: our one pass against PyG's three measures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.utils import homophily
    nodes = edges // 15
    columns = np.zeros(nodes * 15, np.int32)
    fill(columns, 0, nodes, 15)
    starts = torch.arange(nodes + 1) * 15
    labels = torch.from_numpy(np.random.default_rng(0).integers(0, CLASSES, nodes))
    rows = Adjacency(starts, torch.from_numpy(columns), nodes)
    graph = Graph.build(rows, labels=labels, directed=True)
    edge_index = torch.stack([rows.row_indices, rows.indices.long()])
    methods = ("edge", "node", "edge_insensitive")
    ours = best(lambda: measure(graph, only=ONE_PASS))
    theirs = best(lambda: [homophily(edge_index, labels, method=m) for m in methods])
    told = {"edges": len(columns), "unalike_seconds": ours, "pyg_seconds": theirs}
    print(json.dumps({**told, "times_as_fast": round(theirs / ours, 1)}))


def best(work, repeats: int = 3) -> float:
    """The shortest of a few runs, in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return round(min(seconds), 3)


def main() -> None:
    """Store a graph, measure it in a fresh process, remove it; then PyG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=300_000_000)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        from_disk(options.folder)
        return
    work = Path(tempfile.mkdtemp(prefix="unalike-bench-"))
    try:
        start = time.perf_counter()
        store(work / "graph", options.edges)
        print(json.dumps({"stored_in_seconds": round(time.perf_counter() - start, 1)}))
        again = [sys.executable, __file__, "--folder", str(work / "graph")]
        subprocess.run(again, check=True)
    finally:
        shutil.rmtree(work)
    against_pyg(options.edges // 10)


if __name__ == "__main__":
    main()
