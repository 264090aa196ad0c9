"""Roman-empire, Amazon-ratings, Minesweeper and others of Platonov et al. 2023."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from unalike.data.graph import Features, Graph
from unalike.data.metrics import ACCURACY, ROC_AUC, Metric
from unalike.datasets.base import Counts, Dataset, Published
from unalike.datasets.geom_gcn import PAGE_KIND, TRAFFIC, WEB, WIKIPEDIA
from unalike.datasets.readers import (
    label_tensor,
    npz_names,
    read_errors,
    read_npz,
    sparse_or_dense_features,
)
from unalike.datasets.remote import RemoteFile, platonov_file
from unalike.datasets.splits import splits_in_archive
from unalike.datasets.transforms import Preparation
from unalike.errors import UserError


def read(root: Path, file: RemoteFile) -> Graph:
    """Read a graph from one .npz file, in which every edge is stored once."""
    path = file.require(root)
    edges, labels = read_npz(path, "edges", "node_labels")
    features: Features | None = None
    if "node_features" in npz_names(path):
        (matrix,) = read_npz(path, "node_features")
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        features = sparse_or_dense_features(matrix)
    with read_errors(path):
        edge_index = torch.from_numpy(edges.astype("int64"))
        source, target = edge_index.T if edge_index.shape[1:] == (2,) else edge_index
        classes = label_tensor(labels)
    return Graph.from_edges(
        source,
        target,
        num_nodes=len(classes),
        features=features,
        labels=classes,
        directed=True,
    )


def dataset_from_file(
    file: RemoteFile,
    name: str,
    *,
    metric: Metric,
    about: str = "A graph in the format of Platonov et al. 2023.",
    label_meaning: str = "unknown",
    counts: Counts | None = None,
    edge_homophily: float | None = None,
    keep_direction: bool = False,
) -> Dataset:
    """The dataset in one .npz file of this format."""
    return Dataset(
        name=name,
        about=about,
        label_meaning=label_meaning,
        files=(file,),
        read=partial(read, file=file),
        split=splits_in_archive(file),
        metric=metric,
        directed=True,
        licence="MIT",
        citation="Platonov et al. 2023, https://arxiv.org/abs/2302.11640",
        counts=counts,
        published=Published(edge_homophily=edge_homophily),
        preparation=Preparation(symmetrised=not keep_direction),
        list_only_if_present=counts is None,
    )


def discover(root: Path) -> Iterator[tuple[str, Dataset]]:
    """Datasets of all .npz files in the data root, by file name."""
    for path in sorted((root / "heterophilous").glob("*.npz")):
        name = path.stem.replace("_", "-").lower()
        dataset = dataset_from_file(
            RemoteFile(f"heterophilous/{path.name}"),
            name,
            metric=default_metric(path),
            keep_direction=path.stem.endswith("_directed"),
        )
        yield name, dataset


def default_metric(path: Path) -> Metric:
    """The metric of Platonov et al.: ROC-AUC for two classes, else accuracy."""
    try:
        (labels,) = read_npz(path, "node_labels")
        with read_errors(path):
            is_binary = bool((label_tensor(labels) < 2).all())
    except UserError:
        # A damaged file raises when its graph is loaded; lists must still work.
        return ACCURACY
    return ROC_AUC if is_binary else ACCURACY


HETEROPHILOUS = (
    dataset_from_file(
        platonov_file("roman_empire"),
        "roman-empire",
        about="Words of a Wikipedia article, joined by order and by syntax.",
        label_meaning="syntactic role of the word",
        metric=ACCURACY,
        counts=Counts(22_662, 32_927, 300, 18),
        edge_homophily=0.05,
    ),
    dataset_from_file(
        platonov_file("amazon_ratings"),
        "amazon-ratings",
        about="Products that are bought together at Amazon.",
        label_meaning="mean rating, in five classes",
        metric=ACCURACY,
        counts=Counts(24_492, 93_050, 300, 5),
        edge_homophily=0.38,
    ),
    dataset_from_file(
        platonov_file("minesweeper"),
        "minesweeper",
        about="The cells of a minesweeper board.",
        label_meaning="the cell is a mine",
        metric=ROC_AUC,
        counts=Counts(10_000, 39_402, 7, 2),
        edge_homophily=0.68,
    ),
    dataset_from_file(
        platonov_file("tolokers"),
        "tolokers",
        about="Crowd workers who worked on the same task.",
        label_meaning="the worker was banned",
        metric=ROC_AUC,
        counts=Counts(11_758, 519_000, 10, 2),
        edge_homophily=0.59,
    ),
    dataset_from_file(
        platonov_file("questions"),
        "questions",
        about="Users of a question site who answered each other.",
        label_meaning="the user stayed active",
        metric=ROC_AUC,
        counts=Counts(48_921, 153_540, 301, 2),
        edge_homophily=0.84,
    ),
    dataset_from_file(
        platonov_file("chameleon_filtered"),
        "chameleon-filtered",
        about=f"{WIKIPEDIA} Without duplicate nodes.",
        label_meaning=TRAFFIC,
        metric=ACCURACY,
        counts=Counts(890, 8_854, 2_325, 5),
        edge_homophily=0.24,
    ),
    dataset_from_file(
        platonov_file("squirrel_filtered"),
        "squirrel-filtered",
        about=f"{WIKIPEDIA} Without duplicate nodes.",
        label_meaning=TRAFFIC,
        metric=ACCURACY,
        counts=Counts(2_223, 46_998, 2_089, 5),
        edge_homophily=0.21,
    ),
    dataset_from_file(
        platonov_file("cornell"),
        "cornell-fixed",
        about=f"{WEB} Cornell with its own features and labels.",
        label_meaning=PAGE_KIND,
        metric=ACCURACY,
        counts=Counts(183, 277, 1_703, 5),
        edge_homophily=0.12,
    ),
)
