"""Texas, Wisconsin, Cornell, Actor, Squirrel and Chameleon in geom-gcn format."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.graph import Features, Graph
from unalike.datasets.base import Counts, Dataset, Published
from unalike.datasets.readers import (
    label_tensor,
    multi_hot,
    read_errors,
    read_matrix,
    read_npz,
    sparse_or_dense_features,
)
from unalike.datasets.remote import RemoteFile, github_url, platonov_file
from unalike.datasets.splits import splits_from_masks
from unalike.datasets.transforms import Preparation

# A stored graph has the distinct directed edges of the file, its few self-loops
# included, and 0/1 features. `Dataset.prepared()` gives the input of the paper's
# methods: a self-loop on every node, rows of features that sum to 1, and undirected
# edges.

REPOSITORY = "graphdml-uiuc-jlu/geom-gcn"

Nodes = tuple[Features, Int[Tensor, " nodes"]]


def raw_file(name: str, file: str) -> RemoteFile:
    """One of the raw files of geom-gcn."""
    return RemoteFile(
        f"geom-gcn/{name}/{file}", (github_url(REPOSITORY, f"new_data/{name}/{file}"),)
    )


def split_files(name: str) -> tuple[RemoteFile, ...]:
    """The ten split files of a graph."""
    files = [f"{name}_split_0.6_0.2_{run}.npz" for run in range(10)]
    return tuple(
        RemoteFile(
            f"geom-gcn/{name}/{file}", (github_url(REPOSITORY, f"splits/{file}"),)
        )
        for file in files
    )


def read(root: Path, edges: RemoteFile, nodes: Callable[[Path], Nodes]) -> Graph:
    """Read the edges of one file and the nodes of another."""
    path = edges.require(root)
    features, labels = nodes(root)
    pairs = torch.from_numpy(read_matrix(path, delimiter="\t", skip=1))
    with read_errors(path):
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


def read_node_lines(path: Path) -> dict[int, tuple[list[int], int]]:
    """Read the numbers and the label of each node."""
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines()[1:])
    return {
        int(node): ([int(number) for number in numbers.split(",")], int(label))
        for node, numbers, label in rows
    }


def nodes_from_vectors(root: Path, file: RemoteFile) -> Nodes:
    """Read nodes whose features are 0/1 vectors."""
    path = file.require(root)
    with read_errors(path):
        nodes = read_node_lines(path)
        rows = [nodes[node][0] for node in range(len(nodes))]
        labels = label_tensor([nodes[node][1] for node in range(len(nodes))])
        return sparse_or_dense_features(rows), labels


def nodes_from_lists(root: Path, file: RemoteFile, num_features: int) -> Nodes:
    """Read nodes whose features are lists of the columns that are 1."""
    path = file.require(root)
    with read_errors(path):
        nodes = read_node_lines(path)
        active = {str(node): columns for node, (columns, _) in nodes.items()}
        labels = label_tensor([nodes[node][1] for node in range(len(nodes))])
        features = multi_hot(active, num_nodes=len(nodes), num_features=num_features)
        return features, labels


def nodes_from_npz(root: Path, file: RemoteFile) -> Nodes:
    """Read nodes from the .npz file of Platonov et al., which has the same order."""
    features, labels = read_npz(file.require(root), "node_features", "node_labels")
    return sparse_or_dense_features(features), label_tensor(labels)


def geom_gcn_dataset(
    name: str,
    about: str,
    label_meaning: str,
    *,
    counts: Counts,
    published: Published,
    nodes: Callable[[Path], Nodes] | None = None,
    node_file: RemoteFile | None = None,
    folder: str = "",
) -> Dataset:
    """A dataset in geom-gcn format; `folder` is its name there if that differs."""
    folder = folder or name
    edges = raw_file(folder, "out1_graph_edges.txt")
    node_file = node_file or raw_file(folder, "out1_node_feature_label.txt")
    nodes = nodes or partial(nodes_from_vectors, file=node_file)
    splits = split_files(folder)
    return Dataset(
        name=name,
        about=about,
        label_meaning=label_meaning,
        files=(edges, node_file, *splits),
        read=partial(read, edges=edges, nodes=nodes),
        split=splits_from_masks(splits),
        directed=True,
        licence="none known",
        citation="Pei et al. 2020, https://arxiv.org/abs/2002.05287",
        counts=counts,
        published=published,
        preparation=Preparation(self_loops=True, row_normalised=True),
    )


WEB = "Links between the web pages of a computer science department."
WIKIPEDIA = "Links between Wikipedia pages on a topic."
PAGE_KIND = "kind of page: student, project, course, staff, faculty"
TRAFFIC = "monthly traffic, in five quantiles"

FILM = raw_file("film", "out1_node_feature_label.txt")
CHAMELEON_NODES = platonov_file("chameleon_directed")
SQUIRREL_NODES = platonov_file("squirrel_directed")

TEXAS = geom_gcn_dataset(
    "texas",
    WEB,
    PAGE_KIND,
    counts=Counts(183, 325, 1_703, 5),
    published=Published(183, 309, 1_703, 5, edge_homophily=0.11, class_homophily=0.001),
)
WISCONSIN = geom_gcn_dataset(
    "wisconsin",
    WEB,
    PAGE_KIND,
    counts=Counts(251, 515, 1_703, 5),
    published=Published(251, 499, 1_703, 5, edge_homophily=0.21, class_homophily=0.094),
)
CORNELL = geom_gcn_dataset(
    "cornell",
    f"{WEB} Faulty as in the paper: Cornell's links, Texas's features and labels.",
    PAGE_KIND,
    counts=Counts(183, 298, 1_703, 5),
    published=Published(183, 295, 1_703, 5, edge_homophily=0.30, class_homophily=0.047),
)
ACTOR = geom_gcn_dataset(
    "actor",
    "Actors that are named together on a Wikipedia page (also called film).",
    "topic of the actor's page",
    counts=Counts(7_600, 30_019, 932, 5),
    published=Published(
        7_600, 29_926, 931, 5, edge_homophily=0.22, class_homophily=0.011
    ),
    node_file=FILM,
    nodes=partial(nodes_from_lists, file=FILM, num_features=932),
    folder="film",
)
SQUIRREL = geom_gcn_dataset(
    "squirrel",
    WIKIPEDIA,
    TRAFFIC,
    counts=Counts(5_201, 217_073, 2_089, 5),
    published=Published(
        5_201, 216_933, 2_089, 5, edge_homophily=0.22, class_homophily=0.025
    ),
    node_file=SQUIRREL_NODES,
    nodes=partial(nodes_from_npz, file=SQUIRREL_NODES),
)
CHAMELEON = geom_gcn_dataset(
    "chameleon",
    WIKIPEDIA,
    TRAFFIC,
    counts=Counts(2_277, 36_101, 2_325, 5),
    published=Published(
        2_277, 36_101, 2_325, 5, edge_homophily=0.23, class_homophily=0.062
    ),
    node_file=CHAMELEON_NODES,
    nodes=partial(nodes_from_npz, file=CHAMELEON_NODES),
)

GEOM_GCN = (TEXAS, WISCONSIN, CORNELL, ACTOR, SQUIRREL, CHAMELEON)
