"""What each part that exists for speed brings: an epoch with it, and one without it.

python benchmarks/speed_ablation.py                   the GPU, or a CPU without one
python benchmarks/speed_ablation.py --only "fused bias and ReLU" --rounds 9
python benchmarks/speed_ablation.py --cases "GCN, 1,600,000" "MLP, 1,600,000"

Both are timed in turn in one process; the ratio is that of the medians. A part whose
ratios are all below 1.1 should be deleted.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from unittest import mock

import torch
from torch import Tensor, nn

from unalike import METHODS, Training
from unalike.bench.epochs import EngineEpoch
from unalike.data.graph import Graph
from unalike.data.split import random_splits
from unalike.device import choose_device
from unalike.nn import cpu, linear, norm
from unalike.nn.linear import ConcatResidual, DeferredLinear
from unalike.nn.norm import NormActDrop
from unalike.training.loop import matmul_precision

EPOCHS = 10
"""Epochs between two readings of the clock."""


def concatenated(self: ConcatResidual, a: object, x: object) -> Tensor:
    """relu(W [a; x] + a + x) as it is written."""
    a, x = linear.value(a), linear.value(x)
    return torch.relu(self.linear(torch.cat([a, x], 1)) + a + x)


def layer_by_layer(
    self: NormActDrop, before: DeferredLinear, weight_out: Tensor | None, _: nn.Module
) -> Tensor:
    """Batch norm, ReLU, dropout and products one after another."""
    x = before.materialize()
    x = torch.relu(x) if self.relu == "before" else x
    x = self.norm(x)
    x = torch.relu(x) if self.relu == "after" else x
    return linear.matmul_padded(self.dropout(x), weight_out)


def replaced(*pairs: tuple[object, str, object]) -> Callable[[], ExitStack]:
    """A context in which attributes have other values."""

    @contextmanager
    def within() -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, value in pairs:
                stack.enter_context(mock.patch.object(owner, name, value))
            yield

    return within


def parts(device: torch.device) -> dict[str, Callable[[], ExitStack]]:
    """For each part the context without it."""
    found = {
        "folding W [a; x] + a + x into two products": replaced(
            (ConcatResidual, "forward", concatenated)
        ),
    }
    if device.type == "cuda":
        from unalike.nn import cuda

        found |= {
            "fused norm, ReLU and dropout": replaced(
                (NormActDrop, "_fused_cuda", layer_by_layer)
            ),
            "columns padded for tensor cores": replaced(
                (linear, "pad_last_dim", lambda x: x),
                (norm, "pad_last_dim", lambda x: x),
            ),
            "gradients in the layout of their tensor": replaced(
                (linear, "matmul_like", lambda x, a, b: a @ b),
                (norm, "matmul_like", lambda x, a, b: a @ b),
            ),
            "dense products of matrices that are dense enough": replaced(
                (cuda, "dense_if_faster", lambda *_: None)
            ),
            "fused bias and ReLU": replaced(
                (cuda, "bias_relu_", cpu.bias_relu_),
                (cuda, "bias_relu_backward", cpu.bias_relu_backward),
            ),
        }
    return found


@lru_cache(maxsize=1)
def random_graph(nodes: int, edges: int) -> Graph:
    """A graph with random edges, features and labels."""
    torch.manual_seed(0)
    return Graph.from_edges(
        torch.randint(nodes, (edges,)),
        torch.randint(nodes, (edges,)),
        num_nodes=nodes,
        features=torch.randn(nodes, 65),
        labels=torch.randint(5, (nodes,)),
    )


def cases(
    device: torch.device, large: int
) -> dict[str, Callable[[], tuple[Graph, list, object]]]:
    """Graphs, splits and methods: stacks of a small graph, and one large run."""
    wide = 512 if device.type == "cuda" else 64
    precisions = ("float32", "bf16") if device.type == "cuda" else ("float32",)

    def case(
        name: str, nodes: int, edges: int, splits: int, precision: str, **options: int
    ) -> Callable[[], tuple[Graph, list, object]]:
        def make() -> tuple[Graph, list, object]:
            graph = random_graph(nodes, edges)
            training = Training(epochs=10**6, precision=precision)
            method = METHODS[name](training=training, **options)
            return graph, random_splits(graph.labels, count=splits), method

        return make

    made = {}
    for p in precisions:
        made |= {
            f"LINKX, 2,000 nodes, hidden {wide}, 30 runs, {p}": case(
                "linkx", 2_000, 60_000, 30, p, hidden=wide, layers=2
            ),
            f"LINKX, 15 % dense, hidden {wide}, 30 runs, {p}": case(
                "linkx", 2_000, 300_000, 30, p, hidden=wide, layers=2
            ),
            f"LINKX, {large:,} nodes, hidden 128, {p}": case(
                "linkx", large, 13 * large, 1, p, hidden=128
            ),
            f"GCN, {large:,} nodes, hidden 128, {p}": case(
                "gcn", large, 13 * large, 1, p, hidden=128
            ),
            f"MLP, {large:,} nodes, hidden 128, {p}": case(
                "mlp", large, 13 * large, 1, p, hidden=128, layers=3
            ),
            f"GCN, 15 % dense, hidden {wide}, 30 runs, {p}": case(
                "gcn", 2_000, 300_000, 30, p, hidden=wide
            ),
        }
    return made


def measure(
    only: list[str], some_cases: list[str], rounds: int, nodes: int | None
) -> list[dict[str, object]]:
    """Milliseconds of an epoch with and without each part, for each case."""
    device = torch.device(choose_device("auto"))
    rows = []
    nodes = nodes or (1_600_000 if device.type == "cuda" else 50_000)
    for what, make in cases(device, nodes).items():
        if not any(what.startswith(one) for one in some_cases or [""]):
            continue
        graph, splits, method = make()
        for part, without in parts(device).items():
            if only and part not in only:
                continue
            times = compare(graph, splits, method, device, without, rounds)
            row = {"part": part, "case": what} | times
            print(json.dumps(row), flush=True)
            rows.append(row)
    return rows


def compare(graph, splits, method, device, without, rounds) -> dict[str, float]:
    """The medians of both epochs, timed in turn."""
    settle = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    times: dict[bool, list[float]] = {True: [], False: []}
    with matmul_precision(method.training):
        with_part = EngineEpoch.begin(graph, splits, method, device=device).epoch()
        warm(with_part, settle)
        with without():
            lacking = EngineEpoch.begin(graph, splits, method, device=device).epoch()
            warm(lacking, settle)
        for _ in range(rounds):
            times[True].append(seconds(with_part, settle))
            with without():
                times[False].append(seconds(lacking, settle))
    on, off = (1000 * statistics.median(times[key]) for key in (True, False))
    return {
        "ms": round(on, 3),
        "ms_without": round(off, 3),
        "ratio": round(off / on, 3),
    }


def warm(epoch: Callable[[], None], settle: Callable[[], None]) -> None:
    """Compile kernels and capture CUDA graphs."""
    for _ in range(4):
        epoch()
    settle()


def seconds(epoch: Callable[[], None], settle: Callable[[], None]) -> float:
    """The time of an epoch."""
    began = time.perf_counter()
    for _ in range(EPOCHS):
        epoch()
    settle()
    return (time.perf_counter() - began) / EPOCHS


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--cases", nargs="*", default=[], help="beginnings of names")
    parser.add_argument("--nodes", type=int, help="nodes of the large graphs")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = measure(options.only, options.cases, options.rounds, options.nodes)
    best: dict[str, float] = {}
    for row in found:
        best[row["part"]] = max(best.get(row["part"], 0.0), row["ratio"])
    print(json.dumps(best, indent=1))
