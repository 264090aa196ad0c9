"""The OGB datasets ogbn-arxiv, ogbn-products, and arxiv-year."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph, quantile_labels
from unalike.data.split import PARTS
from unalike.datasets.base import Counts, Dataset, Published
from unalike.datasets.readers import (
    check_compressed,
    label_tensor,
    read_errors,
    read_matrix,
    read_npz,
)
from unalike.datasets.remote import RemoteFile
from unalike.datasets.splits import ogb_splits, paper_splits
from unalike.datasets.transforms import Preparation
from unalike.errors import UserError

BASE_URL = "https://snap.stanford.edu/ogb/data/nodeproppred"


def raw_file(graph: str, name: str) -> RemoteFile:
    """One of the gzipped CSV files in the OGB archive of a graph."""
    mirror = f"{BASE_URL}/{graph}.zip#{graph}/{name}"
    return RemoteFile(f"ogbn_{graph}/{name}", (mirror,))


def split_files(graph: str, scheme: str) -> tuple[RemoteFile, ...]:
    """The official split of a graph, a file for each part."""
    return tuple(raw_file(graph, f"split/{scheme}/{part}.csv.gz") for part in PARTS)


def _arxiv_file(name: str) -> RemoteFile:
    mirror = f"{BASE_URL}/arxiv.zip#arxiv/raw/{name}"
    return RemoteFile(
        f"arxiv-year/{name}", (mirror,), other_paths=(f"ogbn_arxiv/raw/{name}",)
    )


ARXIV_EDGES = _arxiv_file("edge.csv.gz")
ARXIV_FEATURES = _arxiv_file("node-feat.csv.gz")
ARXIV_LABELS = _arxiv_file("node-label.csv.gz")
ARXIV_YEARS = _arxiv_file("node_year.csv.gz")
ARXIV_MATRIX = RemoteFile("arxiv-year/adj_full.npz")
"""The same edges as a SciPy matrix, an alternative to the CSV file of OGB."""

ARXIV_SPLIT = split_files("arxiv", "time")
PRODUCTS = {
    name: raw_file("products", f"raw/{name}.csv.gz")
    for name in ("edge", "node-feat", "node-label", "num-node-list")
}
PRODUCTS_SPLIT = split_files("products", "sales_ranking")


def read_arxiv_year(root: Path) -> Graph:
    """Read citations, labelled by five quantiles of the year of each paper."""
    years = read_matrix(ARXIV_YEARS.require(root), np.float64)
    return build_arxiv(root, quantile_labels(years, 5), num_classes=5)


def read_arxiv(root: Path) -> Graph:
    """Read citations, labelled by the subject of each paper."""
    labels = label_tensor(read_matrix(ARXIV_LABELS.require(root)))
    return build_arxiv(root, labels, num_classes=40)


def build_arxiv(
    root: Path, labels: Int[Tensor, " nodes"], *, num_classes: int
) -> Graph:
    """The citation graph, without features if their file is missing."""
    matrix = ARXIV_MATRIX.find(root)
    if matrix and not ARXIV_EDGES.find(root):
        adjacency = adjacency_from_npz(matrix)
    else:
        adjacency = adjacency_from_csv(ARXIV_EDGES.require(root), len(labels))
    return Graph.build(
        adjacency,
        features=read_features(ARXIV_FEATURES.find(root)),
        labels=labels,
        num_classes=num_classes,
        directed=True,
    )


def read_products(root: Path) -> Graph:
    """Read the co-purchase graph; OGB lists every pair once."""
    paths = {name: file.require(root) for name, file in PRODUCTS.items()}
    num_nodes = int(read_matrix(paths["num-node-list"])[0, 0])
    labels = label_tensor(read_matrix(paths["node-label"]))
    if num_nodes != len(labels):
        raise UserError(
            f"{paths['num-node-list']} has {num_nodes} nodes, and "
            f"{paths['node-label']} has {len(labels)} labels."
        )
    return Graph.build(
        adjacency_from_csv(paths["edge"], num_nodes).to_undirected(),
        features=read_features(paths["node-feat"]),
        labels=labels,
        num_classes=47,
    )


def adjacency_from_npz(path: Path) -> Adjacency:
    """Read a SciPy CSR matrix that `save_npz` wrote."""
    shape, indptr, indices = read_npz(path, "shape", "indptr", "indices")
    with read_errors(path):
        ones = np.ones(len(indices), np.int8)
        matrix = scipy.sparse.csr_array((ones, indices, indptr), shape=tuple(shape))
        check_compressed(matrix)
        return Adjacency.from_scipy(matrix, weighted=False)


def adjacency_from_csv(path: Path, num_nodes: int) -> Adjacency:
    """Read a CSV file of node pairs."""
    edges = torch.from_numpy(read_matrix(path))
    return Adjacency.from_edges(edges[:, 0], edges[:, 1], shape=(num_nodes, num_nodes))


def read_features(path: Path | None) -> Features | None:
    """Read a CSV file of numbers, if there is one."""
    return torch.from_numpy(read_matrix(path, np.float32)) if path else None


CITATION = "Hu et al. 2020, https://arxiv.org/abs/2005.00687"

ARXIV_YEAR_COUNTS = Counts(169_343, 1_166_243, 128, 5)
ARXIV_YEAR = Dataset(
    name="arxiv-year",
    about="Citations between computer science papers on arXiv.",
    label_meaning="year of posting, in five quantiles",
    files=(ARXIV_EDGES, ARXIV_FEATURES, ARXIV_YEARS),
    alternative_files=(ARXIV_MATRIX,),
    features_file=ARXIV_FEATURES,
    read=read_arxiv_year,
    split=paper_splits("arxiv-year"),
    directed=True,
    licence="ODC-BY",
    citation=CITATION,
    counts=ARXIV_YEAR_COUNTS,
    published=ARXIV_YEAR_COUNTS.published(0.222, 0.272, 0.289, 0.341),
    preparation=Preparation(symmetrised=False),
)

OGBN_ARXIV = Dataset(
    name="ogbn-arxiv",
    about="Citations between computer science papers on arXiv.",
    label_meaning="subject area",
    files=(ARXIV_EDGES, ARXIV_FEATURES, ARXIV_LABELS, *ARXIV_SPLIT),
    alternative_files=(ARXIV_MATRIX,),
    features_file=ARXIV_FEATURES,
    read=read_arxiv,
    split=ogb_splits(ARXIV_SPLIT),
    directed=True,
    licence="ODC-BY",
    citation=CITATION,
    counts=Counts(169_343, 1_166_243, 128, 40),
    published=Published(
        169_343, 1_166_243, None, 40, edge_homophily=0.66, class_homophily=0.416
    ),
)

OGBN_PRODUCTS = Dataset(
    name="ogbn-products",
    about="Products that are bought together at Amazon.",
    label_meaning="product category",
    files=(*PRODUCTS.values(), *PRODUCTS_SPLIT),
    read=read_products,
    split=ogb_splits(PRODUCTS_SPLIT),
    directed=False,
    licence="Amazon licence",
    citation=CITATION,
    counts=Counts(2_449_029, 61_859_140, 100, 47),
    published=Published(
        2_449_029, 61_859_140, None, 47, edge_homophily=0.81, class_homophily=0.459
    ),
)
