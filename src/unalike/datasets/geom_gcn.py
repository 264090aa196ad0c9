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
NodeReader = Callable[[Path], Nodes]


def raw_file(name: str, file: str) -> RemoteFile:
    """One of the raw files of geom-gcn."""
    return _remote_file(f"{name}/{file}", f"new_data/{name}/{file}")


def split_files(name: str) -> tuple[RemoteFile, ...]:
    """The ten split files of a graph."""
    files = (f"{name}_split_0.6_0.2_{run}.npz" for run in range(10))
    return tuple(_remote_file(f"{name}/{file}", f"splits/{file}") for file in files)


def _remote_file(path: str, url_path: str) -> RemoteFile:
    return RemoteFile(f"geom-gcn/{path}", (github_url(REPOSITORY, url_path),))


def read(
    root: Path, edges: RemoteFile, nodes: RemoteFile, read_nodes: NodeReader
) -> Graph:
    """Read the edges of one file and the nodes of another."""
    path = edges.require(root)
    features, labels = read_nodes(nodes.require(root))
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


def read_text_nodes(path: Path, num_features: int | None = None) -> Nodes:
    """Read nodes whose features are 0/1 vectors, or lists of the columns that are 1."""
    with read_errors(path):
        lines = path.read_text("utf-8").splitlines()[1:]
        nodes = {int(node): rest for node, *rest in (one.split("\t") for one in lines)}
        rows, labels = zip(*(nodes[node] for node in range(len(nodes))), strict=True)
        numbers = [list(map(int, row.split(","))) for row in rows]
        classes = label_tensor([int(label) for label in labels])
        if num_features is None:
            return sparse_or_dense_features(numbers), classes
        return multi_hot(
            dict(enumerate(numbers)), num_nodes=len(nodes), num_features=num_features
        ), classes


def read_npz_nodes(path: Path) -> Nodes:
    """Read nodes from the .npz file of Platonov et al., which has the same order."""
    features, labels = read_npz(path, "node_features", "node_labels")
    return sparse_or_dense_features(features), label_tensor(labels)


def geom_gcn_dataset(
    name: str,
    about: str,
    label_meaning: str,
    *,
    counts: Counts,
    published: Published,
    nodes: RemoteFile | None = None,
    read_nodes: NodeReader = read_text_nodes,
    folder: str = "",
) -> Dataset:
    """A dataset in geom-gcn format; `folder` is its name there if that differs."""
    folder = folder or name
    edges = raw_file(folder, "out1_graph_edges.txt")
    nodes = nodes or raw_file(folder, "out1_node_feature_label.txt")
    splits = split_files(folder)
    return Dataset(
        name=name,
        about=about,
        label_meaning=label_meaning,
        files=(edges, nodes, *splits),
        read=partial(read, edges=edges, nodes=nodes, read_nodes=read_nodes),
        split=splits_from_masks(splits),
        directed=True,
        citation="Pei et al. 2020, https://arxiv.org/abs/2002.05287",
        counts=counts,
        published=published,
        preparation=Preparation(self_loops=True, row_normalised=True),
    )


WEB = "Links between the web pages of a computer science department."
WIKIPEDIA = "Links between Wikipedia pages on a topic."
PAGE_KIND = "kind of page: student, project, course, staff, faculty"
TRAFFIC = "monthly traffic, in five quantiles"

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
    read_nodes=partial(read_text_nodes, num_features=932),
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
    nodes=platonov_file("squirrel_directed"),
    read_nodes=read_npz_nodes,
)
CHAMELEON = geom_gcn_dataset(
    "chameleon",
    WIKIPEDIA,
    TRAFFIC,
    counts=Counts(2_277, 36_101, 2_325, 5),
    published=Published(
        2_277, 36_101, 2_325, 5, edge_homophily=0.23, class_homophily=0.062
    ),
    nodes=platonov_file("chameleon_directed"),
    read_nodes=read_npz_nodes,
)

GEOM_GCN = (TEXAS, WISCONSIN, CORNELL, ACTOR, SQUIRREL, CHAMELEON)
