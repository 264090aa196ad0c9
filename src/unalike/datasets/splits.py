"""Train, valid and test splits of the LINKX paper, OGB, geom-gcn and Platonov."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

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

PAPER_LABELLED_COUNTS = {
    "penn94": 38_815,
    "twitch-de": 9_498,
    "arxiv-year": 169_343,
    "deezer-europe": 28_281,
    "pokec": 1_632_640,
    "snap-patents": 2_923_922,
    "yelp-chi": 45_954,
}
"""Labelled nodes of each dataset, in the order in which the paper sampled splits."""

NUM_SPLITS = 5


LoadedSplits = tuple[list[Split], str]
"""Splits, and a text about their origin."""
MASKS = ("train_masks", "val_masks", "test_masks")
"""Array names of the splits in .npz files of Platonov et al."""

SplitLoader = Callable[[Path, Graph], LoadedSplits]
"""Loads the splits of a graph that was read from a data root."""


def default_random_splits(root: Path, graph: Graph, reason: str = "") -> LoadedSplits:
    """Five random splits of 50/25/25 percent with seed 0; `reason` says why."""
    splits = random_splits(graph.labels, count=NUM_SPLITS)
    return splits, f"random 50/25/25, seed 0{reason and f' ({reason})'}"


def paper_splits(name: str) -> SplitLoader:
    """The five splits of the LINKX paper, sampled with its random generator."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        labelled = (graph.labels >= 0).nonzero()[:, 0]
        expected = PAPER_LABELLED_COUNTS[name]
        if len(labelled) != expected:
            reason = f"the paper's need {expected} labelled nodes, not {len(labelled)}"
            return default_random_splits(root, graph, reason)
        splits = [
            split_by_order(labelled, permutation, train=0.5, valid=0.25)
            for permutation in paper_permutations(name)
        ]
        return splits, "the paper's five"

    return split


def paper_or_random(name: str) -> SplitLoader:
    """The splits of the LINKX paper if it has some for this name, else random ones."""
    known = name in PAPER_LABELLED_COUNTS
    return paper_splits(name) if known else default_random_splits


def splits_from_npy(file: RemoteFile) -> SplitLoader:
    """The splits of the LINKX paper, from the .npy file of its authors."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        if path := file.find(root):
            splits = read_npy_splits(path, graph.num_nodes)
            return splits, f"the paper's, {file.path}"
        return default_random_splits(root, graph, f"{file.path} is missing")

    return split


def splits_in_archive(file: RemoteFile) -> SplitLoader:
    """The splits in the .npz file of the graph, if it has any."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        path = file.require(root)
        if set(MASKS) <= npz_names(path):
            splits = read_npz_splits(path, graph.labels)
            return splits, f"those of {file.path}"
        return default_random_splits(root, graph, f"{file.path} has none")

    return split


def splits_from_masks(files: Sequence[RemoteFile]) -> SplitLoader:
    """The ten splits of geom-gcn, 48/32/20 percent, one file of masks each."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        paths = [path for file in files if (path := file.find(root))]
        if len(paths) == len(files):
            splits = [read_mask_split(path, graph.num_nodes) for path in paths]
            return splits, "geom-gcn's ten"
        splits = random_splits(graph.labels, count=10, train=0.48, valid=0.32)
        reason = "the files of geom-gcn's splits are missing"
        return splits, f"random 48/32/20, seed 0 ({reason})"

    return split


def ogb_splits(files: Sequence[RemoteFile]) -> SplitLoader:
    """The official split of OGB: a file of node ids for each part."""

    def split(root: Path, graph: Graph) -> LoadedSplits:
        paths = [path for file in files if (path := file.find(root))]
        if len(paths) == len(files):
            parts = [read_matrix(path).ravel() for path in paths]
            official = checked_split(parts, graph.num_nodes, paths[0].parent)
            return [official], "OGB's official split"
        return default_random_splits(root, graph, "OGB's split files are missing")

    return split


def paper_permutations(name: str) -> list[np.ndarray]:
    """The permutations of the labelled nodes behind the splits of the LINKX paper.

    NumPy's legacy generator was seeded once with 0 and gave five permutations for each
    dataset in turn, so that those of all earlier datasets have to be sampled as well.
    """
    rng = np.random.RandomState(0)
    for dataset, num_labelled in PAPER_LABELLED_COUNTS.items():
        permutations = [rng.permutation(num_labelled) for _ in range(NUM_SPLITS)]
        if dataset == name:
            return permutations
    raise KeyError(name)


def read_npy_splits(path: Path, num_nodes: int) -> list[Split]:
    """Read splits from a .npy file of the LINKX authors: a dict of ids for each."""
    splits = []
    with read_errors(path):
        for index, ids_by_part in enumerate(read_object_array(path)):
            parts = [np.asarray(ids_by_part[part], np.int64) for part in PARTS]
            splits.append(checked_split(parts, num_nodes, f"{path}: split {index}"))
    return splits


def checked_split(
    parts: Sequence[np.ndarray], num_nodes: int, name: Path | str
) -> Split:
    """The split of these ids; raises if one is out of range or in it twice."""
    ids = np.concatenate(parts)
    out_of_range = len(ids) and (ids.min() < 0 or ids.max() >= num_nodes)
    if out_of_range or len(np.unique(ids)) < len(ids):
        raise UserError(
            f"{name} has ids out of range or twice; the graph has {num_nodes} nodes. "
            "Is it the split of another graph?"
        )
    return Split(*map(torch.from_numpy, parts))


def read_mask_split(path: Path, num_nodes: int) -> Split:
    """Read the split in a file of geom-gcn: a mask for each part."""
    masks = read_npz(path, "train_mask", "val_mask", "test_mask")
    if any(mask.shape != (num_nodes,) for mask in masks):
        raise UserError(
            f"{path} has masks of {masks[0].size} nodes; the graph has {num_nodes}. "
            "Is it the split of another graph?"
        )
    return checked_split([mask.nonzero()[0] for mask in masks], num_nodes, path)


def read_npz_splits(path: Path, labels: Int[Tensor, " nodes"]) -> list[Split]:
    """Read the labelled nodes of the splits in a file of Platonov et al."""
    arrays = read_npz(path, *MASKS)
    labelled = (labels >= 0).numpy()
    with read_errors(path):
        parts = [_one_mask_per_row(masks, len(labelled)) for masks in arrays]
        if (np.sum(parts, axis=0) > 1).any():
            raise ValueError("a split has a node in two of its parts")
        return [
            Split(*(torch.from_numpy(mask.nonzero()[0]) for mask in masks))
            for masks in zip(*(labelled & part for part in parts), strict=True)
        ]


def _one_mask_per_row(masks: np.ndarray, num_nodes: int) -> np.ndarray:
    """Masks as one row per split, from a single mask, or from rows or columns."""
    rows = np.atleast_2d(masks).astype(bool)
    if rows.shape[1] != num_nodes:
        rows = rows.T
    if rows.ndim != 2 or rows.shape[1] != num_nodes:
        raise ValueError(
            f"it has {num_nodes} nodes and masks of the shape {masks.shape}"
        )
    return rows
