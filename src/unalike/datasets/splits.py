"""The splits of a dataset: the paper's own, those of its files, or random ones."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.datasets.chain import CHAIN, SPLITS, permutations
from unalike.datasets.reading import blaming, names_in, read_npz, read_numbers
from unalike.datasets.remote import Remote
from unalike.datasets.unpickle import read_object_array
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.split import PARTS, Split, cut, random_splits


class Told(NamedTuple):
    """Splits, and where they come from."""

    splits: list[Split]
    origin: str


MASKS = ("train_masks", "val_masks", "test_masks")
"""The parts of the splits in Platonov's files."""

Splitter = Callable[[Path, Graph], Told]
"""Gives the splits of a graph that was read from a data root."""


def at_random(root: Path, graph: Graph) -> Told:
    """Five random splits, 50/25/25, seed 0."""
    return Told(random_splits(graph.labels, count=SPLITS), "random 50/25/25, seed 0")


def chained(name: str) -> Splitter:
    """The paper's five, drawn again from its stream of random numbers."""

    def split(root: Path, graph: Graph) -> Told:
        labelled = (graph.labels >= 0).nonzero()[:, 0]
        if len(labelled) != CHAIN[name]:
            return _instead(
                at_random(root, graph),
                f"the paper's need {CHAIN[name]} labelled nodes, not {len(labelled)}",
            )
        orders = permutations(name)
        splits = [cut(labelled, order, train=0.5, valid=0.25) for order in orders]
        return Told(splits, "the paper's five, drawn again")

    return split


def by_name(name: str) -> Splitter:
    """The paper's splits if it drew some for this name, else random ones."""
    return chained(name) if name in CHAIN else at_random


def shipped(file: Remote) -> Splitter:
    """The paper's, from the file that its authors ship."""

    def split(root: Path, graph: Graph) -> Told:
        if path := file.find(root):
            return Told(
                read_shipped(path, graph.num_nodes), f"the paper's, {file.path}"
            )
        return _instead(at_random(root, graph), f"{file.path} is not there")

    return split


def beside(file: Remote) -> Splitter:
    """Those that lie in the same archive as the graph, if it has any."""

    def split(root: Path, graph: Graph) -> Told:
        path = file.at(root)
        if set(MASKS) <= names_in(path):
            return Told(read_mask_rows(path, graph.labels), "those beside the graph")
        return _instead(at_random(root, graph), f"{file.path} has none")

    return split


def masked(files: Sequence[Remote]) -> Splitter:
    """geom-gcn's ten, 48/32/20, one file of masks each."""

    def split(root: Path, graph: Graph) -> Told:
        paths = [path for file in files if (path := file.find(root))]
        if len(paths) == len(files):
            return Told([read_masks(path) for path in paths], "geom-gcn's ten")
        drawn = random_splits(graph.labels, count=10, train=0.48, valid=0.32)
        told = Told(drawn, "random 48/32/20, seed 0")
        return _instead(told, "the files of geom-gcn's splits are not there")

    return split


def official(files: Sequence[Remote]) -> Splitter:
    """OGB's one official split: a file of ids for each part."""

    def split(root: Path, graph: Graph) -> Told:
        paths = [file.find(root) for file in files]
        held = [read_numbers(path).ravel() for path in paths if path]
        if len(held) == len(files):
            return Told([Split(*map(torch.from_numpy, held))], "OGB's official split")
        return _instead(at_random(root, graph), "OGB's split files are not there")

    return split


def read_shipped(path: Path, num_nodes: int) -> list[Split]:
    """The splits in one of the authors' files: a dict of id lists for each."""
    splits = []
    for place, held in enumerate(read_object_array(path)):
        with blaming(path):
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
    with blaming(path):
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


def _instead(told: Told, reason: str) -> Told:
    return told._replace(origin=f"{told.origin} ({reason})")
