"""The method views on several splits and rounds, and in `NodeClassifier`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unalike import Graph, NodeClassifier
from unalike.data.metrics import ACCURACY
from unalike.data.split import Split
from unalike.data.task import Task
from unalike.errors import UserError
from unalike.methods.views import Views, ViewsTrees


def friendly_graph() -> Graph:
    """Neighbours have mostly the same class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 160)
    source = rng.integers(0, 160, 3000)
    target = rng.integers(0, 160, 3000)
    kept = (labels[source] == labels[target]) | (rng.random(3000) < 0.2)
    ends = torch.from_numpy(np.stack([source[kept], target[kept]]))
    return Graph.from_edges(
        *ends,
        num_nodes=160,
        labels=torch.from_numpy(labels),
        num_classes=2,
        directed=False,
    )


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_every_round_learns_labels_of_test_nodes_on_all_splits(rounds: int) -> None:
    graph = friendly_graph()
    order = torch.randperm(160, generator=torch.Generator().manual_seed(0))
    splits = [Split(ids[:80], ids[80:120], ids[120:]) for ids in (order, order.flip(0))]
    tasks = [Task.from_split(graph, split, ACCURACY) for split in splits]
    method = ViewsTrees(views=("labels", "bases"), folds=4, rounds=rounds)
    for split, solution in zip(splits, method.solve_all(tasks), strict=True):
        answers = solution.scores.argmax(1)[split.test]
        assert (answers == graph.labels[split.test]).float().mean() > 0.8


def test_more_rounds_than_folds_allow_are_refused() -> None:
    with pytest.raises(UserError, match="needs more folds"):
        Views(rounds=3, folds=3)


def test_node_classifier_scores_the_nodes_that_it_was_fitted_on() -> None:
    graph = friendly_graph()
    labels = graph.labels.numpy().copy()
    labels[::4] = -1
    method = ViewsTrees(views=("labels",), rounds=1)
    classifier = NodeClassifier(method).fit(graph, labels)
    hidden = np.arange(160) % 4 == 0
    correct = classifier.predict()[hidden] == graph.labels.numpy()[hidden]
    assert correct.mean() > 0.8
