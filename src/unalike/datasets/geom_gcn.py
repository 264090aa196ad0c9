"""geom-gcn: a format of raw files, and how they become a graph.

A graph holds the distinct directed edges of the file, its few self-loops included, and
0/1 features. What the paper's program fed to its methods is `Dataset.prepared()`: a
self-loop on every node, rows of features that sum to 1, and every edge both ways.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from unalike.datasets.columns import as_labels, as_thin, bags
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.preparation import Preparation
from unalike.datasets.reading import blaming, read_npz, read_numbers
from unalike.datasets.remote import Remote, github
from unalike.datasets.splits import masked
from unalike.features import Features
from unalike.graph import Graph

REPOSITORY = "graphdml-uiuc-jlu/geom-gcn"

Nodes = tuple[Features, Int[Tensor, " nodes"]]


def new_data(name: str, file: str) -> Remote:
    """One of the raw files."""
    return Remote(
        f"geom-gcn/{name}/{file}", (github(REPOSITORY, f"new_data/{name}/{file}"),)
    )


def split_files(name: str) -> tuple[Remote, ...]:
    """The ten files of splits."""
    files = [f"{name}_split_0.6_0.2_{run}.npz" for run in range(10)]
    return tuple(
        Remote(f"geom-gcn/{name}/{file}", (github(REPOSITORY, f"splits/{file}"),))
        for file in files
    )


def read(root: Path, edges: Remote, nodes: Callable[[Path], Nodes]) -> Graph:
    """The edges of one file with the nodes of another."""
    path = edges.at(root)
    features, labels = nodes(root)
    pairs = torch.from_numpy(read_numbers(path, delimiter="\t", skip=1))
    with blaming(path):
        source, target = pairs.T
    return Graph.from_edges(
        source,
        target,
        num_nodes=len(labels),
        features=features,
        labels=labels,
        num_classes=5,
        directed=True,
    )


def lines(path: Path) -> dict[int, tuple[list[int], int]]:
    """The numbers and the label of each node."""
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines()[1:])
    return {
        int(node): ([int(number) for number in numbers.split(",")], int(label))
        for node, numbers, label in rows
    }


def vectors(root: Path, file: Remote) -> Nodes:
    """Nodes whose features are told as 0/1 vectors."""
    path = file.at(root)
    with blaming(path):
        told = lines(path)
        rows = [told[node][0] for node in range(len(told))]
        labels = as_labels([told[node][1] for node in range(len(told))])
        return as_thin(rows), labels


def lists(root: Path, file: Remote, width: int) -> Nodes:
    """Nodes whose features are told as the list of those that are 1."""
    path = file.at(root)
    with blaming(path):
        told = lines(path)
        contents = {str(node): active for node, (active, _) in told.items()}
        labels = as_labels([told[node][1] for node in range(len(told))])
        return bags(contents, num_nodes=len(told), width=width), labels


def arrays(root: Path, file: Remote) -> Nodes:
    """Nodes from Platonov's repackaging, which keeps their order."""
    features, labels = read_npz(file.at(root), "node_features", "node_labels")
    return as_thin(features), as_labels(labels)


def geom_gcn(
    name: str,
    about: str,
    label_meaning: str,
    *,
    counts: Counts,
    published: Published,
    nodes: Callable[[Path], Nodes] | None = None,
    node_file: Remote | None = None,
    folder: str = "",
) -> Dataset:
    """One of the six; `folder` is its name there where that differs."""
    folder = folder or name
    edges = new_data(folder, "out1_graph_edges.txt")
    node_file = node_file or new_data(folder, "out1_node_feature_label.txt")
    nodes = nodes or partial(vectors, file=node_file)
    splits = split_files(folder)
    return Dataset(
        name=name,
        about=about,
        label_meaning=label_meaning,
        files=(edges, node_file, *splits),
        read=partial(read, edges=edges, nodes=nodes),
        split=masked(splits),
        directed=True,
        licence="none known",
        citation="Pei et al. 2020, https://arxiv.org/abs/2002.05287",
        counts=counts,
        published=published,
        preparation=Preparation(self_loops=True, row_normalised=True),
    )
