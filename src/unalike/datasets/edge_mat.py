"""The authors' .mat files: an edge list, features and labels of one graph."""

from pathlib import Path
from typing import Any

import torch

from unalike.adjacency import Adjacency
from unalike.datasets.columns import as_dense, as_labels
from unalike.datasets.reading import blaming, read_mat
from unalike.datasets.remote import Remote
from unalike.graph import Graph


def read_edge_mat(root: Path, file: Remote, target: str) -> tuple[Adjacency, Any, Any]:
    """The directed edges, the features and the column that the labels come from."""
    path = file.at(root)
    edges, features, told = read_mat(path, "edge_index", "node_feat", target)
    with blaming(path):
        source, other = torch.from_numpy(edges.astype("int64", copy=False))
        nodes = features.shape[0]
        return Adjacency.from_edges(source, other, shape=(nodes, nodes)), features, told


def read_two_classes(root: Path, file: Remote) -> Graph:
    """A graph of dense features and two classes, edges in the file's direction."""
    edges, features, labels = read_edge_mat(root, file, "label")
    return Graph.build(
        edges,
        features=as_dense(features),
        labels=as_labels(labels),
        num_classes=2,
        directed=True,
    )
