"""Correct and smooth against PyTorch Geometric and against dense algebra."""

import warnings
from dataclasses import replace

import pytest
import torch
from graphs import drawn, suiting, tasks_of

from unalike import MLP, CorrectAndSmooth, Graph, Training
from unalike.methods.correct_and_smooth import SmoothingInputs
from unalike.nn.normalized_adjacency import NormalizedAdjacency

with warnings.catch_warnings():
    # Importing it compiles a script, which torch has come to warn of.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric import nn as pyg

BASE = MLP(hidden=8, training=Training(epochs=5))
SCALES = {
    "both": lambda matrix, d: d**-0.5 * matrix * (d**-0.5).T,
    "rows": lambda matrix, d: matrix / d,
    "columns": lambda matrix, d: matrix / d.T,
}

close = torch.testing.assert_close


def written_out(adjacency, by):
    """The scaled adjacency as a dense matrix; rows are the nodes that gather."""
    matrix = adjacency.to_dense().double().T
    return SCALES[by](matrix, matrix.sum(1, keepdim=True)).nan_to_num(0, 0, 0)


def ones(task):
    known = torch.zeros(task.graph.num_nodes, task.graph.num_classes).double()
    known[task.train, task.graph.labels[task.train]] = 1
    return known


def by_hand(method, task, shares):
    """The formulas one after the other, node by node where they are per node."""
    graph = task.graph.to_undirected() if method.symmetrised else task.graph
    correct, smooth = (
        torch.linalg.matrix_power(written_out(graph.adjacency, by), method.flow_hops)
        for by in (method.correct_by, method.smooth_by)
    )
    shares, known = shares.double(), ones(task)
    error = torch.zeros_like(shares)
    error[task.train] = (known - shares)[task.train]
    propagated, alpha = error.clone(), method.correct_alpha
    for _ in range(method.flow_steps):
        propagated = alpha * correct @ propagated + (1 - alpha) * error
        if method.scaling == "auto":
            propagated = propagated.clamp(-1, 1)
        else:
            propagated[task.train] = error[task.train]
    usual = error[task.train].abs().sum() / len(task.train)
    moved = shares.clone()
    for node in range(len(shares)):
        size = propagated[node].abs().sum()
        factor = usual / size if size > 0 and usual / size <= 1000 else 1.0
        factor = factor if method.scaling == "auto" else method.scale
        moved[node] += factor * propagated[node]
    start, alpha = moved.clone(), method.smooth_alpha
    start[task.train] = known[task.train]
    smoothed = start
    for _ in range(method.flow_steps):
        smoothed = (alpha * smooth @ smoothed + (1 - alpha) * start).clamp(0, 1)
    return smoothed.float()


def shares_of(task):
    return BASE.solve(task).scores.softmax(1)


def weighted(graph):
    rows = graph.adjacency.to_scipy().astype("float32")
    rows.data[:] = 0.25 + torch.arange(rows.nnz).numpy() % 3
    return Graph.from_scipy(rows, features=graph.features, labels=graph.labels)


@pytest.mark.parametrize("scaling", ["auto", "fixed"])
@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize(
    ("correct_by", "smooth_by"),
    [("both", "rows"), ("rows", "columns"), ("columns", "both")],
)
@pytest.mark.parametrize("symmetrised", [True, False])
@pytest.mark.long
def test_it_is_its_formulas(scaling, hops, correct_by, smooth_by, symmetrised):
    for graph in (
        suiting(nodes=50, directed=True),
        weighted(suiting(nodes=50, classes=3, directed=True)),
    ):
        (task,) = tasks_of(graph)
        method = CorrectAndSmooth(
            base=BASE,
            correct_alpha=0.8,
            smooth_alpha=0.6,
            correct_by=correct_by,
            smooth_by=smooth_by,
            scaling=scaling,
            scale=2.5,
            flow_hops=hops,
            flow_steps=7,
            symmetrised=symmetrised,
        )
        wanted = by_hand(method, task, shares_of(task))
        close(method.solve(task).scores, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scaling", ["auto", "fixed"])
def test_it_is_that_of_pyg(scaling):
    (task,) = tasks_of(suiting(nodes=80, classes=3))
    rows = written_out(task.graph.adjacency, "both").float()
    edges = rows.nonzero().T
    peer = pyg.CorrectAndSmooth(
        50, 0.7, 50, 0.4, autoscale=scaling == "auto", scale=1.7
    )
    chosen = torch.zeros(80, dtype=torch.bool)
    chosen[task.train] = True
    labels = task.graph.labels[chosen]
    expected = peer(shares_of(task), labels, chosen, edges.flip(0), rows[tuple(edges)])
    method = CorrectAndSmooth(
        base=BASE, correct_alpha=0.7, smooth_alpha=0.4, scaling=scaling, scale=1.7
    )
    close(method.solve(task).scores, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("by", SCALES)
def test_no_loops_are_added_and_those_there_stay(by):
    graph = drawn([(0, 0), (0, 1), (1, 2)], 4, directed=True)
    found = NormalizedAdjacency.of(graph.adjacency, by) @ torch.eye(4)
    close(found, written_out(graph.adjacency, by).float())
    assert float(found[0, 0]) > 0
    assert not found[3].any()


def test_valid_labels_are_not_looked_at():
    (task,) = tasks_of(suiting(nodes=80))
    solution = BASE.solve(task)
    labels = task.graph.labels.clone()
    labels[task.valid] = 1 - labels[task.valid]
    other = replace(task, graph=replace(task.graph, labels=labels))
    once, again = (
        CorrectAndSmooth().correct_and_smooth(
            SmoothingInputs.of([one], [solution], undirected=True)
        )
        for one in (task, other)
    )
    assert torch.equal(once, again)


def test_several_tasks_are_solved_as_each_alone():
    tasks = tasks_of(suiting(nodes=80), 3)
    # Batch norm amplifies rounding, in which a stack differs from a single run.
    base = replace(BASE, layers=1, dropout=0.0)
    method = CorrectAndSmooth(base=base, flow_hops=2)
    for task, found in zip(tasks, method.solve_all(tasks), strict=True):
        alone = method.solve(task)
        close(found.scores, alone.scores, rtol=1e-3, atol=1e-3)
        assert found.curve.best_epoch == alone.curve.best_epoch


def test_the_base_is_trained_once_for_all_tasks(monkeypatch):
    calls = []

    def counted(self, tasks, **options):
        calls.append(len(tasks))
        return solve_all(self, tasks, **options)

    solve_all = MLP.solve_all
    monkeypatch.setattr(MLP, "solve_all", counted)
    CorrectAndSmooth(base=BASE).solve_all(tasks_of(suiting(nodes=60), 3))
    assert calls == [3]
