"""Batched logistic regressions equal scikit-learn's, on all splits of a graph."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from unalike import Graph
from unalike.data.metrics import ACCURACY
from unalike.data.split import Split
from unalike.data.task import Task
from unalike.views.cross_fit import CrossFit, cross_fit
from unalike.views.folds import Folds
from unalike.views.logistic import (
    LogisticBase,
    input_rows,
    one_hot_rows,
    regress,
)


def graph_of(nodes: int) -> Graph:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, nodes)
    features = rng.normal(size=(nodes, 6)) + labels[:, None]
    ends = torch.from_numpy(rng.integers(0, nodes, (2, 5 * nodes)))
    return Graph.from_edges(
        *ends,
        num_nodes=nodes,
        features=torch.from_numpy(features).float(),
        labels=torch.from_numpy(labels),
        num_classes=3,
        directed=True,
    )


def test_each_fit_of_a_batch_equals_scikit_learn() -> None:
    graph = graph_of(150)
    rows = input_rows(graph)["all"]
    one_hot = one_hot_rows(graph.labels, 3)
    sets = [torch.arange(90), torch.arange(40, 150)]
    ridge = 1.0
    weights, bias = regress(rows, one_hot, sets, ridge)
    for number, train in enumerate(sets):
        dense = rows.to_dense().numpy()
        oracle = LogisticRegression(C=1 / ridge, tol=1e-8, max_iter=2000)
        oracle.fit(dense[train], graph.labels[train])
        logits = rows @ weights[..., number].contiguous() + bias[:, number]
        np.testing.assert_allclose(
            logits.softmax(1).numpy(), oracle.predict_proba(dense), atol=0.01
        )


def test_a_base_is_fitted_on_splits_that_hide_each_others_labels() -> None:
    graph = graph_of(120)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    tasks = [
        Task.from_split(graph, Split(ids[:50], ids[50:60], ids[60:]), ACCURACY)
        for ids in (order, order.flip(0))
    ]
    results = [CrossFit(Folds.draw(120, 3, seed)) for seed in range(2)]
    cross_fit([LogisticBase(graph)], tasks, results, 1)
    alone = [CrossFit(Folds.draw(120, 3, 0))]
    cross_fit([LogisticBase(graph)], tasks[:1], alone, 1)
    for name, models in alone[0].by_view.items():
        for hidden, scores in models.items():
            together = results[0].by_view[name][hidden]
            torch.testing.assert_close(together, scores, atol=0.02, rtol=0.02)
