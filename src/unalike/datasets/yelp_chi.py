"""The YelpChi dataset."""

from __future__ import annotations

from pathlib import Path

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.metrics import ROC_AUC
from unalike.datasets.base import Dataset, Published
from unalike.datasets.readers import (
    label_tensor,
    read_errors,
    read_mat,
    sparse_or_dense_features,
)
from unalike.datasets.remote import RemoteFile, google_drive_url
from unalike.datasets.splits import paper_splits

FILE = RemoteFile(
    "yelp-chi/YelpChi.mat",
    mirrors=(
        google_drive_url("1fAXtTVQS4CfEk4asqrFw9EPmlUPGbGtJ"),
        "https://data.dgl.ai/dataset/FraudYelp.zip#YelpChi.mat",
    ),
    other_paths=("YelpChi.mat",),
)


def read(root: Path) -> Graph:
    """Read the union of the three relations between reviews."""
    path = FILE.require(root)
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
    files=(FILE,),
    read=read,
    split=paper_splits("yelp-chi"),
    metric=ROC_AUC,
    directed=False,
    licence="none known",
    citation="Mukherjee et al. 2013; Dou et al. 2020, https://arxiv.org/abs/2008.08692",
    published=Published(
        num_nodes=45_954, num_edges=3_846_979, num_features=32, num_classes=2
    ),
)
