"""twitch-gamers: friendships of streamers; who streams mature content?"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from unalike.datasets.columns import as_labels
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.reading import blaming, read_pairs, read_table
from unalike.datasets.remote import Remote, authors, drive
from unalike.datasets.splits import shipped
from unalike.graph import Graph

ARCHIVE = "https://snap.stanford.edu/data/twitch_gamers.zip"
NODES = Remote(
    "twitch-gamers/twitch-gamer_feat.csv",
    mirrors=(
        drive("1fA9VIIEI8N0L27MSQfcBzJgRQLvSbrvR"),
        f"{ARCHIVE}#large_twitch_features.csv",
    ),
    also=("twitch-gamers/large_twitch_features.csv", "twitch-gamer_feat.csv"),
)
EDGES = Remote(
    "twitch-gamers/twitch-gamer_edges.csv",
    mirrors=(
        drive("1XLETC6dG3lVl7kDmytEJ52hvDMVdxnZ0"),
        f"{ARCHIVE}#large_twitch_edges.csv",
    ),
    also=("twitch-gamers/large_twitch_edges.csv", "twitch-gamer_edges.csv"),
)
SPLITS = Remote(
    "splits/twitch-gamer-splits.npy", (authors("splits/twitch-gamer-splits.npy"),)
)


def read(root: Path) -> Graph:
    """Row i of the node file is node i; features are standardised as in the paper."""
    path = NODES.at(root)
    nodes = read_table(path, texts=("created_at", "updated_at", "language"))
    source, target = read_pairs(EDGES.at(root))
    with blaming(path):
        columns = [number(nodes[name]) for name, number in FEATURES.items()]
        features = np.stack(columns, 1).astype(np.float32)
        labels = as_labels(nodes["mature"])
    return Graph.from_edges(
        source,
        target,
        num_nodes=nodes.num_rows,
        features=torch.from_numpy(standardise(features)),
        labels=labels,
        num_classes=2,
        directed=True,
    )


def plain(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers as they are; gaps become NaN."""
    return column.to_numpy().astype(np.float64)


def day(column: pa.ChunkedArray) -> np.ndarray:
    """A date as the number YYYYMMDD."""
    return plain(pc.cast(pc.replace_substring(column, "-", ""), pa.int64()))


def code(column: pa.ChunkedArray) -> np.ndarray:
    """A word as its number in the order of first appearance."""
    return plain(pa.chunked_array([pc.index_in(column, pc.unique(column))]))


def standardise(features: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and sample standard deviation 1; a gap gets the mean.

    The dates are rounded to 32 bits before this, as the paper's program rounds them.
    """
    exact = features.astype(np.float64)
    spread = np.nanstd(exact, axis=0, ddof=1)
    scaled = (exact - np.nanmean(exact, axis=0)) / np.where(spread == 0, 1, spread)
    return np.nan_to_num(scaled).astype(np.float32)


FEATURES = {
    "views": plain,
    "life_time": plain,
    "created_at": day,
    "updated_at": day,
    "dead_account": plain,
    "language": code,
    "affiliate": plain,
}
"""The columns in their order, and how each becomes numbers."""

TWITCH_GAMERS = Dataset(
    name="twitch-gamers",
    about="Mutual follows among the streamers of Twitch.",
    label_meaning="the channel has mature content",
    files=(NODES, EDGES, SPLITS),
    read=read,
    split=shipped(SPLITS),
    directed=True,
    licence="MIT",
    citation="Rozemberczki and Sarkar 2021, https://arxiv.org/abs/2101.03091",
    counts=Counts(168_114, 6_797_557, 7, 2),
    published=Published(
        num_nodes=168_114,
        num_edges=6_797_557,
        num_features=7,
        num_classes=2,
        edge_homophily=0.545,
        class_homophily=0.090,
        one_hop=0.556,
        two_hop=0.513,
    ),
)
