"""Runs on several splits that train on the same batches."""

from dataclasses import replace

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import GCN, LINKX, Training
from unalike.data.metrics import ROC_AUC
from unalike.methods.base import group_runs, train_stacks
from unalike.samplers import SAMPLERS
from unalike.training.loop import FitSpec

QUICK = Training(epochs=5)
SHARED = {
    "clusters": {"parts": 6, "at_once": 2, "scoring": "batches"},
    "random-parts": {"parts": 4},
    "saint-nodes": {"budget": 80, "scoring": "parts"},
    "saint-walks": {"roots": 40},
    "saint-edges": {"budget": 60, "normalised": True},
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Partitions are kept away from real data."""
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))


def gcn(name):
    batching = SAMPLERS[name](**SHARED[name])
    return GCN(hidden=8, dropout=0.0, batching=batching, training=QUICK)


def linkx(**settings):
    batching = SAMPLERS["rows"](size=50, parts=3, **settings)
    return LINKX(hidden=4, batching=batching, training=QUICK)


METHODS = {name: gcn(name) for name in SHARED} | {"rows": linkx(style="paper")}


def alike(count=2, **settings):
    """Tasks on several splits with the same seed."""
    return [replace(task, seed=3) for task in tasks_of(suiting(), count, **settings)]


def together(method, tasks):
    """Which of the tasks train in one stack."""
    runs = [FitSpec(method.network, task, QUICK, method.batching) for task in tasks]
    return list(group_runs(runs, 10, [()] * len(runs)))


def assert_alike(found, wanted):
    torch.testing.assert_close(
        torch.tensor(found.curve.losses), torch.tensor(wanted.curve.losses)
    )
    assert found.curve.valid_scores == pytest.approx(wanted.curve.valid_scores)
    assert found.curve.best_epoch == wanted.curve.best_epoch
    torch.testing.assert_close(found.scores, wanted.scores, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.long
def test_a_run_beside_other_splits_is_that_run_alone(name):
    method, tasks = METHODS[name], alike(3)
    assert together(method, tasks) == [[0, 1, 2]]
    solutions = train_stacks([method] * 3, tasks)
    for task, solution in zip(tasks, solutions, strict=True):
        assert_alike(solution, method.solve(task))


@pytest.mark.parametrize("name", ["random-parts", "rows"])
@pytest.mark.long
def test_settings_and_splits_share_a_stack(name):
    faster = replace(METHODS[name], training=Training(epochs=5, lr=0.03))
    pairs = [(one, task) for task in alike() for one in (METHODS[name], faster)]
    solutions = train_stacks(*zip(*pairs, strict=True))
    for (method, task), solution in zip(pairs, solutions, strict=True):
        assert_alike(solution, method.solve(task))


def test_equal_train_nodes_are_chosen_on_their_own_valid_nodes():
    (first,) = alike(1)
    used = torch.cat([first.train, first.valid])
    left = torch.arange(300)[~torch.isin(torch.arange(300), used)]
    left = left[suiting().labels[left] >= 0]
    labels = first.graph.labels.clone()
    labels[left] = 1 - suiting().labels[left]
    graph = replace(first.graph, labels=labels)
    second = replace(first, graph=graph, valid=left)
    method = METHODS["random-parts"]
    solutions = train_stacks([method] * 2, [first, second])
    for task, solution in zip((first, second), solutions, strict=True):
        assert_alike(solution, method.solve(task))


LOOKING = {
    "rows": linkx(),
    "neighbours": GCN(batching=SAMPLERS["neighbours"]()),
}


@pytest.mark.parametrize("name", LOOKING)
def test_splits_whose_train_nodes_decide_on_batches_are_apart(name):
    assert together(LOOKING[name], alike()) == [[0], [1]]


def test_classes_weigh_what_they_do_on_each_split():
    tasks = [
        replace(task, class_weights=torch.tensor(weights))
        for task, weights in zip(alike(), ([1.0, 5.0], [3.0, 1.0]), strict=True)
    ]
    method = METHODS["random-parts"]
    for task, solution in zip(tasks, train_stacks([method] * 2, tasks), strict=True):
        assert_alike(solution, method.solve(task))


def test_equal_splits_keep_their_own_class_weights():
    (first,) = alike(1)
    tasks = [
        replace(first, class_weights=weights)
        for weights in (None, torch.tensor([1.0, 5.0]), torch.tensor([3.0, 1.0]))
    ]
    method = METHODS["random-parts"]
    for task, solution in zip(tasks, train_stacks([method] * 3, tasks), strict=True):
        assert_alike(solution, method.solve(task))


def test_another_metric():
    tasks = alike(metric=ROC_AUC)
    method = METHODS["clusters"]
    for task, solution in zip(tasks, train_stacks([method] * 2, tasks), strict=True):
        assert_alike(solution, method.solve(task))


def test_a_run_may_have_nothing_to_learn_from_a_batch():
    usual, poor = alike()
    poor = replace(poor, train=poor.train[:1])
    method = METHODS["random-parts"]
    rich, found = train_stacks([method] * 2, [usual, poor])
    assert_alike(rich, method.solve(usual))
    assert torch.tensor(found.curve.losses).isfinite().all()
    assert found.scores.isfinite().all()
    assert found.curve.losses[-1] < found.curve.losses[0]
