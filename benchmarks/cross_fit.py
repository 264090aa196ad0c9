"""Time of K-fold cross-fitting of a base in one stack, beside a single fit.

python benchmarks/cross_fit.py                       LINKX on five graphs
python benchmarks/cross_fit.py --bases link gcn --datasets cora --folds 10

Both train on split 0, with the settings and the early stopping of a base of views. The
single fit hides no fold. Each is timed after one run that compiles kernels. `--json`
prints one document at the end.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable

import torch

from unalike.data.task import Task
from unalike.datasets import find
from unalike.device import choose_device, commit, device_name, versions
from unalike.methods.views import Views
from unalike.progress import NO_PROGRESS
from unalike.views.cross_fit import CrossFit, cross_fit
from unalike.views.folds import Folds

DATASETS = ("chameleon", "cora", "actor", "tolokers", "cornell5")


def seconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The least time of a few calls after a first one."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def compare(
    name: str, base: str, folds: int, repeats: int, device: torch.device
) -> dict[str, object]:
    """Seconds of a single fit and of all folds in one stack, and their ratio."""
    dataset = find(name)
    graph = dataset.prepared()
    task = Task.from_split(graph, dataset.splits()[0], dataset.metric)
    bases = Views(bases=(base,)).bases_of(graph, device, NO_PROGRESS)

    def fit(num_hidden: int) -> None:
        result = CrossFit(Folds.draw(graph.num_nodes, folds, 0))
        cross_fit(bases, [task], [result], num_hidden)

    single = seconds(lambda: fit(0), device, repeats)
    crossed = seconds(lambda: fit(1), device, repeats)
    return {
        "dataset": name,
        "nodes": graph.num_nodes,
        "base": base,
        "folds": folds,
        "single_s": round(single, 3),
        "cross_fit_s": round(crossed, 3),
        "ratio": round(crossed / single, 2),
    }


def main() -> None:
    """Print a line per graph and base, or the JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--bases", nargs="+", default=("linkx",))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    device = torch.device(choose_device(args.device))
    rows = []
    for name in args.datasets:
        for base in args.bases:
            row = compare(name, base, args.folds, args.repeats, device)
            rows.append(row)
            print(*row.values(), file=sys.stderr, flush=True)
    if args.json:
        source = {"commit": commit(), "device": device_name(device)}
        print(json.dumps({**source, "versions": versions(), "fits": rows}))


if __name__ == "__main__":
    main()
