"""The method views on several splits and rounds, and in `NodeClassifier`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from unalike import Graph, NodeClassifier
from unalike.data.metrics import ACCURACY, ROC_AUC
from unalike.data.split import Split
from unalike.data.task import Task
from unalike.errors import UserError
from unalike.methods.views import Views, ViewsTrees
from unalike.progress import listening
from unalike.views import heads


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


def test_a_head_that_diverges_is_not_chosen() -> None:
    graph = friendly_graph()
    features = torch.randn(160, 3, generator=torch.Generator().manual_seed(0))
    features[7, 1] = torch.nan
    graph = replace(graph, features=features)
    order = torch.randperm(160, generator=torch.Generator().manual_seed(0))
    task = Task.from_split(
        graph, Split(order[:80], order[80:120], order[120:]), ROC_AUC
    )
    solution = Views(views=("features", "labels"), rounds=1).solve(task)
    assert solution.scores.isfinite().all()


def test_trees_stop_by_rows_of_one_class_at_their_last_tree(monkeypatch) -> None:
    monkeypatch.setattr(heads, "has_lightgbm", lambda: False)
    graph = friendly_graph()
    train, rest = torch.arange(160).split(80)
    one_class = rest[graph.labels[rest] == 0]
    task = Task.from_split(graph, Split(train, one_class, rest[:0]), ROC_AUC)
    scores = ViewsTrees(views=("labels",), rounds=1).solve(task).scores
    assert (scores.argmax(1)[rest] == graph.labels[rest]).float().mean() > 0.8


def test_one_notice_says_that_lightgbm_is_missing(monkeypatch) -> None:
    monkeypatch.setattr(heads, "has_lightgbm", lambda: False)
    heads.notify_without_lightgbm.cache_clear()
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 2, generator=generator), torch.arange(40) % 2
    rows = heads.Examples(x, y, x[:0], y[:0], [2], 2, ACCURACY, 0)
    notices: list[str] = []
    with listening(notices.append):
        for _ in range(2):
            heads.fit_trees(rows, heads.TreeSettings.quick())
    assert len(notices) == 1 and "pip install 'unalike[trees]'" in notices[0]


@pytest.mark.slow
def test_a_deep_base_reads_labels_of_nodes_many_steps_away() -> None:
    """The class of all nodes of a path is a feature of its first node."""
    rng = np.random.default_rng(0)
    paths, length = 40, 8
    nodes = np.arange(paths * length).reshape(paths, length)
    labels = rng.integers(0, 2, paths)
    features = torch.zeros(paths * length, 2)
    features[nodes[:, 0], labels] = 1.0
    graph = Graph.from_edges(
        torch.from_numpy(nodes[:, :-1].ravel()),
        torch.from_numpy(nodes[:, 1:].ravel()),
        num_nodes=paths * length,
        labels=torch.from_numpy(labels.repeat(length)),
        features=features,
        num_classes=2,
        directed=False,
    ).to_undirected()
    order = torch.randperm(
        len(graph.labels), generator=torch.Generator().manual_seed(0)
    )
    split = Split(order[:200], order[200:240], order[240:])
    task = Task.from_split(graph, split, ACCURACY)
    scores = {}
    for base in ("gcn", "deep-gcn"):
        method = ViewsTrees(views=("bases",), bases=(base,), folds=3, rounds=1)
        (solution,) = method.solve_all([task])
        answers = solution.scores.argmax(1)[split.test]
        scores[base] = float((answers == graph.labels[split.test]).float().mean())
    assert scores["deep-gcn"] > scores["gcn"] + 0.1
