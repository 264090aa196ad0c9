"""How message passing begins, that it learns by true slopes, and what it refuses."""

import pytest
import torch
from graphs import tasks_of
from passing import CLASSES, FEATURES, NODES, entry_of, make_graph, network_of, scatter
from torch.nn import functional as F

from unalike import METHODS, Task, Training, UserError, random_splits
from unalike.data.csr import estimate_two_hop_nnz, two_hop_nnz_bound
from unalike.data.metrics import ACCURACY
from unalike.methods import gcnii, h2gcn
from unalike.methods.base import MessagePassingMethod, train_stacks
from unalike.methods.h2gcn import csr_bytes, two_hop_adjacency
from unalike.training.stack import hidden_width

PASSING = [name for name in METHODS if issubclass(METHODS[name], MessagePassingMethod)]


@pytest.mark.parametrize("name", PASSING)
def test_gradients_are_slopes(name):
    graph = make_graph(directed=True, weighted=True)
    network = scatter(network_of(name, graph)).double()
    names, values = zip(*network.named_parameters(), strict=True)
    pull = torch.randn(NODES, CLASSES, dtype=torch.float64)

    def objective(*parameters):
        weights = dict(zip(names, parameters, strict=True))
        found = torch.func.functional_call(network, weights, (graph, {}))
        return (found * pull).sum()

    slopes = torch.autograd.grad(objective(*values), values)
    directions = [torch.randn_like(value) for value in values]
    for place, (slope, direction) in enumerate(zip(slopes, directions, strict=True)):
        moved = [
            objective(
                *values[:place], values[place] + step * direction, *values[place + 1 :]
            )
            for step in (1e-6, -1e-6)
        ]
        seen = (moved[0] - moved[1]).item() / 2e-6
        assert seen == pytest.approx((slope * direction).sum().item(), rel=1e-4)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["gcn", "gcn-jk"])
def test_convolutions_begin_as_glorot_says(name, sparse):
    graph = make_graph(directed=False, sparse=sparse)
    network = network_of(name, graph, hidden=64)
    weight, offset = entry_of(network)
    bound = (6 / (FEATURES + 64)) ** 0.5
    assert 0.9 * bound < weight.abs().max() <= bound
    assert offset is None
    assert not network.convolutions.last.offset.any()


@pytest.mark.parametrize("name", ["gat", "gat-jk"])
def test_attention_begins_as_glorot_says(name):
    network = network_of(name, make_graph(directed=False), hidden=64, heads=4)
    parts = network.attentions
    bound = (6 / (FEATURES + 4 * 64)) ** 0.5
    assert 0.9 * bound < entry_of(network)[0].abs().max() <= bound
    bound = (6 / (4 + 64)) ** 0.5
    for vector in (parts.sources[0], parts.targets[0]):
        assert 0.9 * bound < vector.abs().max() <= bound
    assert not parts.last.offset.any()


def test_room_is_made_for_every_head():
    graph = make_graph(directed=False)
    one, four = (
        hidden_width(network_of("gat", graph, heads=heads)) for heads in (1, 4)
    )
    averaged = CLASSES
    assert four - averaged == 4 * (one - averaged)


def test_attention_has_heads():
    with pytest.raises(UserError, match="0 heads"):
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
    once = graph.adjacency.to_scipy().astype(bool)
    room = csr_bytes(estimate_two_hop_nnz(once))
    assert room < csr_bytes(two_hop_nnz_bound(once))
    monkeypatch.setattr(h2gcn, "free_memory", lambda device: room)
    assert two_hop_adjacency(graph.adjacency) is graph.adjacency.two_hop


def test_too_many_features_are_not_made_dense(monkeypatch):
    monkeypatch.setattr(gcnii, "MOST_DENSE_NUMBERS", 10)
    graph = make_graph(directed=False, sparse=True)
    with pytest.raises(UserError, match="--no-drop-features"):
        METHODS["gcnii"]().prepare(graph)
    assert METHODS["gcnii"](drop_features=False).prepare(graph) is graph
