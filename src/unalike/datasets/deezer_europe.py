"""The Deezer-Europe dataset."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import scipy.sparse

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph, as_features
from unalike.datasets.base import Counts, Dataset, Published
from unalike.datasets.readers import (
    label_tensor,
    multi_hot,
    read_edge_list,
    read_errors,
    read_json,
    read_mat,
    read_table,
)
from unalike.datasets.remote import RemoteFile, linkx_url
from unalike.datasets.splits import paper_splits

ARCHIVE = RemoteFile(
    "deezer-europe/deezer_europe.zip",
    mirrors=("https://snap.stanford.edu/data/deezer_europe.zip",),
)
MATLAB = RemoteFile(
    "deezer-europe/deezer-europe.mat",
    mirrors=(linkx_url("deezer-europe.mat"),),
    other_paths=("deezer-europe.mat",),
)

NUM_FEATURES = 31_241


def read(root: Path) -> Graph:
    """Read the graph from SNAP's archive, or from the LINKX authors' copy of it."""
    if (path := MATLAB.find(root)) and not ARCHIVE.find(root):
        return from_matlab(path)
    return from_archive(ARCHIVE.require(root))


def from_archive(path: Path) -> Graph:
    """Read tables of edges and labels, and a list of artists per user."""
    with read_errors(path), zipfile.ZipFile(path) as archive:
        parts = {
            name: io.BytesIO(archive.read(f"deezer_europe/deezer_europe_{name}"))
            for name in ("edges.csv", "target.csv", "features.json")
        }
    source, destination = read_edge_list(parts["edges.csv"], name=f"{path}: edges.csv")
    target = read_table(parts["target.csv"], name=f"{path}: target.csv").sort_by("id")
    active_features = read_json(parts["features.json"], name=f"{path}: features.json")
    with read_errors(path):
        features = multi_hot(
            active_features, num_nodes=target.num_rows, num_features=NUM_FEATURES
        )
        labels = label_tensor(target["target"])
    return Graph.from_edges(
        source,
        destination,
        num_nodes=target.num_rows,
        features=features,
        labels=labels,
        num_classes=2,
        directed=True,
    )


def from_matlab(path: Path) -> Graph:
    """Read sparse matrices of friendships and features; each pair is stored once."""
    adjacency, features, labels = read_mat(path, "A", "features", "label")
    with read_errors(path):
        upper = scipy.sparse.triu(adjacency + adjacency.T)
        return Graph.build(
            Adjacency.from_scipy(upper, weighted=False),
            features=as_features(features),
            labels=label_tensor(labels),
            num_classes=2,
            directed=True,
        )


DEEZER_EUROPE = Dataset(
    name="deezer-europe",
    about="Mutual follows among European users of the music service Deezer.",
    label_meaning="gender",
    files=(ARCHIVE,),
    alternative_files=(MATLAB,),
    read=read,
    split=paper_splits("deezer-europe"),
    directed=True,
    licence="none known",
    citation="Rozemberczki and Sarkar 2020, https://arxiv.org/abs/2005.07959",
    counts=Counts(28_281, 92_752, NUM_FEATURES, 2),
    published=Published(edge_homophily=0.525, class_homophily=0.030),
)
