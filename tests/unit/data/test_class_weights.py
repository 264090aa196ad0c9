"""Class weights: what they are, and that losses follow them."""

from dataclasses import replace

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import (
    NodeClassifier,
    RunOptions,
    UserError,
    random_splits,
    run,
    save_graph,
)
from unalike.data.task import balanced_class_weights
from unalike.experiments.config import DatasetOptions
from unalike.experiments.run import Experiment
from unalike.methods import METHODS
from unalike.methods.base import train_stacks
from unalike.methods.link import LINK
from unalike.samplers.rows import RowSampler
from unalike.training.state import Training

ONE = Training(epochs=1)


def test_balanced_classes_count_alike():
    labels = torch.tensor([0, 0, 0, 2, -1])
    weights = balanced_class_weights(labels, 4)
    assert torch.allclose(weights, torch.tensor([4 / 6, 0.0, 2.0, 0.0]))
    assert float(weights[labels[:4]].mean()) == pytest.approx(1)
    assert balanced_class_weights(torch.tensor([-1]), 2).tolist() == [0, 0]


@pytest.mark.parametrize(
    "batching", [None, RowSampler(size=10_000)], ids=["full", "rows"]
)
def test_the_loss_is_weighed_by_class(batching):
    (task,) = tasks_of(suiting())
    classes = task.graph.num_classes
    method = LINK(training=ONE, **({"batching": batching} if batching else {}))

    def loss(weights):
        return method.solve(replace(task, class_weights=weights)).curve.losses[0]

    single = [loss(torch.eye(classes)[label]) for label in range(classes)]
    sizes = task.graph.labels[task.train].bincount(minlength=classes)
    weights = torch.rand(classes) + 0.1
    share = weights * sizes / (weights * sizes).sum()
    expected = sum(float(s) * one for s, one in zip(share, single, strict=True))
    assert loss(weights) == pytest.approx(expected, rel=1e-4)
    assert loss(None) == pytest.approx(loss(torch.ones(classes)))


def test_runs_of_a_stack_may_weigh_differently():
    first, second = tasks_of(suiting(), 2)
    tasks = [replace(first, class_weights=torch.tensor([1.0, 3.0])), second]
    method = LINK(training=ONE)
    together = train_stacks([method] * 2, tasks)
    alone = [method.solve(task) for task in tasks]
    for one, other in zip(together, alone, strict=True):
        assert one.curve.losses == pytest.approx(other.curve.losses)


def test_a_view_weighs_and_a_result_repeats_it(tmp_path):
    graph = suiting(nodes=60)
    splits = random_splits(graph.labels, count=1)
    source = save_graph(tmp_path / "graph", graph, splits=splits)
    seen = DatasetOptions(class_weights="balanced").apply(source)
    (usual,) = run(source, LINK(training=ONE), options=RunOptions())
    (other,) = run(seen, LINK(training=ONE), options=RunOptions())
    assert usual.losses != other.losses
    assert other.view == {"class_weights": "balanced"}
    assert "--class-weights balanced link" in other.command
    with pytest.raises(UserError, match="No class weights 'balance'"):
        DatasetOptions(class_weights="balance")


@pytest.mark.parametrize("name", METHODS)
def test_class_weights_are_refused_where_they_would_be_ignored(name, tmp_path):
    graph, method = suiting(nodes=60), METHODS[name]()
    source = save_graph(
        tmp_path / "g", graph, splits=random_splits(graph.labels, count=1)
    )
    seen = DatasetOptions(class_weights="balanced").apply(source)
    experiment = Experiment.load(seen, [0], 0)
    ignored = name in ("label-propagation", "views", "views-trees")
    if not ignored:
        assert experiment.tasks(method)[0].class_weights is not None
        return
    with pytest.raises(UserError, match=rf"{name} has no class weights; .*linkx"):
        experiment.tasks(method)
    with pytest.raises(UserError, match=f"{name} has no class weights"):
        NodeClassifier(name, class_weight="balanced").fit(graph, graph.labels.numpy())
