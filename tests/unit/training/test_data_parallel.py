"""Data parallel training: steps of several processes equal those of one."""

from dataclasses import replace
from itertools import chain
from math import sqrt
from statistics import mean, variance

import pytest
import torch
from graphs import suiting, tasks_of
from processes import together
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from unalike import Graph, Split, Task
from unalike.data.metrics import ACCURACY
from unalike.datasets import find
from unalike.experiments.run import run
from unalike.methods.base import train_stacks
from unalike.methods.gcn import GCN, GCNJK
from unalike.samplers import SAMPLERS
from unalike.samplers.base import FullBatch, RandomPartSampler
from unalike.samplers.clusters import ClusterSampler
from unalike.samplers.graphsaint import (
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
)
from unalike.samplers.neighbours import NeighbourSampler
from unalike.training.distributed import World
from unalike.training.gradient_averaging import (
    all_reduce_gradients,
    average_buffers,
    local_batches,
)
from unalike.training.stack import Stack
from unalike.training.state import State, Training
from unalike.training.step import compute_gradients

SHORT = Training(epochs=4)
SUBGRAPHS = [
    ClusterSampler(parts=5, at_once=1),
    RandomPartSampler(parts=5),
    GraphSAINTNodeSampler(budget=60, steps=5),
    GraphSAINTRandomWalkSampler(roots=40, steps=5),
    NeighbourSampler(size=30, fan_out=(3, 3)),
]


@pytest.fixture(autouse=True)
def elsewhere(request, tmp_path, monkeypatch):
    """Partitions of small graphs are kept away from real data."""
    if "data" not in request.fixturenames:
        monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))


def islands(features):
    """Two graphs side by side, of which the second has few train nodes."""
    graph = suiting(nodes=200, features=features)
    ends = graph.adjacency.row_indices, graph.adjacency.indices.long()
    inside = (ends[0] < 100) == (ends[1] < 100)
    apart = Graph.from_edges(
        ends[0][inside],
        ends[1][inside],
        num_nodes=200,
        features=graph.features,
        labels=graph.labels,
    )
    known = (graph.labels >= 0).nonzero()[:, 0]
    train = torch.cat([known[known < 70], known[known >= 185]])
    others = known[~torch.isin(known, train)]
    return Task.from_split(apart, Split(train, others[::2], others[1::2]), ACCURACY, 3)


def step_curves(batching):
    """Losses and validation scores with dense and sparse features, without dropout."""
    torch.set_num_threads(1)
    settings = {"training": SHORT, "batching": batching, "hidden": 8, "dropout": 0.0}
    curves = [
        kind(batch_norm=False, **settings).solve(islands(features)).curve
        for kind in (GCN, GCNJK)
        for features in ("dense", "sparse")
    ]
    return [curve.losses + curve.valid_scores for curve in curves]


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.long
def test_a_step_on_two_batches_is_a_step_on_both_at_once(size):
    whole = step_curves(FullBatch())
    found = together(size, step_curves, ClusterSampler(parts=2))
    for curves in found:
        assert curves == found[0]
        for curve, at_once in zip(curves, whole, strict=True):
            assert curve == pytest.approx(at_once, rel=1e-5)
    for curve, at_once in zip(step_curves(ClusterSampler(parts=2)), whole, strict=True):
        assert curve != pytest.approx(at_once, rel=1e-3)


class Scores(nn.Module):
    """What a network makes of a batch, as torch's own wrapper wants it."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, batch):
        return self.network(batch)


def both_gradients(features):
    """Gradients of two unequal batches: DistributedDataParallel's, and ours."""
    task, world, generator = islands(features), World.current(), torch.Generator()
    drawn = ClusterSampler(parts=2).lazy_batches(task.graph, task.train, generator)
    (batch,) = local_batches(drawn, world)
    weight = batch.loss_weight[None]
    network, twin = network_of(task.graph), network_of(task.graph)
    wrapped = DistributedDataParallel(Scores(network))
    loss = ACCURACY.loss(wrapped(batch.graph)[None], batch.graph.labels, weight).sum()
    share = float(weight.sum()) / mean(world.all_gather_object(float(weight.sum())))
    (share * loss).backward()
    wanted = {name: one.grad for name, one in network.named_parameters()}

    stack = Stack.build([twin], device=torch.device("cpu"), bf16=False)
    products = stack.sparse_products(batch.graph)
    state = State.start(stack, [Training()])
    own = compute_gradients(state, batch.graph, weight, products, ACCURACY)
    gradients = all_reduce_gradients(own, world, counts=True)
    weights = {f"{name}.weight": one[:, 0] for name, one in gradients.products.items()}
    return wanted, weights | stack.parameters(gradients.params[0])


def gradients_of_all():
    torch.set_num_threads(1)
    return [both_gradients(features) for features in ("dense", "sparse")]


def network_of(graph):
    torch.manual_seed(0)
    return GCNJK(hidden=8, dropout=0.0, batch_norm=False).network(graph)


@pytest.mark.long
def test_gradients_are_those_of_distributed_data_parallel():
    for wanted, found in chain(*together(2, gradients_of_all)):
        assert wanted.keys() == found.keys()
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, wanted[name], atol=1e-7, rtol=1e-4)
        assert max(gradient.abs().max() for gradient in found.values()) > 1e-2


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.long
def test_train_nodes_with_all_their_surroundings_are_learned_as_by_one(size):
    batching = NeighbourSampler(size=30, fan_out=(200,) * 6)
    alone = step_curves(batching)
    for curves in together(size, step_curves, batching):
        for curve, wanted in zip(curves, alone, strict=True):
            assert curve == pytest.approx(wanted, rel=1e-4)


def seen(batch):
    """What identifies a batch."""
    rows = batch.graph.adjacency
    return batch.graph.ids.tolist(), batch.loss_weight.tolist(), rows.indices.tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("batching", SUBGRAPHS, ids=lambda one: type(one).__name__)
def test_processes_share_out_the_batches_of_one(batching, size):
    (task,) = tasks_of(suiting())

    def taken(rank):
        generator = torch.Generator().manual_seed(5)
        drawn = batching.lazy_batches(task.graph, task.train, generator)
        return list(local_batches(drawn, World(rank, size)))

    generator = torch.Generator().manual_seed(5)
    alone = [seen(one) for one in batching.epoch(task.graph, task.train, generator)]
    shares = [taken(rank) for rank in range(size)]
    assert {len(share) for share in shares} == {-(-len(alone) // size)}
    dealt = [
        one for step in zip(*shares, strict=True) for one in step if one.counts_in_loss
    ]
    assert [seen(one) for one in dealt] == alone
    assert len({str(one) for one in alone}) == len(alone) > 3


def answers():
    """What nets with batch norm and dropout answer, and their weights."""
    torch.set_num_threads(1)
    found = [
        GCN(hidden=8, training=SHORT, batching=batching).solve(replace(task, keep=True))
        for features in ("dense", "sparse")
        for task in tasks_of(suiting(features=features))
        for batching in SUBGRAPHS
    ]
    return [
        (
            one.scores.tolist(),
            one.curve.losses,
            one.curve.valid_scores,
            {name: weight.tolist() for name, weight in one.weights.items()},
        )
        for one in found
    ]


@pytest.mark.long
def test_all_processes_end_with_the_same_weights():
    first, second = together(2, answers)
    assert len(first) == 2 * len(SUBGRAPHS)
    assert first == second


def unlike_runs():
    """What runs come to that learn from many nodes and from one, in one stack."""
    torch.set_num_threads(1)
    usual, poor = tasks_of(suiting(), 2)
    poor = replace(poor, train=poor.train[:1])
    method = GCN(hidden=8, training=SHORT, batching=RandomPartSampler(parts=7))
    return [one.scores.tolist() for one in train_stacks([method] * 2, [usual, poor])]


def test_a_run_that_no_process_has_a_train_node_of_goes_on():
    first, second = together(2, unlike_runs)
    assert first == second
    assert torch.tensor(first).isfinite().all()


def averaged():
    """A running mean of every process, a rate and a count, once they are averaged."""
    world = World.current()
    buffers = [torch.tensor([1.0 + world.rank]), torch.tensor([0.7]), torch.tensor([9])]
    average_buffers(buffers, world)
    return [buffer.item() for buffer in buffers]


def test_running_statistics_are_averaged_and_nothing_else_moves():
    assert together(3, averaged) == [[2.0, torch.tensor(0.7).item(), 9]] * 3


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_only_parts_of_a_graph_can_be_shared_out(name):
    if name != "rows":
        assert GCN(batching=SAMPLERS[name]()).data_parallel == (name != "full")


REAL = [
    ClusterSampler(parts=20),
    GraphSAINTNodeSampler(budget=4000, steps=10),
    NeighbourSampler(size=1000, fan_out=(10, 5)),
]


def real_results(data, batching, seed):
    """Test accuracy of five splits of a real graph, and losses in the end."""
    torch.set_num_threads(1)
    method = GCNJK(training=Training(epochs=30), batching=batching)
    found = run(find("cornell5", data), method, splits=list(range(5)), seed=seed)
    return [(one.test, one.losses[-1]) for one in found]


def assert_alike(some, others):
    """Means differ by at most three times the standard error of that."""
    error = sqrt(variance(some) / len(some) + variance(others) / len(others))
    assert mean(some) == pytest.approx(mean(others), abs=3 * error)


@pytest.mark.slow
@pytest.mark.parametrize("batching", REAL, ids=lambda one: type(one).__name__)
def test_a_real_graph_is_learned_alike_by_two_processes(data, batching):
    alone, two = [], []
    for seed in range(2):
        alone += real_results(data, batching, seed)
        work = real_results, data, batching, seed
        first, second = together(2, *work, seconds=600)
        assert first == second
        two += first
    tests, losses = zip(*alone, strict=True)
    tests_of_two, losses_of_two = zip(*two, strict=True)
    assert_alike(tests, tests_of_two)
    if batching.per_process(2) != batching:
        assert_alike(losses, losses_of_two)
