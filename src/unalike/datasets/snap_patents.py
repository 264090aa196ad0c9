"""snap-patents: which patent cites which; when was each granted?"""

from pathlib import Path

import numpy as np

from unalike.datasets.columns import as_dense
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.edge_mat import read_edge_mat
from unalike.datasets.preparation import Preparation
from unalike.datasets.quantiles import quantile_labels
from unalike.datasets.remote import Remote, drive
from unalike.datasets.splits import chained
from unalike.features import as_features
from unalike.graph import Graph

FILE = Remote(
    "snap-patents/snap_patents.mat",
    mirrors=(drive("1ldh23TSY1PwXia6dU0MYcpyEgX-w3Hia"),),
    also=("snap-patents/snap-patents.mat", "snap_patents.mat"),
)


def read(root: Path) -> Graph:
    """The graph as the authors released it; its features stay sparse."""
    edges, features, years = read_edge_mat(root, FILE, "years")
    is_dense = isinstance(features, np.ndarray)
    return Graph.build(
        edges,
        features=as_dense(features) if is_dense else as_features(features),
        labels=quantile_labels(years, 5),
        num_classes=5,
        directed=True,
    )


SNAP_PATENTS = Dataset(
    name="snap-patents",
    about="Citations between United States patents.",
    label_meaning="time granted, in five quantiles",
    files=(FILE,),
    read=read,
    split=chained("snap-patents"),
    directed=True,
    licence="none known",
    citation="Leskovec, Kleinberg and Faloutsos 2005, "
    "https://snap.stanford.edu/data/cit-Patents.html",
    counts=Counts(2_923_922, 13_975_788, 269, 5),
    published=Published(
        num_nodes=2_923_922,
        num_edges=13_975_788,
        num_features=269,
        num_classes=5,
        edge_homophily=0.073,
        class_homophily=0.100,
        one_hop=0.221,
        two_hop=0.330,
    ),
    preparation=Preparation(symmetrised=False),
)
