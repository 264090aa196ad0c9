"""twitch-explicit: friendships of streamers in seven languages; who is explicit?"""

from functools import partial
from pathlib import Path

import numpy as np

from unalike.datasets.columns import as_labels, bags, without_empty_columns
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.reading import (
    as_numbers,
    blaming,
    read_json,
    read_pairs,
    read_table,
)
from unalike.datasets.remote import Remote, authors, github
from unalike.datasets.splits import by_name
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.metrics import ROC_AUC

NUM_FEATURES = 3_170
"""Columns before those that are empty in a language are left out."""


def files_of(language: str) -> dict[str, Remote]:
    """The three files of a language."""
    names = {
        "nodes": f"musae_{language}_target.csv",
        "edges": f"musae_{language}_edges.csv",
        "features": f"musae_{language}_features.json",
    }
    return {
        part: Remote(
            f"twitch-explicit/{language}/{file}",
            mirrors=(
                authors(f"twitch/{language}/{file}"),
                github(
                    "CUAI/Non-Homophily-Benchmarks", f"data/twitch/{language}/{file}"
                ),
            ),
        )
        for part, file in names.items()
    }


def read(root: Path, language: str) -> Graph:
    """One language; where an id is told twice, its first row counts."""
    paths = {part: file.at(root) for part, file in files_of(language).items()}
    nodes = read_table(paths["nodes"])
    source, target = read_pairs(paths["edges"])
    contents = read_json(paths["features"])
    with blaming(paths["nodes"]):
        told = as_numbers(nodes["new_id"], np.int64)
        ids, first = np.unique(told, return_index=True)
        mature = nodes["mature"].to_numpy()[first].astype(bool)
    if not np.array_equal(ids, np.arange(len(ids))):
        raise UserError(f"{paths['nodes']}: the ids are not 0 to {len(ids) - 1}.")
    with blaming(paths["features"]):
        features = bags(contents, num_nodes=len(ids), width=NUM_FEATURES)
    return Graph.from_edges(
        source,
        target,
        num_nodes=len(ids),
        features=without_empty_columns(features),
        labels=as_labels(mature),
        num_classes=2,
        directed=True,
    )


def twitch(
    language: str, counts: Counts, edge: float, by_class: float, node: float
) -> Dataset:
    """One language, with its edge, class and node homophily."""
    name = f"twitch-{language.lower()}"
    return Dataset(
        name=name,
        about="Mutual follows among the streamers of Twitch in one language.",
        label_meaning="the streamer uses explicit language",
        files=tuple(files_of(language).values()),
        read=partial(read, language=language),
        split=by_name(name),
        metric=ROC_AUC,
        directed=True,
        licence="none known",
        citation="Rozemberczki, Allen and Sarkar 2021, https://arxiv.org/abs/1909.13021",
        counts=counts,
        published=Published(
            edge_homophily=edge, class_homophily=by_class, one_hop=node
        ),
    )


TWITCH_EXPLICIT = (
    twitch("DE", Counts(9_498, 153_138, 2_514, 2), 0.6322, 0.1421, 0.5974),
    twitch("ENGB", Counts(7_126, 35_324, 2_545, 2), 0.5560, 0.0852, 0.5536),
    twitch("ES", Counts(4_648, 59_382, 2_148, 2), 0.5800, 0.1461, 0.6137),
    twitch("FR", Counts(6_549, 112_666, 2_275, 2), 0.5595, 0.0957, 0.5716),
    twitch("PTBR", Counts(1_912, 31_299, 1_449, 2), 0.5708, 0.1178, 0.5945),
    twitch("RU", Counts(4_385, 37_304, 2_224, 2), 0.6176, 0.0491, 0.6300),
    twitch("TW", Counts(2_772, 63_462, 1_288, 2), 0.5332, 0.0639, 0.5391),
)
