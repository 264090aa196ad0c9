"""The splits of a dataset: the paper's own, those of its files, or random ones."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from unalike.datasets.chain import CHAIN, SPLITS, permutations
from unalike.datasets.reading import blaming, read_npz, read_numbers
from unalike.datasets.remote import Remote
from unalike.datasets.unpickle import read_object_array
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.split import PARTS, Split, cut, random_splits


class Told(NamedTuple):
    """Splits, and where they come from."""

    splits: list[Split]
    origin: str


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
            return Told(read_shipped(path, graph.num_nodes), f"the paper's, {file.path}")
        return _instead(at_random(root, graph), f"{file.path} is not there")

    return split


def masked(files: Sequence[Remote]) -> Splitter:
    """geom-gcn's ten, 48/32/20, one file of masks each."""

    def split(root: Path, graph: Graph) -> Told:
        paths = [file.find(root) for file in files]
        held = [read_npz(path) for path in paths if path]
        if len(held) == len(files):
            keys = ("train_mask", "val_mask", "test_mask")
            return Told([_from_masks(masks, keys) for masks in held], "geom-gcn's ten")
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


def _from_masks(held: dict[str, np.ndarray], keys: tuple[str, ...]) -> Split:
    return Split(*(torch.from_numpy(held[key].nonzero()[0]) for key in keys))


def from_mask_rows(held: dict[str, np.ndarray]) -> list[Split]:
    """Platonov's splits: a row of masks for each, beside the graph."""
    keys = ("train_masks", "val_masks", "test_masks")
    count = len(held[keys[0]])
    rows = [{key: held[key][place] for key in keys} for place in range(count)]
    return [_from_masks(row, keys) for row in rows]


def _instead(told: Told, reason: str) -> Told:
    return told._replace(origin=f"{told.origin} ({reason})")
