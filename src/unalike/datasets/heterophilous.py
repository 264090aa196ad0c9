"""heterophilous: the graphs of Platonov et al. 2023, new ones and mended old ones."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from unalike.datasets.columns import as_labels, as_thin
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.preparation import Preparation
from unalike.datasets.reading import blaming, names_in, read_npz
from unalike.datasets.remote import Remote
from unalike.datasets.small_six import PAGE_KIND, TRAFFIC, WEB, WIKIPEDIA, platonov
from unalike.datasets.splits import beside
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.metrics import ACCURACY, ROC_AUC, Metric


def read(root: Path, file: Remote) -> Graph:
    """A graph from one archive of arrays, which tells every edge once."""
    path = file.at(root)
    edges, labels = read_npz(path, "edges", "node_labels")
    features = None
    if "node_features" in names_in(path):
        (features,) = read_npz(path, "node_features")
    with blaming(path):
        pairs = torch.from_numpy(edges.astype("int64"))
        source, target = pairs.T if pairs.shape[1:] == (2,) else pairs
        classes = as_labels(labels)
    return Graph.from_edges(
        source,
        target,
        num_nodes=len(classes),
        features=None if features is None else as_thin(as_rows(features)),
        labels=classes,
        directed=True,
    )


def as_rows(features: np.ndarray) -> np.ndarray:
    """Features as a matrix; a plain array is one feature of each node."""
    return features[:, None] if features.ndim == 1 else features


def of_file(
    file: Remote,
    name: str,
    *,
    metric: Metric,
    about: str = "A graph in the format of Platonov et al. 2023.",
    label_meaning: str = "not told",
    counts: Counts | None = None,
    edge_homophily: float | None = None,
    one_way: bool = False,
) -> Dataset:
    """The dataset in one archive of this format."""
    return Dataset(
        name=name,
        about=about,
        label_meaning=label_meaning,
        files=(file,),
        read=partial(read, file=file),
        split=beside(file),
        metric=metric,
        directed=True,
        licence="MIT",
        citation="Platonov et al. 2023, https://arxiv.org/abs/2302.11640",
        counts=counts,
        published=Published(edge_homophily=edge_homophily),
        preparation=Preparation(symmetrised=not one_way),
        minor=counts is None,
    )


def discover(root: Path) -> Iterator[tuple[str, Dataset]]:
    """Every archive in the folder, by its own name."""
    for path in sorted((root / "heterophilous").glob("*.npz")):
        name = path.stem.replace("_", "-").lower()
        dataset = of_file(
            Remote(f"heterophilous/{path.name}"),
            name,
            metric=usual_metric(path),
            one_way=path.stem.endswith("_directed"),
        )
        yield name, dataset


def usual_metric(path: Path) -> Metric:
    """Platonov's choice: ROC-AUC where there are two classes."""
    try:
        (labels,) = read_npz(path, "node_labels")
    except UserError:
        # Whoever loads the graph will hear of the damage; a list need not.
        return ACCURACY
    return ROC_AUC if labels.max(initial=0) < 2 else ACCURACY


HETEROPHILOUS = (
    of_file(
        platonov("roman_empire"),
        "roman-empire",
        about="Words of a Wikipedia article, joined by order and by syntax.",
        label_meaning="syntactic role of the word",
        metric=ACCURACY,
        counts=Counts(22_662, 32_927, 300, 18),
        edge_homophily=0.05,
    ),
    of_file(
        platonov("amazon_ratings"),
        "amazon-ratings",
        about="Products that are bought together at Amazon.",
        label_meaning="mean rating, in five classes",
        metric=ACCURACY,
        counts=Counts(24_492, 93_050, 300, 5),
        edge_homophily=0.38,
    ),
    of_file(
        platonov("minesweeper"),
        "minesweeper",
        about="The cells of a minesweeper board.",
        label_meaning="the cell is a mine",
        metric=ROC_AUC,
        counts=Counts(10_000, 39_402, 7, 2),
        edge_homophily=0.68,
    ),
    of_file(
        platonov("tolokers"),
        "tolokers",
        about="Crowd workers who worked on the same task.",
        label_meaning="the worker was banned",
        metric=ROC_AUC,
        counts=Counts(11_758, 519_000, 10, 2),
        edge_homophily=0.59,
    ),
    of_file(
        platonov("questions"),
        "questions",
        about="Users of a question site who answered each other.",
        label_meaning="the user stayed active",
        metric=ROC_AUC,
        counts=Counts(48_921, 153_540, 301, 2),
        edge_homophily=0.84,
    ),
    of_file(
        platonov("chameleon_filtered"),
        "chameleon-filtered",
        about=f"{WIKIPEDIA} Without duplicate nodes.",
        label_meaning=TRAFFIC,
        metric=ACCURACY,
        counts=Counts(890, 8_854, 2_325, 5),
        edge_homophily=0.24,
    ),
    of_file(
        platonov("squirrel_filtered"),
        "squirrel-filtered",
        about=f"{WIKIPEDIA} Without duplicate nodes.",
        label_meaning=TRAFFIC,
        metric=ACCURACY,
        counts=Counts(2_223, 46_998, 2_089, 5),
        edge_homophily=0.21,
    ),
    of_file(
        platonov("cornell"),
        "cornell-fixed",
        about=f"{WEB} Cornell with its own features and labels.",
        label_meaning=PAGE_KIND,
        metric=ACCURACY,
        counts=Counts(183, 277, 1_703, 5),
        edge_homophily=0.12,
    ),
)
