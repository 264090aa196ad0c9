"""Train/valid/test splits: of the paper, of OGB, of geom-gcn, of Platonov, random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.graph import Graph
from unalike.data.split import PARTS, Split, random_splits, split_by_order
from unalike.datasets.readers import npz_names, read_errors, read_matrix, read_npz
from unalike.datasets.remote import RemoteFile
from unalike.datasets.safe_pickle import read_object_array
from unalike.errors import UserError

# The chain: one stream of random numbers from which the paper's splits were drawn.


PAPER_LABELLED_COUNTS = {
    "penn94": 38_815,
    "twitch-de": 9_498,
    "arxiv-year": 169_343,
    "deezer-europe": 28_281,
    "pokec": 1_632_640,
    "snap-patents": 2_923_922,
    "yelp-chi": 45_954,
}
"""Labelled nodes of each dataset, in the order in which their splits were drawn."""

NUM_SPLITS = 5


def paper_permutations(name: str) -> list[np.ndarray]:
    """The orders in which the labelled nodes of a dataset are dealt out.

    Numpy's legacy generator was seeded once with 0 and gave five permutations for each
    dataset in turn, so that those of all earlier datasets have to be drawn as well.
    """
    draw = np.random.RandomState(0)
    for member, labelled in PAPER_LABELLED_COUNTS.items():
        orders = [draw.permutation(labelled) for _ in range(NUM_SPLITS)]
        if member == name:
            return orders
    raise KeyError(name)


# The splits of a dataset: the paper's own, those of its files, or random ones.


class LoadedSplits(NamedTuple):
    """Splits, and where they come from."""

    splits: list[Split]
    origin: str


MASKS = ("train_masks", "val_masks", "test_masks")
"""The parts of the splits in Platonov's files."""

SplitLoader = Callable[[Path, Graph], LoadedSplits]
"""Gives the splits of a graph that was read from a data root."""


def default_random_splits(root: Path, graph: Graph) -> LoadedSplits:
    """Five random splits, 50/25/25, seed 0."""
    return LoadedSplits(
        random_splits(graph.labels, count=NUM_SPLITS), "random 50/25/25, seed 0"
    )


def paper_splits(name: str) -> SplitLoader:
    """The paper's five, drawn again from its stream of random numbers."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        labelled = (graph.labels >= 0).nonzero()[:, 0]
        if len(labelled) != PAPER_LABELLED_COUNTS[name]:
            return _with_reason(
                default_random_splits(root, graph),
                f"the paper's need {PAPER_LABELLED_COUNTS[name]} labelled nodes, not {len(labelled)}",
            )
        orders = paper_permutations(name)
        splits = [
            split_by_order(labelled, order, train=0.5, valid=0.25) for order in orders
        ]
        return LoadedSplits(splits, "the paper's five, drawn again")

    return split


def paper_or_random(name: str) -> SplitLoader:
    """The paper's splits if it drew some for this name, else random ones."""
    return (
        paper_splits(name) if name in PAPER_LABELLED_COUNTS else default_random_splits
    )


def splits_from_npy(file: RemoteFile) -> SplitLoader:
    """The paper's, from the file that its authors ship."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        if path := file.find(root):
            return LoadedSplits(
                read_shipped(path, graph.num_nodes), f"the paper's, {file.path}"
            )
        return _with_reason(
            default_random_splits(root, graph), f"{file.path} is not there"
        )

    return split


def splits_in_archive(file: RemoteFile) -> SplitLoader:
    """Those that lie in the same archive as the graph, if it has any."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        path = file.require(root)
        if set(MASKS) <= npz_names(path):
            return LoadedSplits(
                read_mask_rows(path, graph.labels), "those beside the graph"
            )
        return _with_reason(default_random_splits(root, graph), f"{file.path} has none")

    return split


def splits_from_masks(files: Sequence[RemoteFile]) -> SplitLoader:
    """geom-gcn's ten, 48/32/20, one file of masks each."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        paths = [path for file in files if (path := file.find(root))]
        if len(paths) == len(files):
            return LoadedSplits([read_masks(path) for path in paths], "geom-gcn's ten")
        drawn = random_splits(graph.labels, count=10, train=0.48, valid=0.32)
        told = LoadedSplits(drawn, "random 48/32/20, seed 0")
        return _with_reason(told, "the files of geom-gcn's splits are not there")

    return split


def ogb_splits(files: Sequence[RemoteFile]) -> SplitLoader:
    """OGB's one official split: a file of ids for each part."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        paths = [file.find(root) for file in files]
        held = [read_matrix(path).ravel() for path in paths if path]
        if len(held) == len(files):
            return LoadedSplits(
                [Split(*map(torch.from_numpy, held))], "OGB's official split"
            )
        return _with_reason(
            default_random_splits(root, graph), "OGB's split files are not there"
        )

    return split


def read_shipped(path: Path, num_nodes: int) -> list[Split]:
    """The splits in one of the authors' files: a dict of id lists for each."""
    splits = []
    for place, held in enumerate(read_object_array(path)):
        with read_errors(path):
            parts = [np.asarray(held[part], np.int64) for part in PARTS]
        ids = np.concatenate(parts)
        outside = len(ids) and (ids.min() < 0 or ids.max() >= num_nodes)
        if outside or len(np.unique(ids)) < len(ids):
            raise UserError(
                f"{path}: split {place} does not cut {num_nodes} nodes into three."
            )
        splits.append(Split(*map(torch.from_numpy, parts)))
    return splits


def read_masks(path: Path) -> Split:
    """The split in one of geom-gcn's files: a mask for each part."""
    return _from_masks(read_npz(path, "train_mask", "val_mask", "test_mask"))


def read_mask_rows(path: Path, labels: Int[Tensor, " nodes"]) -> list[Split]:
    """The splits in one of Platonov's files: a row of masks for each.

    Unlabelled nodes are left out; they can neither teach nor be graded.
    """
    held = read_npz(path, *MASKS)
    known = (labels >= 0).numpy()
    with read_errors(path):
        parts = [_mask_rows(masks, len(known)) for masks in held]
        if (np.sum(parts, axis=0) > 1).any():
            raise ValueError("a split has a node in two of its parts")
        return [
            _from_masks(row)
            for row in zip(*(known & part for part in parts), strict=True)
        ]


def _mask_rows(masks: np.ndarray, num_nodes: int) -> np.ndarray:
    """Masks as one row per split, whether there is one, or a row or a column each."""
    rows = np.atleast_2d(masks).astype(bool)
    if rows.shape[1] != num_nodes:
        rows = rows.T
    if rows.ndim != 2 or rows.shape[1] != num_nodes:
        raise ValueError(
            f"it has {num_nodes} nodes and masks of the shape {masks.shape}"
        )
    return rows


def _from_masks(masks: Sequence[np.ndarray]) -> Split:
    return Split(*(torch.from_numpy(part.nonzero()[0]) for part in masks))


def _with_reason(told: LoadedSplits, reason: str) -> LoadedSplits:
    return told._replace(origin=f"{told.origin} ({reason})")
