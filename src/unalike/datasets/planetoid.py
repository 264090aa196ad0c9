"""Cora, CiteSeer and PubMed in the format of Planetoid."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse
import torch

from unalike.data.graph import Graph, as_features
from unalike.datasets.base import Counts, Dataset, Published
from unalike.datasets.geom_gcn import split_files
from unalike.datasets.readers import read_errors, read_matrix
from unalike.datasets.remote import RemoteFile, github_url
from unalike.datasets.safe_pickle import read_pickle
from unalike.datasets.splits import splits_from_masks

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")


def planetoid_files(name: str) -> dict[str, RemoteFile]:
    """The eight files of a graph."""
    return {
        part: RemoteFile(
            f"planetoid/ind.{name}.{part}",
            (github_url("kimiyoung/planetoid", f"data/ind.{name}.{part}"),),
        )
        for part in PARTS
    }


def read(root: Path, name: str) -> Graph:
    """Read the graph with its nodes in the order of the edge file.

    The test nodes are shuffled; test.index has their ids. CiteSeer lacks 15 of them:
    isolated nodes without features, which get class 0 as in other readers of these
    files.
    """
    files = planetoid_files(name)
    arrays = {part: read_pickle(files[part].require(root)) for part in PARTS[2:-1]}
    test_ids = read_matrix(files["test.index"].require(root)).ravel()
    with read_errors(root / "planetoid" / f"ind.{name}"):
        num_nodes = len(arrays["graph"])
        order = np.concatenate([np.arange(arrays["allx"].shape[0]), test_ids])
        features = scipy.sparse.vstack([arrays["allx"], arrays["tx"]]).tocoo()
        coordinates = (order[features.row], features.col)
        shape = (num_nodes, features.shape[1])
        classes = np.zeros((num_nodes, arrays["ally"].shape[1]))
        classes[order] = np.concatenate([arrays["ally"], arrays["ty"]])
        edges = [
            (u, v)
            for u, neighbours in arrays["graph"].items()
            for v in neighbours
            if u != v
        ]
        return Graph.from_edges(
            *torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T,
            num_nodes=num_nodes,
            features=as_features(
                scipy.sparse.coo_array((features.data, coordinates), shape)
            ),
            labels=torch.from_numpy(classes.argmax(1)),
            num_classes=classes.shape[1],
        )


def planetoid_dataset(
    name: str, label_meaning: str, counts: Counts, published: Published
) -> Dataset:
    """A Planetoid dataset with the geom-gcn splits that the LINKX paper uses."""
    splits = split_files(name)
    return Dataset(
        name=name,
        about="Citations between scientific papers.",
        label_meaning=label_meaning,
        files=(*planetoid_files(name).values(), *splits),
        read=partial(read, name=name),
        split=splits_from_masks(splits),
        directed=False,
        licence="MIT",
        citation="Yang, Cohen and Salakhutdinov 2016, https://arxiv.org/abs/1603.08861",
        counts=counts,
        published=published,
    )


PLANETOID = (
    planetoid_dataset(
        "cora",
        "subject of the paper",
        Counts(2_708, 5_278, 1_433, 7),
        Published(2_708, 5_278, None, 7, edge_homophily=0.81, class_homophily=0.766),
    ),
    planetoid_dataset(
        "citeseer",
        "subject of the paper",
        Counts(3_327, 4_552, 3_703, 6),
        Published(3_327, 4_552, None, 6, edge_homophily=0.74, class_homophily=0.627),
    ),
    planetoid_dataset(
        "pubmed",
        "type of diabetes the paper is about",
        Counts(19_717, 44_324, 500, 3),
        Published(19_717, 44_324, None, 3, edge_homophily=0.80, class_homophily=0.664),
    ),
)
