"""LINKX on a graph of 607 million entries by batches of rows: time and memory.

python benchmarks/larger_than_memory.py                     wiki-twin, two epochs
python benchmarks/larger_than_memory.py --graph pokec-twin  another graph
"""

import argparse
import resource
import time
from pathlib import Path

import torch

from unalike import LINKX, Task, Training, find
from unalike.methods.base import with_directions
from unalike.samplers.rows import RowSampler
from unalike.training import loop
from unalike.training.masks import merged_labels


def resident_gb() -> dict[str, float]:
    """Memory of this process now: its own, and that of files it has mapped."""
    path = Path("/proc/self/status")
    if not path.exists():
        return {}
    lines = dict(line.split(":", 1) for line in path.read_text().splitlines())
    kinds = {"own": "RssAnon", "mapped": "RssFile", "peak": "VmHWM"}
    return {told: int(lines[name].split()[0]) / 2**20 for told, name in kinds.items()}


def main() -> None:
    """Train, and tell of every epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="wiki-twin")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--size", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--tables", default="adamw")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    source = find(options.graph)
    began = time.perf_counter()
    graph = source.prepared()
    print(f"{options.graph}: {graph.num_nodes:,} nodes, ", end="")
    print(f"{graph.adjacency.nnz:,} entries, {graph.num_features} features, ")
    print(f"there after {time.perf_counter() - began:.1f} s")
    batching = RowSampler(size=options.size, tables=options.tables)
    training = Training(epochs=options.epochs)
    method = LINKX(hidden=options.hidden, batching=batching, training=training)
    task = Task.from_split(graph, source.splits()[0], source.metric, 0)
    task = Task(**{**vars(task), "graph": with_directions(graph, method.directions)})
    run = loop.FitSpec(method.network, task, training, batching, row_wise=True)
    device = torch.device(options.device)
    state = loop.init_state([run], merged_labels([task]), device)
    epochs = loop.make_epochs([run], state, merged_labels([task]), loop.NO_PROGRESS)
    for _ in range(options.epochs):
        began, seen = time.perf_counter(), epochs.edges_seen
        stepped, waited = epochs.step_seconds, epochs.wait_seconds
        epochs.run_epoch()
        spent, steps = time.perf_counter() - began, epochs.step_seconds - stepped
        print(
            f"epoch {spent:.1f} s, of which steps {steps:.1f} s: "
            f"{(epochs.edges_seen - seen) / steps / 1e6:.1f} M edges/s, "
            f"{(epochs.wait_seconds - waited) / steps:.0%} waiting for rows; "
            + ", ".join(f"{k} {gb:.2f} GB" for k, gb in resident_gb().items()),
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak resident memory {peak:.2f} GB")
    if device.type == "cuda":
        print(f"on the card {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
