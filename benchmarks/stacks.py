"""Model-epochs a second of LINKX's grid: its stacks of sixty, and one run at a time.

python benchmarks/stacks.py                      nine datasets, widest and narrowest
python benchmarks/stacks.py --datasets pubmed --precision tf32 bf16
python benchmarks/stacks.py --datasets pubmed --profile
                                                 which kernels take the time

A stack holds every learning rate and dropout of the grid, on ten splits. One run at a
time is one of ours, and one of PyTorch Geometric's LINKX, on the faster form of edges.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import torch

from unalike import LINKX, Training
from unalike.bench.baselines import pyg_linkx_csr, pyg_linkx_edges, reference_epoch
from unalike.data.metrics import ACCURACY
from unalike.data.task import Task
from unalike.datasets import find
from unalike.device import choose_device
from unalike.training.loop import FitSpec, FullBatchEpochs, init_state, matmul_precision
from unalike.training.masks import RowPlan, merged_labels

DATASETS = (
    "texas",
    "wisconsin",
    "cornell",
    "chameleon",
    "cora",
    "citeseer",
    "squirrel",
    "actor",
    "pubmed",
)
RATES = (0.05, 0.01, 0.002)
DROPOUTS = (0.0, 0.5)
SPLITS = 10
WARM = 5
"""Epochs before the clock starts: kernels are compiled, and an epoch is recorded."""
MANY = 10_000
"""Epochs that no measurement uses up."""


def begin(
    name: str, methods: list[LINKX], splits: int, device: torch.device
) -> Callable[[], None]:
    """An epoch of a stack: some methods on some splits."""
    dataset = find(name)
    graph, known = methods[0].prepare(dataset.prepared()), dataset.splits()[:splits]
    pairs = list(product(methods, enumerate(known)))
    tasks = [
        Task.from_split(graph, split, ACCURACY, seed) for _, (seed, split) in pairs
    ]
    shown = merged_labels(tasks)
    runs = [
        FitSpec(method.network, task, method.training, row_wise=True)
        for (method, _), task in zip(pairs, tasks, strict=True)
    ]
    state = init_state(runs, shown, device)
    plan = RowPlan.of(state.stack, tasks, shown).to(device)
    return FullBatchEpochs(state, plan, ACCURACY, plan.rows).run_epoch


def grid(hidden: int, layers: int, precision: str) -> list[LINKX]:
    """What one stack of the grid holds."""
    return [
        LINKX(
            hidden=hidden,
            layers=layers,
            dropout=dropout,
            training=Training(lr=lr, precision=precision, epochs=MANY),
        )
        for lr, dropout in product(RATES, DROPOUTS)
    ]


def theirs(name: str, method: LINKX, count: int, device: torch.device) -> float:
    """The time of one epoch of a run of PyTorch Geometric's."""
    dataset = find(name)
    known = dataset.prepared()
    graph = replace(known, features=known.features.to_dense()).to(device)
    split = dataset.splits()[0]
    size, cuda = (method.hidden, method.layers), device.type == "cuda"
    return min(
        seconds(
            reference_epoch(lambda of, make=make: make(of, *size), graph, split),
            method,
            count,
            cuda,
        )
        for make in (pyg_linkx_csr, pyg_linkx_edges)
    )


def seconds(epoch: Callable[[], None], method: LINKX, count: int, cuda: bool) -> float:
    """The time of one epoch, the mean of some."""
    settle = torch.cuda.synchronize if cuda else lambda: None
    with matmul_precision(method.training):
        for _ in range(WARM):
            epoch()
        settle()
        began = time.perf_counter()
        for _ in range(count):
            epoch()
        settle()
    return (time.perf_counter() - began) / count


def profile(epoch: Callable[[], None], method: LINKX, count: int) -> None:
    """The kernels that take most of an epoch."""
    kinds = [torch.profiler.ProfilerActivity.CUDA]
    with (
        matmul_precision(method.training),
        torch.profiler.profile(activities=kinds) as found,
    ):
        for _ in range(count):
            epoch()
        torch.cuda.synchronize()
    rows = sorted(found.key_averages(), key=lambda row: -row.device_time_total)
    for row in rows[:20]:
        spent = row.device_time_total / count / 1000
        print(f"    {spent:8.3f} ms {row.count / count:6.1f} x {row.key[:90]}")


def main() -> None:
    """Time what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS))
    parser.add_argument("--hidden", nargs="*", type=int, default=[64, 512])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--precision", nargs="*", default=["tf32"])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--profile", action="store_true")
    told = parser.parse_args()
    device = torch.device(choose_device(told.device))
    cuda = device.type == "cuda"
    for name, hidden, precision in product(told.datasets, told.hidden, told.precision):
        methods = grid(hidden, told.layers, precision)
        epoch = begin(name, methods, SPLITS, device)
        together = seconds(epoch, methods[0], told.epochs, cuda)
        if told.profile and cuda:
            profile(epoch, methods[0], told.epochs)
        del epoch
        alone = begin(name, methods[:1], 1, device)
        one = seconds(alone, methods[0], told.epochs, cuda)
        peer = theirs(name, methods[0], told.epochs, device)
        runs = len(methods) * SPLITS
        print(
            f"{name:10} hidden {hidden:3} {precision:8} {1e3 * together:8.2f} ms, "
            f"{runs / together:9,.0f} model-epochs/s, "
            f"{runs * one / together:5.1f} times one of ours at a time, "
            f"{runs * peer / together:5.1f} times one of PyG's",
            flush=True,
        )


if __name__ == "__main__":
    main()
