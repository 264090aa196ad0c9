"""Pokec, Genius, SNAP-patents, Wiki, OEIS, Deezer-Europe and YelpChi."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph, as_features, quantile_labels
from unalike.data.metrics import ROC_AUC
from unalike.datasets.base import Counts, Dataset, Published
from unalike.datasets.matlab import read_mat
from unalike.datasets.readers import (
    dense_features,
    label_tensor,
    multi_hot,
    read_edge_list,
    read_errors,
    read_json,
    read_table,
    read_tensor,
    sparse_or_dense_features,
)
from unalike.datasets.remote import RemoteFile, google_drive_url, linkx_url
from unalike.datasets.splits import paper_splits, splits_from_npy
from unalike.datasets.transforms import Preparation
from unalike.errors import UserError


def read_mat_graph(
    root: Path,
    file: RemoteFile,
    label: str = "label",
    to_labels: Callable[[np.ndarray], Int[Tensor, " nodes"]] = label_tensor,
    num_classes: int = 2,
) -> Graph:
    """Read a directed graph from a LINKX .mat file; sparse features remain sparse."""
    path = file.require(root)
    edge_index, features, labels = read_mat(path, "edge_index", "node_feat", label)
    is_dense = isinstance(features, np.ndarray)
    with read_errors(path):
        source, target = torch.from_numpy(edge_index.astype("int64", copy=False))
        num_nodes = features.shape[0]
        return Graph.from_edges(
            source,
            target,
            num_nodes=num_nodes,
            features=dense_features(features) if is_dense else as_features(features),
            labels=to_labels(labels),
            num_classes=num_classes,
            directed=True,
        )


POKEC_FILE = RemoteFile(
    "pokec/pokec.mat",
    mirrors=(google_drive_url("1dNs5E7BrWJbgcHeQ_zuy5Ozp2tRCWG0y"),),
    other_paths=("pokec.mat",),
)


POKEC_COUNTS = Counts(1_632_803, 30_622_564, 65, 2)
POKEC = Dataset(
    name="pokec",
    about="Who follows whom in the Slovak social network Pokec.",
    label_meaning="gender (unknown for 163)",
    files=(POKEC_FILE,),
    read=partial(read_mat_graph, file=POKEC_FILE),
    split=paper_splits("pokec"),
    directed=True,
    licence="none",
    citation="Takac and Zabovsky 2012, https://snap.stanford.edu/data/soc-Pokec.html",
    counts=POKEC_COUNTS,
    published=POKEC_COUNTS.published(0.445, 0.000, 0.428, 0.611),
)

GENIUS_FILE = RemoteFile(
    "genius/genius.mat", (linkx_url("genius.mat"),), other_paths=("genius.mat",)
)
GENIUS_SPLITS = RemoteFile(
    "splits/genius-splits.npy", mirrors=(linkx_url("splits/genius-splits.npy"),)
)


GENIUS_COUNTS = Counts(421_961, 984_979, 12, 2)
GENIUS = Dataset(
    name="genius",
    about="Who follows whom on genius.com, a site that annotates song lyrics.",
    label_meaning="the account is marked as gone",
    files=(GENIUS_FILE, GENIUS_SPLITS),
    read=partial(read_mat_graph, file=GENIUS_FILE),
    split=splits_from_npy(GENIUS_SPLITS),
    metric=ROC_AUC,
    directed=True,
    licence="none",
    citation="Lim and Benson 2021, https://arxiv.org/abs/2006.08108",
    counts=GENIUS_COUNTS,
    published=GENIUS_COUNTS.published(0.618, 0.080, 0.508, 0.749),
)

SNAP_PATENTS_FILE = RemoteFile(
    "snap-patents/snap_patents.mat",
    mirrors=(google_drive_url("1ldh23TSY1PwXia6dU0MYcpyEgX-w3Hia"),),
    other_paths=("snap-patents/snap-patents.mat", "snap_patents.mat"),
)


SNAP_PATENTS_COUNTS = Counts(2_923_922, 13_975_788, 269, 5)
SNAP_PATENTS = Dataset(
    name="snap-patents",
    about="Citations between United States patents.",
    label_meaning="time granted, in five quantiles",
    files=(SNAP_PATENTS_FILE,),
    read=partial(
        read_mat_graph,
        file=SNAP_PATENTS_FILE,
        label="years",
        to_labels=partial(quantile_labels, num_classes=5),
        num_classes=5,
    ),
    split=paper_splits("snap-patents"),
    directed=True,
    citation="Leskovec, Kleinberg and Faloutsos 2005, "
    "https://snap.stanford.edu/data/cit-Patents.html",
    counts=SNAP_PATENTS_COUNTS,
    published=SNAP_PATENTS_COUNTS.published(0.073, 0.100, 0.221, 0.330),
    preparation=Preparation(symmetrised=False),
)


def _wiki_file(name: str, file_id: str) -> RemoteFile:
    return RemoteFile(
        f"wiki/{name}", mirrors=(google_drive_url(file_id),), other_paths=(name,)
    )


WIKI_FEATURES = _wiki_file("wiki_features2M.pt", "1ySNspxbK-snNoAZM7oxiWGvOnTRdSyEK")
WIKI_EDGES = _wiki_file("wiki_edges2M.pt", "14X7FlkjrlUgmnsYtPwdh-gGuFla4yb5u")
WIKI_VIEWS = _wiki_file("wiki_views2M.pt", "1p5DlVHrnFgYm3VsNIzahSsvCD424AyvP")


def read_wiki(root: Path) -> Graph:
    """Read the graph; its features are memory-mapped."""
    path = WIKI_EDGES.require(root)
    edges = read_tensor(path)
    labels = label_tensor(read_tensor(WIKI_VIEWS.require(root)))
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise UserError(
            f"{path} has an array of shape {tuple(edges.shape)} instead of (edges, 2)."
        )
    with read_errors(path):
        adjacency = Adjacency.from_edges(
            edges[:, 0], edges[:, 1], shape=(len(labels), len(labels))
        )
    return Graph.build(
        adjacency,
        features=read_tensor(WIKI_FEATURES.require(root)),
        labels=labels,
        num_classes=5,
        directed=True,
    )


WIKI_COUNTS = Counts(1_925_342, 303_434_860, 600, 5)
WIKI = Dataset(
    name="wiki",
    about="Links between articles of the English Wikipedia in spring 2021.",
    label_meaning="page views in 60 days, in five quantiles",
    files=(WIKI_FEATURES, WIKI_EDGES, WIKI_VIEWS),
    read=read_wiki,
    directed=True,
    licence="CC BY-SA 3.0 and GFDL",
    citation="Lim et al. 2021, https://arxiv.org/abs/2110.14446",
    counts=WIKI_COUNTS,
    published=WIKI_COUNTS.published(0.389, 0.107),
)


def read_oeis(root: Path) -> Graph:
    """Raise, because OEIS was never released."""
    raise UserError("oeis was never released; only the paper's statistics are known.")


OEIS = Dataset(
    name="oeis",
    about="References between integer sequences. Never released: statistics only.",
    label_meaning="time of posting, in five quantiles",
    read=read_oeis,
    directed=True,
    licence="not released",
    citation="Lim et al. 2021, https://arxiv.org/abs/2110.14446",
    published=Published(
        226_282, 761_687, None, 5, edge_homophily=0.50, class_homophily=0.532
    ),
)

DEEZER_ARCHIVE = RemoteFile(
    "deezer-europe/deezer_europe.zip",
    mirrors=("https://snap.stanford.edu/data/deezer_europe.zip",),
)
DEEZER_MATLAB = RemoteFile(
    "deezer-europe/deezer-europe.mat",
    mirrors=(linkx_url("deezer-europe.mat"),),
    other_paths=("deezer-europe.mat",),
)

DEEZER_NUM_FEATURES = 31_241


def read_deezer_europe(root: Path) -> Graph:
    """Read the graph from SNAP's archive, or from the LINKX authors' copy of it."""
    if (path := DEEZER_MATLAB.find(root)) and not DEEZER_ARCHIVE.find(root):
        return read_deezer_matlab(path)
    return read_deezer_archive(DEEZER_ARCHIVE.require(root))


def read_deezer_archive(path: Path) -> Graph:
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
            active_features, num_nodes=target.num_rows, num_features=DEEZER_NUM_FEATURES
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


def read_deezer_matlab(path: Path) -> Graph:
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
    files=(DEEZER_ARCHIVE,),
    alternative_files=(DEEZER_MATLAB,),
    read=read_deezer_europe,
    split=paper_splits("deezer-europe"),
    directed=True,
    citation="Rozemberczki and Sarkar 2020, https://arxiv.org/abs/2005.07959",
    counts=Counts(28_281, 92_752, DEEZER_NUM_FEATURES, 2),
    published=Published(edge_homophily=0.525, class_homophily=0.030),
)

YELP_CHI_FILE = RemoteFile(
    "yelp-chi/YelpChi.mat",
    mirrors=(
        google_drive_url("1fAXtTVQS4CfEk4asqrFw9EPmlUPGbGtJ"),
        "https://data.dgl.ai/dataset/FraudYelp.zip#YelpChi.mat",
    ),
    other_paths=("YelpChi.mat",),
)


def read_yelp_chi(root: Path) -> Graph:
    """Read the union of the three relations between reviews."""
    path = YELP_CHI_FILE.require(root)
    adjacency, features, labels = read_mat(path, "homo", "features", "label")
    with read_errors(path):
        return Graph.build(
            Adjacency.from_scipy(adjacency, weighted=False).to_undirected(),
            features=sparse_or_dense_features(features),
            labels=label_tensor(labels),
            num_classes=2,
        )


YELP_CHI = Dataset(
    name="yelp-chi",
    about="Reviews on Yelp that share a user, a product and rating, or a month.",
    label_meaning="the review is filtered as fraud",
    files=(YELP_CHI_FILE,),
    read=read_yelp_chi,
    split=paper_splits("yelp-chi"),
    metric=ROC_AUC,
    directed=False,
    citation="Mukherjee et al. 2013; Dou et al. 2020, https://arxiv.org/abs/2008.08692",
    published=Published(
        num_nodes=45_954, num_edges=3_846_979, num_features=32, num_classes=2
    ),
)
