"""OGB: ogbn-arxiv, ogbn-products and arxiv-year, from OGB's own files."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.datasets.columns import as_labels
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.preparation import Preparation
from unalike.datasets.quantiles import quantile_labels
from unalike.datasets.reading import blaming, read_npz, read_numbers
from unalike.datasets.remote import Remote
from unalike.datasets.splits import chained, official
from unalike.features import Features
from unalike.graph import Graph

SITE = "http://snap.stanford.edu/ogb/data/nodeproppred"


def raw_file(graph: str, name: str, *, also: tuple[str, ...] = ()) -> Remote:
    """One of the gzipped tables that OGB packs into an archive per graph."""
    mirror = f"{SITE}/{graph}.zip#{graph}/{name}"
    return Remote(f"ogbn_{graph}/{name}", (mirror,), also)


def _arxiv_file(name: str) -> Remote:
    mirror = f"{SITE}/arxiv.zip#arxiv/raw/{name}"
    return Remote(f"arxiv-year/{name}", (mirror,), also=(f"ogbn_arxiv/raw/{name}",))


ARXIV_EDGES = _arxiv_file("edge.csv.gz")
ARXIV_FEATURES = _arxiv_file("node-feat.csv.gz")
ARXIV_LABELS = _arxiv_file("node-label.csv.gz")
ARXIV_YEARS = _arxiv_file("node_year.csv.gz")
ARXIV_ROWS = Remote("arxiv-year/adj_full.npz")
"""The same edges as scipy rows, for those who have them and not OGB's table."""

ARXIV_SPLIT = tuple(
    raw_file("arxiv", f"split/time/{part}.csv.gz")
    for part in ("train", "valid", "test")
)
PRODUCTS = {
    name: raw_file("products", f"raw/{name}.csv.gz")
    for name in ("edge", "node-feat", "node-label", "num-node-list")
}
PRODUCTS_SPLIT = tuple(
    raw_file("products", f"split/sales_ranking/{part}.csv.gz")
    for part in ("train", "valid", "test")
)


def read_arxiv_year(root: Path) -> Graph:
    """The citations with the year of each paper, in five quantiles."""
    years = read_numbers(ARXIV_YEARS.at(root), np.float64)
    return arxiv(root, quantile_labels(years, 5), num_classes=5)


def read_arxiv(root: Path) -> Graph:
    """The citations with the subject of each paper."""
    labels = as_labels(read_numbers(ARXIV_LABELS.at(root)))
    return arxiv(root, labels, num_classes=40)


def arxiv(root: Path, labels: Int[Tensor, " nodes"], *, num_classes: int) -> Graph:
    """Who cites whom; without features where their file is not there."""
    rows = ARXIV_ROWS.find(root)
    if rows and not ARXIV_EDGES.find(root):
        adjacency = from_rows(rows)
    else:
        adjacency = from_table(ARXIV_EDGES.at(root), len(labels))
    return Graph.build(
        adjacency,
        features=read_features(ARXIV_FEATURES.find(root)),
        labels=labels,
        num_classes=num_classes,
        directed=True,
    )


def read_products(root: Path) -> Graph:
    """Products bought together; OGB lists every pair once."""
    paths = {name: file.at(root) for name, file in PRODUCTS.items()}
    nodes = int(read_numbers(paths["num-node-list"])[0, 0])
    return Graph.build(
        from_table(paths["edge"], nodes).symmetric(),
        features=read_features(paths["node-feat"]),
        labels=as_labels(read_numbers(paths["node-label"])),
        num_classes=47,
    )


def from_rows(path: Path) -> Adjacency:
    """Rows from the parts of a scipy matrix that `save_npz` wrote."""
    shape, starts, columns = read_npz(path, "shape", "indptr", "indices")
    with blaming(path):
        lengths = torch.from_numpy(np.diff(starts).astype(np.int64))
        source = torch.arange(int(shape[0])).repeat_interleave(lengths)
        target = torch.from_numpy(columns.astype(np.int64))
    return Adjacency.from_edges(source, target, shape=(int(shape[0]), int(shape[1])))


def from_table(path: Path, nodes: int) -> Adjacency:
    """Rows from a table of pairs."""
    pairs = torch.from_numpy(read_numbers(path))
    return Adjacency.from_edges(pairs[:, 0], pairs[:, 1], shape=(nodes, nodes))


def read_features(path: Path | None) -> Features | None:
    """A table of numbers, if it is there."""
    return torch.from_numpy(read_numbers(path, np.float32)) if path else None


_ARXIV = "Hu et al. 2020, https://arxiv.org/abs/2005.00687"

ARXIV_YEAR = Dataset(
    name="arxiv-year",
    about="Citations between computer science papers on arXiv.",
    label_meaning="year of posting, in five quantiles",
    files=(ARXIV_EDGES, ARXIV_FEATURES, ARXIV_YEARS),
    also_reads=(ARXIV_ROWS,),
    read=read_arxiv_year,
    split=chained("arxiv-year"),
    directed=True,
    licence="ODC-BY",
    citation=_ARXIV,
    counts=Counts(169_343, 1_166_243, 128, 5),
    published=Published(
        num_nodes=169_343,
        num_edges=1_166_243,
        num_features=128,
        num_classes=5,
        edge_homophily=0.222,
        class_homophily=0.272,
        one_hop=0.289,
        two_hop=0.341,
    ),
    preparation=Preparation(symmetrised=False),
)

OGBN_ARXIV = Dataset(
    name="ogbn-arxiv",
    about="Citations between computer science papers on arXiv.",
    label_meaning="subject area",
    files=(ARXIV_EDGES, ARXIV_FEATURES, ARXIV_LABELS, *ARXIV_SPLIT),
    also_reads=(ARXIV_ROWS,),
    read=read_arxiv,
    split=official(ARXIV_SPLIT),
    directed=True,
    licence="ODC-BY",
    citation=_ARXIV,
    counts=Counts(169_343, 1_166_243, 128, 40),
    published=Published(
        num_nodes=169_343,
        num_edges=1_166_243,
        num_classes=40,
        edge_homophily=0.66,
        class_homophily=0.416,
    ),
)

OGBN_PRODUCTS = Dataset(
    name="ogbn-products",
    about="Products that are bought together at Amazon.",
    label_meaning="product category",
    files=(*PRODUCTS.values(), *PRODUCTS_SPLIT),
    read=read_products,
    split=official(PRODUCTS_SPLIT),
    directed=False,
    licence="Amazon licence",
    citation=_ARXIV,
    counts=Counts(2_449_029, 61_859_140, 100, 47),
    published=Published(
        num_nodes=2_449_029,
        num_edges=61_859_140,
        num_classes=47,
        edge_homophily=0.81,
        class_homophily=0.459,
    ),
)
