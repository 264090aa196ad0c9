"""Roman-empire, Amazon-ratings, Minesweeper and others of Platonov et al. 2023."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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


def dataset_from_file(file: RemoteFile, name: str, metric: Metric) -> Dataset:
    """The dataset in one .npz file of this format; its name may say it is directed."""
    keep_direction = file.path.endswith("_directed.npz")
    return Dataset(
        name=name,
        about="A graph in the format of Platonov et al. 2023.",
        label_meaning="unknown",
        files=(file,),
        read=partial(read, file=file),
        split=splits_in_archive(file),
        metric=metric,
        directed=True,
        licence="MIT",
        citation="Platonov et al. 2023, https://arxiv.org/abs/2302.11640",
        preparation=Preparation(symmetrised=not keep_direction),
        list_only_if_present=True,
    )


def platonov_dataset(
    file: str,
    about: str,
    label_meaning: str,
    counts: Counts,
    edge_homophily: float,
    *,
    name: str = "",
) -> Dataset:
    """A dataset of Platonov et al.; two classes are scored by ROC-AUC."""
    metric = ROC_AUC if counts.num_classes == 2 else ACCURACY
    name = name or file.replace("_", "-")
    return replace(
        dataset_from_file(platonov_file(file), name, metric),
        about=about,
        label_meaning=label_meaning,
        counts=counts,
        published=Published(edge_homophily=edge_homophily),
        list_only_if_present=False,
    )


def discover(root: Path) -> Iterator[tuple[str, Dataset]]:
    """Datasets of all .npz files in the data root, by file name."""
    for path in sorted((root / "heterophilous").glob("*.npz")):
        name = path.stem.replace("_", "-").lower()
        file = RemoteFile(f"heterophilous/{path.name}")
        yield name, dataset_from_file(file, name, default_metric(path))


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
    platonov_dataset(
        "roman_empire",
        "Words of a Wikipedia article, joined by order and by syntax.",
        "syntactic role of the word",
        Counts(22_662, 32_927, 300, 18),
        0.05,
    ),
    platonov_dataset(
        "amazon_ratings",
        "Products that are bought together at Amazon.",
        "mean rating, in five classes",
        Counts(24_492, 93_050, 300, 5),
        0.38,
    ),
    platonov_dataset(
        "minesweeper",
        "The cells of a minesweeper board.",
        "the cell is a mine",
        Counts(10_000, 39_402, 7, 2),
        0.68,
    ),
    platonov_dataset(
        "tolokers",
        "Crowd workers who worked on the same task.",
        "the worker was banned",
        Counts(11_758, 519_000, 10, 2),
        0.59,
    ),
    platonov_dataset(
        "questions",
        "Users of a question site who answered each other.",
        "the user stayed active",
        Counts(48_921, 153_540, 301, 2),
        0.84,
    ),
    platonov_dataset(
        "chameleon_filtered",
        f"{WIKIPEDIA} Without duplicate nodes.",
        TRAFFIC,
        Counts(890, 8_854, 2_325, 5),
        0.24,
    ),
    platonov_dataset(
        "squirrel_filtered",
        f"{WIKIPEDIA} Without duplicate nodes.",
        TRAFFIC,
        Counts(2_223, 46_998, 2_089, 5),
        0.21,
    ),
    platonov_dataset(
        "cornell",
        f"{WEB} Cornell with its own features and labels.",
        PAGE_KIND,
        Counts(183, 277, 1_703, 5),
        0.12,
        name="cornell-fixed",
    ),
)
