"""Generate twins at full size: time, memory, and how well each one fits.

Usage: python benchmarks/twins.py [--folder DIR] [--json] [NAME ...]

Each twin is generated in a process of its own into a folder that is removed again. The
large ones need room: wiki-twin about 4 GB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from unalike.data.graph import Graph
from unalike.datasets.twins import TWINS

BLOCK_ROWS = 100_000
HEADINGS = ("nodes", "edges", "edge_homophily", "class_homophily")
COSTS = ("seconds", "peak_GB", "disk_GB")


def main() -> None:
    """Print a row of figures for each twin, or one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(TWINS))
    parser.add_argument("--folder", type=Path, help="where to generate them")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(figures(options.names[0], options.folder)))
        return
    keys = ("name", *HEADINGS, *COSTS)
    rows = []
    if not options.json:
        print(*keys, sep="\t", flush=True)
    for name in options.names:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            command = [sys.executable, __file__, name, "--one", "--folder", folder]
            output = subprocess.run(command, check=True, capture_output=True).stdout
        rows.append({"name": name, **json.loads(output)})
        if not options.json:
            print(*(rows[-1][key] for key in keys), sep="\t", flush=True)
    if options.json:
        print(json.dumps({"twins": rows}))


def figures(name: str, folder: Path) -> dict[str, float]:
    """Generate one twin and measure it."""
    start = time.perf_counter()
    stored = TWINS[name].save(folder / name)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = sum(path.stat().st_size for path in (folder / name).iterdir())
    table = class_table(stored.graph)
    return {
        "nodes": stored.graph.num_nodes,
        "edges": stored.graph.num_edges,
        "edge_homophily": round(np.trace(table) / table.sum(), 4),
        "class_homophily": round(class_homophily(stored.graph, table[:-1, :-1]), 4),
        "seconds": round(seconds, 1),
        "peak_GB": round(peak / 1e6, 2),
        "disk_GB": round(size / 1e9, 2),
    }


def class_table(graph: Graph) -> np.ndarray:
    """Edges from class to class, unlabelled nodes last, in blocks of rows."""
    size = graph.num_classes + 1
    classes = np.where(graph.labels < 0, graph.num_classes, graph.labels)
    indptr, indices = graph.adjacency.indptr.numpy(), graph.adjacency.indices.numpy()
    table = np.zeros(size * size, np.int64)
    for first in range(0, graph.num_nodes, BLOCK_ROWS):
        rows = slice(first, min(first + BLOCK_ROWS, graph.num_nodes))
        sources = np.repeat(classes[rows], np.diff(indptr[first : rows.stop + 1]))
        targets = classes[indices[indptr[first] : indptr[rows.stop]]]
        table += np.bincount(sources * size + targets, minlength=size * size)
    return table.reshape(size, size)


def class_homophily(graph: Graph, table: np.ndarray) -> float:
    """Class homophily of the stored edges."""
    known = graph.labels[graph.labels >= 0].numpy()
    own = np.diag(table) / np.maximum(table.sum(1), 1)
    above = np.maximum(own - np.bincount(known) / len(known), 0)
    return above.sum() / (graph.num_classes - 1)


if __name__ == "__main__":
    main()
