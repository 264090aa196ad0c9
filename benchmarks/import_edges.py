"""How fast are edges imported, and in how much memory? Prints a table."""

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

HEADER = (
    "format           edges       nodes file GB graph GB  seconds M edges/s  CPU s "
    "peak GB"
)
PIECE = 1 << 20
NODES = 2_000_000
SPREAD = 0x9E3779B97F4A7C15 >> 8
"""Turns 0, 1, 2, … into ids with large gaps, as hashes and account numbers have."""


def pieces(num_edges: int, ids: str) -> Iterator[pa.RecordBatch]:
    """Edges whose ends are drawn with a power law: few nodes have most of them."""
    draw = np.random.default_rng(0)
    shuffled = draw.permutation(NODES)
    names = shuffled if ids == "dense" else shuffled * SPREAD
    for first in range(0, num_edges, PIECE):
        size = min(PIECE, num_edges - first)
        ends = [names[(draw.random(size) ** 3 * NODES).astype(int)] for _ in range(2)]
        yield pa.RecordBatch.from_arrays(
            [pa.array(end.astype(np.int64)) for end in ends], ["source", "target"]
        )


def write(path: Path, open_writer: Callable, edges: Iterator[pa.RecordBatch]) -> None:
    """Write a file of edges batch by batch."""
    first = next(edges)
    with open_writer(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in edges:
            writer.write_batch(batch)


def measure(path: Path, out: Path) -> tuple[dict, int]:
    """Import a file in a process of its own: its summary and its peak of memory."""
    command = [sys.executable, "-m", "unalike", "import", str(path), "--json"]
    child = subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.PIPE)
    summary = json.load(child.stdout)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit(f"the import of {path} failed")
    summary["cpu"] = usage.ru_utime + usage.ru_stime
    return summary, usage.ru_maxrss * 1024


def row(name: str, path: Path, out: Path) -> str:
    """One line of the table."""
    told, peak = measure(path, out)
    return (
        f"{name:<8} {told['edges'] + told['repeats']:>13,} {told['nodes']:>11,} "
        f"{path.stat().st_size / 1e9:>7.2f} {told['bytes'] / 1e9:>8.2f} "
        f"{told['seconds']:>8.1f} {told['edges_per_second'] / 1e6:>10.2f} "
        f"{told['cpu']:>6.1f} {peak / 1e9:>7.2f}"
    )


def main() -> None:
    """Generate edges, import them, and tell the cost."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=300_000_000)
    parser.add_argument("--ids", choices=["spread", "dense"], default="spread")
    parser.add_argument("--folder", help="where to write; a temporary folder otherwise")
    options = parser.parse_args()
    print(HEADER)
    formats = {
        "parquet": (pq.ParquetWriter, options.edges),
        "csv": (pa.csv.CSVWriter, options.edges // 10),
    }
    for name, (writer, num_edges) in formats.items():
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder, f"edges.{name}")
            write(path, writer, pieces(num_edges, options.ids))
            os.sync()
            print(row(name, path, Path(folder, "graph")), flush=True)


if __name__ == "__main__":
    main()
