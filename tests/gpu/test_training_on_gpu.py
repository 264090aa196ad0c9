"""Training on a GPU: the same curve as on the CPU, the same bits each time."""

from dataclasses import fields, replace

import pytest
import torch

from unalike import Adjacency, Graph, Task, random_splits
from unalike.data.metrics import ACCURACY
from unalike.methods import METHODS
from unalike.methods.base import TrainedMethod, train_stacks
from unalike.training.state import Training

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def small_graph():
    torch.manual_seed(0)
    labels = torch.randint(3, (400,))
    source, target = torch.randint(400, (2, 6000))
    mask = (labels[source] != labels[target]) | (torch.rand(6000) < 0.2)
    features = torch.randn(400, 20) + labels[:, None] / 3
    return Graph.from_edges(
        source[mask], target[mask], num_nodes=400, features=features, labels=labels
    )


def tasks_of(graph, count):
    splits = random_splits(graph.labels, count=count)
    return [Task.from_split(graph, s, ACCURACY, i) for i, s in enumerate(splits)]


@pytest.mark.parametrize(
    "name", [name for name, kind in METHODS.items() if issubclass(kind, TrainedMethod)]
)
def test_curve_is_that_of_the_cpu(name):
    graph = small_graph()
    has_dropout = "dropout" in {field.name for field in fields(METHODS[name])}
    options = {"dropout": 0.0} if has_dropout else {}
    # On a CPU, Polynormer's loss differs by 1e-3 after 12 epochs already if the
    # features differ by 1e-7: its layers multiply hidden states with each other.
    epochs = 5 if name == "polynormer" else 30
    method = METHODS[name](training=Training(epochs=epochs), **options)
    stack, tasks = [method] * 3, tasks_of(graph, 3)
    gpu = train_stacks(stack, tasks, device="cuda")
    cpu = train_stacks(stack, tasks, device="cpu")
    for found, wanted in zip(gpu, cpu, strict=True):
        assert found.curve.losses == pytest.approx(
            wanted.curve.losses, rel=1e-3, abs=1e-4
        )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("precision", "tolerance"), [("float32", 1e-3), ("tf32", 2e-2), ("bf16", 0.1)]
)
def test_deep_linkx_learns_as_on_the_cpu(sparse, precision, tolerance):
    graph = small_graph()
    if sparse:
        source, target = (graph.features > 1).nonzero().T
        rows = Adjacency.from_edges(source, target, shape=graph.features.shape)
        graph = replace(graph, features=rows)
    method = METHODS["linkx"](
        hidden=20,
        layers=3,
        edge_layers=2,
        feature_layers=2,
        dropout=0.0,
        training=Training(epochs=15, precision=precision),
    )
    stack, tasks = [method] * 3, tasks_of(graph, 3)
    gpu = train_stacks(stack, tasks, device="cuda")
    cpu = train_stacks(stack, tasks, device="cpu")
    for found, wanted in zip(gpu, cpu, strict=True):
        assert found.curve.losses == pytest.approx(wanted.curve.losses, abs=tolerance)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_same_seed_gives_the_same_bits(precision):
    graph = small_graph()
    method = METHODS["linkx"](
        layers=2, training=Training(epochs=20, precision=precision)
    )
    task = tasks_of(graph, 1)[0]
    first, second = (method.solve(task, device="cuda") for _ in range(2))
    assert torch.equal(first.scores, second.scores)


def test_too_large_a_stack_is_halved(monkeypatch):
    from unalike.methods import base

    fit = base.fit
    sizes = []

    def fit_two(runs, **options):
        sizes.append(len(runs))
        if len(runs) > 2:
            torch.empty(2**50, dtype=torch.uint8, device="cuda")
        return fit(runs, **options)

    monkeypatch.setattr(base, "fit", fit_two)
    method = METHODS["linkx"](training=Training(epochs=3))
    solutions = train_stacks([method] * 5, tasks_of(small_graph(), 5), device="cuda")
    assert len(solutions) == 5
    assert sizes == [5, 3, 2, 1, 2]
