"""Time and memory of views by stage, on a twin of any size.

python benchmarks/views.py                          a tenth of pokec-twin
python benchmarks/views.py --nodes 0                pokec-twin in full
python benchmarks/views.py --twin wiki --nodes 0    303 million edges
python benchmarks/views.py --device cuda --json     on a GPU, one JSON document
python benchmarks/views.py --directed               the stored graph, both directions
python benchmarks/views.py --bases link --head mlp  base methods and a head too

Own memory is what the process has allocated; with mapped files, which the system can
drop, it is the resident memory.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from unalike import Graph, Task, find, twin
from unalike.data.metrics import ACCURACY
from unalike.data.task import one_hot_labels
from unalike.device import choose_device
from unalike.methods.views import Views
from unalike.progress import NO_PROGRESS
from unalike.views.cross_fit import CrossFit, cross_fit
from unalike.views.folds import Folds, hide_each_fold
from unalike.views.graph_views import GRAPH_VIEWS
from unalike.views.heads import fit_trees
from unalike.views.label_views import LABEL_VIEWS, Neighbourhoods
from unalike.views.mlp_head import fit_mlp
from unalike.views.problem import Problem
from unalike.views.rows import KnownGraph
from unalike.views.table import SharedViews, ViewTable

STATUS = Path("/proc/self/status")
KINDS = {"own_gb": "RssAnon", "resident_gb": "VmRSS"}
INTERVAL = 0.01
"""Seconds between two readings of memory."""
WARM_UP_NODES = 20_000
"""Nodes of a twin whose views are made first, so that all loops are compiled."""
HEADS = {"mlp": fit_mlp, "trees": fit_trees}


@dataclass
class Stages:
    """Time and peak memory of named stages."""

    device: torch.device
    rows: list[dict[str, object]] = field(default_factory=list)

    def run(self, name: str, work: Callable[[], object]) -> object:
        """Do the work of a stage and record what it took."""
        peak, done = dict.fromkeys(KINDS, 0.0), threading.Event()
        watcher = threading.Thread(target=watch, args=(peak, done))
        watcher.start()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        begin, cpu = time.perf_counter(), time.process_time()
        try:
            result = work()
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
        finally:
            seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
            done.set()
            watcher.join()
        row: dict[str, object] = {
            "stage": name,
            "seconds": seconds,
            "cpu_seconds": cpu,
            **peak,
        }
        if self.device.type == "cuda":
            row["gpu_gb"] = torch.cuda.max_memory_allocated(self.device) / 1e9
        self.rows.append(row)
        print(
            f"{name}: {seconds:.1f} s, {cpu:.1f} s of CPU", file=sys.stderr, flush=True
        )
        return result


def watch(peak: dict[str, float], done: threading.Event) -> None:
    """Keep the largest memory of this process until `done`."""
    while STATUS.exists():
        lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        for key, name in KINDS.items():
            peak[key] = max(peak[key], 1024 * int(lines[name].split()[0]) / 1e9)
        if done.wait(INTERVAL):
            return


def measure(graph: Graph, options: argparse.Namespace, stages: Stages) -> None:
    """Make the views of one task, stage by stage."""
    device = stages.device
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    half, rest = len(order) // 2, 3 * len(order) // 4
    train, valid = order[:half], order[half:rest]
    task = Task(graph, train.sort()[0], valid.sort()[0], ACCURACY)
    known = stages.run("walks", lambda: KnownGraph.of(graph, options.hops, device))
    assert isinstance(known, KnownGraph)
    near = stages.run(
        "groups of equal rows", lambda: Neighbourhoods.of(known, options.views)
    )
    assert isinstance(near, Neighbourhoods)
    blocks = {}
    for name in [name for name in GRAPH_VIEWS if name in options.views]:
        blocks |= stages.run(
            name, lambda name=name: GRAPH_VIEWS[name](known, near.rows)
        )
    folds = Folds.draw(graph.num_nodes, options.folds, task.seed)
    train_labels = one_hot_labels(task, task.train)
    labels = hide_each_fold(train_labels, folds.fine, folds.num_fine)
    for name in [name for name in LABEL_VIEWS if name in options.views]:
        blocks |= stages.run(name, lambda name=name: LABEL_VIEWS[name](near, labels))
    del labels
    fits = CrossFit(folds)
    if options.bases:
        method = Views(bases=tuple(options.bases), folds=options.folds)
        bases = method.bases_of(graph, device, NO_PROGRESS)
        stages.run("bases", lambda: cross_fit(bases, [task], [fits], 1))
        blocks |= fits.blocks()
    table = ViewTable(blocks, folds)
    problem = Problem(SharedViews(near, blocks, options.views), task, table, fits)
    for name in options.head:
        fit = {"mlp": lambda e: fit_mlp(e, device=device), "trees": fit_trees}[name]
        stages.run(f"head: {name}", lambda fit=fit: problem.fit(fit))


def main() -> None:
    """Print the table of stages, or the JSON document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--twin", default="pokec")
    parser.add_argument("--nodes", type=int, default=163_280, help="0: all")
    parser.add_argument("--directed", action="store_true")
    groups = ["structure", "features", "spectrum", "labels", "duplicates"]
    parser.add_argument("--views", nargs="+", default=groups)
    parser.add_argument("--bases", nargs="*", default=[])
    parser.add_argument("--head", nargs="*", default=[], choices=list(HEADS))
    parser.add_argument("--hops", type=int, default=2)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    size = {"num_nodes": options.nodes} if options.nodes else {}
    source = twin(options.twin, **size) if size else find(f"{options.twin}-twin")
    graph = source.load() if options.directed else source.prepared()
    device = torch.device(choose_device(options.device))
    small = twin(options.twin, num_nodes=min(WARM_UP_NODES, graph.num_nodes))
    measure(
        small.load() if options.directed else small.prepared(), options, Stages(device)
    )
    stages = Stages(device)
    measure(graph, options, stages)
    total = {
        "stage": "all",
        **{
            key: sum(row[key] for row in stages.rows)
            for key in ("seconds", "cpu_seconds")
        },
        **{
            key: max(row[key] for row in stages.rows)
            for key in stages.rows[0]
            if key.endswith("_gb")
        },
    }
    rows = [*stages.rows, total]
    if options.json:
        about = {
            "twin": options.twin,
            "nodes": graph.num_nodes,
            "entries": graph.adjacency.nnz,
            "features": graph.num_features,
            "threads": torch.get_num_threads(),
        }
        print(json.dumps({**about, "stages": rows}))
        return
    print(f"{graph.num_nodes:,} nodes, {graph.adjacency.nnz:,} entries")
    keys = [key for key in rows[0] if key != "stage"]
    print(f"{'stage':22}" + "".join(f"{key:>13}" for key in keys))
    for row in rows:
        print(f"{row['stage']:22}" + "".join(f"{row[key]:13.2f}" for key in keys))


if __name__ == "__main__":
    main()
