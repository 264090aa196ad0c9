"""Tasks: what a method may see."""

import torch
from graphs import suiting, tasks_of

from unalike import Task, random_splits
from unalike.data.metrics import ACCURACY


def test_only_train_and_valid_labels_are_shown():
    graph = suiting(nodes=60)
    (split,) = random_splits(graph.labels, count=1)
    task = Task.from_split(graph, split, ACCURACY, seed=5)
    shown = torch.cat([split.train, split.valid])
    assert torch.equal(task.graph.labels[shown], graph.labels[shown])
    assert (task.graph.labels[split.test] == -1).all()
    assert int((task.graph.labels >= 0).sum()) == len(shown)
    assert (task.seed, task.metric) == (5, ACCURACY)


def test_the_graph_itself_keeps_its_labels():
    graph = suiting(nodes=60)
    before = graph.labels.clone()
    (task,) = tasks_of(graph)
    assert torch.equal(graph.labels, before)
    assert task.graph.num_classes == graph.num_classes
    assert task.graph.adjacency is graph.adjacency
