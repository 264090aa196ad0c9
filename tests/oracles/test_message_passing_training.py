"""Initial weights and gradients of message passing, its losses, and its errors."""

import pytest
import torch
from graphs import tasks_of
from message_passing_models import (
    CLASSES,
    FEATURES,
    NODES,
    entry_of,
    make_graph,
    network_of,
    scatter,
)
from torch.nn import functional as F

from unalike import METHODS, Task, Training, UserError, random_splits
from unalike.data.metrics import ACCURACY
from unalike.data.two_hop import estimate_two_hop_nnz, two_hop_nnz_bound
from unalike.methods import base, h2gcn
from unalike.methods.base import MessagePassingMethod, train_stacks
from unalike.methods.h2gcn import csr_bytes, two_hop_adjacency
from unalike.training.stack import hidden_width

PASSING = [name for name in METHODS if issubclass(METHODS[name], MessagePassingMethod)]


@pytest.mark.parametrize("name", PASSING)
def test_gradients_are_those_of_finite_differences(name):
    graph = make_graph(directed=True, weighted=True)
    network = scatter(network_of(name, graph)).double()
    names, values = zip(*network.named_parameters(), strict=True)
    pull = torch.randn(NODES, CLASSES, dtype=torch.float64)

    def objective(*parameters):
        weights = dict(zip(names, parameters, strict=True))
        found = torch.func.functional_call(network, weights, (graph,))
        return (found * pull).sum()

    gradients = torch.autograd.grad(objective(*values), values)
    directions = [torch.randn_like(value) for value in values]
    for index, (gradient, direction) in enumerate(
        zip(gradients, directions, strict=True)
    ):
        moved = [
            objective(
                *values[:index], values[index] + step * direction, *values[index + 1 :]
            )
            for step in (1e-6, -1e-6)
        ]
        seen = (moved[0] - moved[1]).item() / 2e-6
        assert seen == pytest.approx((gradient * direction).sum().item(), rel=1e-4)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["gcn", "gcn-jk"])
def test_convolutions_have_glorot_weights(name, sparse):
    graph = make_graph(directed=False, sparse=sparse)
    network = network_of(name, graph, hidden=64)
    weight, bias = entry_of(network)
    bound = (6 / (FEATURES + 64)) ** 0.5
    assert 0.9 * bound < weight.abs().max() <= bound
    assert bias is None
    assert not network.bias.bias.any()


@pytest.mark.parametrize("name", ["gat", "gat-jk"])
def test_attention_has_glorot_weights(name):
    network = network_of(name, make_graph(directed=False), hidden=64, heads=4)
    layers = network.layers
    bound = (6 / (FEATURES + 4 * 64)) ** 0.5
    assert 0.9 * bound < entry_of(network)[0].abs().max() <= bound
    bound = (6 / (4 + 64)) ** 0.5
    for vector in (layers.att_src[0], layers.att_dst[0]):
        assert 0.9 * bound < vector.abs().max() <= bound
    assert not layers.bias.bias.any()


def test_hidden_width_counts_every_head():
    graph = make_graph(directed=False)
    one, four = (
        hidden_width(network_of("gat", graph, heads=heads)) for heads in (1, 4)
    )
    averaged = CLASSES
    assert four - averaged == 4 * (one - averaged)


def test_attention_has_heads():
    with pytest.raises(UserError, match="--heads is 0; it must be at least 1"):
        network_of("gat", make_graph(directed=False), heads=0)


def plain_losses(method, task, epochs):
    """The losses of an ordinary loop with torch's AdamW."""
    torch.manual_seed(task.seed)
    graph = method.prepare(task.graph)
    network = method.network(graph)
    adamw = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=1e-3)
    losses = []
    for _ in range(epochs):
        adamw.zero_grad()
        scores = network(graph)[task.train]
        loss = F.cross_entropy(scores, graph.labels[task.train])
        loss.backward()
        adamw.step()
        losses.append(loss.item())
    return losses


LSTMS = {"jump": "lstm", "hidden": 4}
CASES = [
    *((name, {}) for name in PASSING),
    *((name, LSTMS) for name in PASSING if hasattr(METHODS[name], "jump")),
]


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.long
def test_a_stack_trains_as_plain_loops_do(name, options, sparse):
    graph = make_graph(directed=True, sparse=sparse)
    splits = random_splits(graph.labels, count=2)
    tasks = [Task.from_split(graph, s, ACCURACY, i) for i, s in enumerate(splits)]
    still = {"dropout": 0.0} if hasattr(METHODS[name], "dropout") else {}
    method = METHODS[name](training=Training(epochs=4), **still, **options)
    found = train_stacks([method] * 2, tasks)
    for task, solution in zip(tasks, found, strict=True):
        wanted = plain_losses(method, task, 4)
        assert solution.curve.losses == pytest.approx(wanted, rel=1e-3)


def test_too_large_a_two_hop_graph_is_refused(monkeypatch):
    (task,) = tasks_of(make_graph(directed=True))
    monkeypatch.setattr(h2gcn, "free_memory", lambda device: 100)
    with pytest.raises(UserError, match=r"needs about .* GB; .* free on the cpu"):
        METHODS["h2gcn"]().solve(task)
    assert "two_hop" not in vars(task.graph.adjacency)


def test_what_fits_by_its_estimate_is_not_refused(monkeypatch):
    graph = make_graph(directed=False)
    pattern = graph.adjacency.to_scipy().astype(bool)
    free = csr_bytes(estimate_two_hop_nnz(pattern))
    assert free < csr_bytes(two_hop_nnz_bound(pattern))
    monkeypatch.setattr(h2gcn, "free_memory", lambda device: free)
    assert two_hop_adjacency(graph.adjacency) is graph.adjacency.two_hop


def test_too_many_features_are_not_made_dense(monkeypatch):
    monkeypatch.setattr(base, "MAX_DENSE_NUMEL", 10)
    graph = make_graph(directed=False, sparse=True)
    with pytest.raises(UserError, match="--no-drop-features"):
        METHODS["gcnii"]().prepare(graph)
    assert METHODS["gcnii"](drop_features=False).prepare(graph) is graph
