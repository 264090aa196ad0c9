"""Twitch-gamers and the seven Twitch-explicit language graphs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from unalike.data.graph import Graph
from unalike.data.metrics import ROC_AUC
from unalike.datasets.base import Counts, Dataset, Published
from unalike.datasets.readers import (
    drop_empty_columns,
    label_tensor,
    multi_hot,
    numeric_column,
    read_edge_list,
    read_errors,
    read_json,
    read_table,
)
from unalike.datasets.remote import RemoteFile, github_url, google_drive_url, linkx_url
from unalike.datasets.splits import paper_or_random, splits_from_npy
from unalike.errors import UserError

ARCHIVE = "https://snap.stanford.edu/data/twitch_gamers.zip"
NODES = RemoteFile(
    "twitch-gamers/twitch-gamer_feat.csv",
    mirrors=(
        google_drive_url("1fA9VIIEI8N0L27MSQfcBzJgRQLvSbrvR"),
        f"{ARCHIVE}#large_twitch_features.csv",
    ),
    other_paths=("twitch-gamers/large_twitch_features.csv", "twitch-gamer_feat.csv"),
)
EDGES = RemoteFile(
    "twitch-gamers/twitch-gamer_edges.csv",
    mirrors=(
        google_drive_url("1XLETC6dG3lVl7kDmytEJ52hvDMVdxnZ0"),
        f"{ARCHIVE}#large_twitch_edges.csv",
    ),
    other_paths=("twitch-gamers/large_twitch_edges.csv", "twitch-gamer_edges.csv"),
)
SPLITS = RemoteFile(
    "splits/twitch-gamer-splits.npy", (linkx_url("splits/twitch-gamer-splits.npy"),)
)


def read_gamers(root: Path) -> Graph:
    """Read Twitch-gamers with standardised features; row i of its file is node i."""
    path = NODES.require(root)
    nodes = read_table(path, string_columns=("created_at", "updated_at", "language"))
    source, target = read_edge_list(EDGES.require(root))
    with read_errors(path):
        columns = [convert(nodes[name]) for name, convert in FEATURES.items()]
        features = np.stack(columns, 1).astype(np.float32)
        labels = label_tensor(nodes["mature"])
    return Graph.from_edges(
        source,
        target,
        num_nodes=nodes.num_rows,
        features=torch.from_numpy(standardize(features)),
        labels=labels,
        num_classes=2,
        directed=True,
    )


def as_float(column: pa.ChunkedArray) -> np.ndarray:
    """A numeric column as floats; missing values become NaN."""
    return column.to_numpy().astype(np.float64)


def date_as_number(column: pa.ChunkedArray) -> np.ndarray:
    """A column of dates as the numbers YYYYMMDD."""
    return as_float(pc.cast(pc.replace_substring(column, "-", ""), pa.int64()))


def category_code(column: pa.ChunkedArray) -> np.ndarray:
    """A column of strings as category codes in the order of first appearance."""
    return as_float(pa.chunked_array([pc.index_in(column, pc.unique(column))]))


def standardize(features: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and sample standard deviation 1; missing values get the mean.

    The dates are rounded to 32 bits before this, as in the paper's code.
    """
    exact = features.astype(np.float64)
    std = np.nanstd(exact, axis=0, ddof=1)
    scaled = (exact - np.nanmean(exact, axis=0)) / np.where(std == 0, 1, std)
    return np.nan_to_num(scaled).astype(np.float32)


FEATURES = {
    "views": as_float,
    "life_time": as_float,
    "created_at": date_as_number,
    "updated_at": date_as_number,
    "dead_account": as_float,
    "language": category_code,
    "affiliate": as_float,
}
"""The feature columns in order, and the conversion of each to floats."""

TWITCH_GAMERS_COUNTS = Counts(168_114, 6_797_557, 7, 2)
TWITCH_GAMERS = Dataset(
    name="twitch-gamers",
    about="Mutual follows among the streamers of Twitch.",
    label_meaning="the channel has mature content",
    files=(NODES, EDGES, SPLITS),
    read=read_gamers,
    split=splits_from_npy(SPLITS),
    directed=True,
    licence="MIT",
    citation="Rozemberczki and Sarkar 2021, https://arxiv.org/abs/2101.03091",
    counts=TWITCH_GAMERS_COUNTS,
    published=TWITCH_GAMERS_COUNTS.published(0.545, 0.090, 0.556, 0.513),
)

NUM_FEATURES = 3_170
"""Feature columns of all languages, before empty ones are dropped."""


def language_files(language: str) -> dict[str, RemoteFile]:
    """The three raw files of a language."""
    names = {
        "nodes": f"musae_{language}_target.csv",
        "edges": f"musae_{language}_edges.csv",
        "features": f"musae_{language}_features.json",
    }
    return {
        part: RemoteFile(
            f"twitch-explicit/{language}/{file}",
            mirrors=(
                linkx_url(f"twitch/{language}/{file}"),
                github_url(
                    "CUAI/Non-Homophily-Benchmarks", f"data/twitch/{language}/{file}"
                ),
            ),
        )
        for part, file in names.items()
    }


def read_language(root: Path, language: str) -> Graph:
    """Read one language; the first row of a duplicate id is used."""
    paths = {
        part: file.require(root) for part, file in language_files(language).items()
    }
    nodes = read_table(paths["nodes"])
    source, target = read_edge_list(paths["edges"])
    active_features = read_json(paths["features"])
    with read_errors(paths["nodes"]):
        new_ids = numeric_column(nodes["new_id"], np.int64)
        ids, first = np.unique(new_ids, return_index=True)
        mature = nodes["mature"].to_numpy()[first].astype(bool)
    if not np.array_equal(ids, np.arange(len(ids))):
        raise UserError(f"{paths['nodes']}: the ids are not 0 to {len(ids) - 1}.")
    with read_errors(paths["features"]):
        features = multi_hot(
            active_features, num_nodes=len(ids), num_features=NUM_FEATURES
        )
    return Graph.from_edges(
        source,
        target,
        num_nodes=len(ids),
        features=drop_empty_columns(features),
        labels=label_tensor(mature),
        num_classes=2,
        directed=True,
    )


def language_dataset(
    language: str, counts: Counts, edge: float, by_class: float, node: float
) -> Dataset:
    """The dataset of one language, with its edge, class and node homophily."""
    name = f"twitch-{language.lower()}"
    return Dataset(
        name=name,
        about="Mutual follows among the streamers of Twitch in one language.",
        label_meaning="the streamer uses explicit language",
        files=tuple(language_files(language).values()),
        read=partial(read_language, language=language),
        split=paper_or_random(name),
        metric=ROC_AUC,
        directed=True,
        citation="Rozemberczki, Allen and Sarkar 2021, https://arxiv.org/abs/1909.13021",
        counts=counts,
        published=Published(
            edge_homophily=edge, class_homophily=by_class, one_hop=node
        ),
    )


TWITCH_EXPLICIT = (
    language_dataset("DE", Counts(9_498, 153_138, 2_514, 2), 0.6322, 0.1421, 0.5974),
    language_dataset("ENGB", Counts(7_126, 35_324, 2_545, 2), 0.5560, 0.0852, 0.5536),
    language_dataset("ES", Counts(4_648, 59_382, 2_148, 2), 0.5800, 0.1461, 0.6137),
    language_dataset("FR", Counts(6_549, 112_666, 2_275, 2), 0.5595, 0.0957, 0.5716),
    language_dataset("PTBR", Counts(1_912, 31_299, 1_449, 2), 0.5708, 0.1178, 0.5945),
    language_dataset("RU", Counts(4_385, 37_304, 2_224, 2), 0.6176, 0.0491, 0.6300),
    language_dataset("TW", Counts(2_772, 63_462, 1_288, 2), 0.5332, 0.0639, 0.5391),
)
