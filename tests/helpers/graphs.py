"""Graphs drawn by hand, small enough to know every answer, and random ones."""

from dataclasses import replace

import numpy as np
import torch

from unalike import Adjacency, Graph, Task, random_splits
from unalike.data.metrics import ACCURACY


def drawn(pairs, num_nodes, *, labels=None, directed=False, features=2):
    """A graph of listed edges; its features count upwards."""
    ends = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
    return Graph.from_edges(
        ends[:, 0],
        ends[:, 1],
        num_nodes=num_nodes,
        features=torch.arange(num_nodes * features).view(num_nodes, features).float(),
        labels=None if labels is None else torch.tensor(labels),
        directed=directed,
    )


HAND_DRAWN = {
    "path": drawn([(0, 1), (1, 2), (2, 3)], 4, labels=[0, 1, 0, 1]),
    "star": drawn([(0, 1), (0, 2), (0, 3), (0, 4)], 5, labels=[0, 1, 1, 1, 1]),
    "first node alone": drawn([(1, 2), (2, 3)], 4, labels=[2, 0, 1, 0]),
    "last node alone": drawn([(0, 1), (1, 2)], 4, labels=[0, 1, 0, 2]),
    "directed": drawn(
        [(0, 1), (1, 2), (2, 0), (0, 3)], 4, labels=[0, 0, 1, 1], directed=True
    ),
    "unlabelled": drawn([(0, 1), (1, 2)], 3, labels=[-1, 0, -1]),
    "no labels": drawn([(0, 1), (1, 2)], 3),
    "loops": drawn([(0, 0), (0, 1), (2, 2)], 3, labels=[0, 1, 1]),
    "one node": drawn([], 1, labels=[0]),
    "one node and its loop": drawn([(0, 0)], 1, labels=[0]),
    "no edges": drawn([], 3, labels=[0, 1, 0]),
    "no features": drawn([(0, 1), (1, 2)], 3, labels=[0, 1, 0], features=0),
}

EDGES = {
    "path": 3,
    "star": 4,
    "first node alone": 2,
    "last node alone": 2,
    "directed": 4,
    "unlabelled": 2,
    "no labels": 2,
    "loops": 3,
    "one node": 0,
    "one node and its loop": 1,
    "no edges": 0,
    "no features": 2,
}


def suiting(*, nodes=300, classes=2, features="dense", directed=False, seed=0):
    """A graph on which edges and features both tell the class; node 0 is alone.

    Its edges run between unlike labels, every tenth node has no label.
    """
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (nodes,), generator=draw)
    source, target = torch.randint(1, nodes, (2, 12 * nodes), generator=draw)
    unlike = labels[target] == (labels[source] + 1) % classes
    known = 2.0 * torch.eye(classes)[labels]
    noise = torch.randn(nodes, classes, generator=draw)
    known_labels = labels.clone()
    known_labels[::10] = -1
    return Graph.from_edges(
        source[unlike],
        target[unlike],
        num_nodes=nodes,
        features=FEATURES[features](known + noise),
        labels=known_labels,
        directed=directed,
    )


def sparse(dense):
    """The positive numbers of a matrix, as sparse rows."""
    source, target = (dense > 0).nonzero().T
    return Adjacency.from_edges(
        source, target, shape=tuple(dense.shape), values=dense[source, target]
    )


FEATURES = {
    "dense": lambda dense: dense,
    "half": lambda dense: dense.half(),
    "sparse": sparse,
    "one-hot": lambda dense: Adjacency.from_edges(
        torch.arange(len(dense)), dense.argmax(1), shape=tuple(dense.shape)
    ),
    "none": lambda dense: dense[:, :0],
}
"""Kinds of features a graph may have."""


def tasks_of(graph, count=1, metric=ACCURACY):
    """A task for each of some random splits, with a seed of its own."""
    splits = random_splits(graph.labels, count=count)
    return [Task.from_split(graph, split, metric, i) for i, split in enumerate(splits)]


LATER_METHODS = {
    "sage",
    "dir-gnn",
    "fsgnn",
    "a2dug",
    "poly",
    "acm-gcn",
    "glognn",
    "polynormer",
}
"""Methods that are newer than the stored model files and the candidates of advise."""


def graph_of_kind(kind):
    """A small graph with sparse features, with weights, or with numbers as labels."""
    sparse = "sparse" if kind == "sparse" else "dense"
    graph = suiting(nodes=20, classes=3, features=sparse)
    if kind == "numbers":
        return replace(
            graph, label_values=torch.tensor([-1.5, 0.25, 7e5]), num_classes=1
        )
    if kind == "weights":
        rows = graph.adjacency.to_scipy().astype(np.float32)
        rows.data = 1 / (
            1 + rows.indices + np.repeat(np.arange(20), np.diff(rows.indptr))
        )
        return replace(graph, adjacency=Adjacency.from_scipy(rows))
    return graph
