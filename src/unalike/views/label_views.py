"""Views of known labels: histograms along walks, and of nodes with equal rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.equal_rows import equal_rows, group_numbers
from unalike.data.graph import Graph
from unalike.views.blocks import COARSE, Block
from unalike.views.walks import Walks

MIN_DUPLICATES = 0.02
"""Share of nodes with an equal row from which duplicates are a view."""
BANDS, HASHES_PER_BAND = 4, 4
"""Bands of MinHash: two neighbour sets with Jaccard similarity s share one of them with
probability 1 - (1 - s^4)^4."""
MIN_PROBABILITY = 1e-3

Contexts = Float[Tensor, "nodes contexts classes"]


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """What label views need of a graph: its walks, and groups of nodes alike."""

    walks: Walks
    equal_rows: Mapping[str, Int[Tensor, " nodes"]]
    similar_rows: Mapping[str, Int[Tensor, " nodes"]]

    @classmethod
    def of(cls, graph: Graph, walks: Walks, *, similar: bool) -> Neighbourhoods:
        """Groups by equal, and if asked by similar, neighbour sets and features."""
        matrices = {
            step: matrix for step, matrix in walks.matrices.items() if step in "oia"
        }
        rows = dict(matrices)
        if isinstance(graph.features, Adjacency):
            rows["x"] = graph.features
        elif graph.num_features:
            dense = graph.features.float().numpy()
            rows["x"] = Adjacency.from_scipy(scipy.sparse.csr_array(dense))
        groups = {name: equal_rows(matrix) for name, matrix in rows.items()}
        repeated = {
            name: group
            for name, group in groups.items()
            if duplicate_share(group) > MIN_DUPLICATES
        }
        near = {}
        if similar:
            near = {
                f"{name}{band}": group
                for name, matrix in matrices.items()
                for band, group in enumerate(min_hash_groups(matrix))
            }
        return cls(walks, repeated, near)


def duplicate_share(group: Int[Tensor, " nodes"]) -> float:
    """The share of nodes that are not the only one of their group."""
    return float((group.bincount()[group] > 1).float().mean()) if len(group) else 0.0


def min_hash_groups(matrix: Adjacency) -> list[Int[Tensor, " rows"]]:
    """Groups of rows by each band of MinHash (Broder 1997); empty rows are alone."""
    rng = np.random.default_rng(1)
    indptr, indices = matrix.indptr.numpy(), matrix.indices.numpy()
    filled = np.flatnonzero(np.diff(indptr))
    groups = []
    for _ in range(BANDS):
        keys = np.zeros((matrix.num_rows, HASHES_PER_BAND + 1), np.uint64)
        keys[:, -1] = np.arange(1, matrix.num_rows + 1)
        for column in range(HASHES_PER_BAND):
            order = rng.permutation(matrix.num_cols).astype(np.uint64)[indices]
            if len(filled):
                keys[filled, column] = np.minimum.reduceat(order, indptr[filled])
        keys[filled, -1] = 0
        groups.append(torch.from_numpy(group_numbers(keys)))
    return groups


def label_histograms(near: Neighbourhoods, labels: Contexts) -> dict[str, Block]:
    """Known labels at the ends of each walk, by class."""
    shape = labels.shape[1:]
    return {
        f"labels:{walk.name}": Block(total.unflatten(1, shape), histogram=True)
        for walk, total in near.walks.sums(labels.flatten(1))
    }


def duplicates(near: Neighbourhoods, labels: Contexts) -> dict[str, Block]:
    """Known labels of the nodes with the same neighbours or the same features."""
    return {
        f"duplicates:{name}": Block(_group_sums(group, labels), histogram=True)
        for name, group in near.equal_rows.items()
    }


def near_duplicates(near: Neighbourhoods, labels: Contexts) -> dict[str, Block]:
    """Known labels of the nodes with similar neighbours, by MinHash."""
    return {
        f"near-duplicates:{name}": Block(_group_sums(group, labels), histogram=True)
        for name, group in near.similar_rows.items()
    }


def _group_sums(group: Int[Tensor, " nodes"], labels: Contexts) -> Contexts:
    """The sum over the group of each node.

    A node's own label needs no removal: in its own context it is hidden.
    """
    sums = labels.new_zeros(int(group.max()) + 1, *labels.shape[1:])
    return sums.index_add(0, group, labels)[group]


LabelView = Callable[[Neighbourhoods, Contexts], dict[str, Block]]

LABEL_VIEWS: dict[str, LabelView] = {
    "labels": label_histograms,
    "duplicates": duplicates,
    "near-duplicates": near_duplicates,
}
"""Groups of views made from known labels. To add one: a function and a line here."""


def guess_views(
    walks: Walks, probabilities: Contexts, guesses: Contexts
) -> dict[str, Block]:
    """Second round: histograms of labels where known and probabilities elsewhere.

    With them the log probability that no neighbour is of a class, and the own guess.
    """
    contexts = probabilities.shape[1:]
    none = (1 - probabilities).clamp(min=MIN_PROBABILITY).log()
    blocks = {"guesses": Block(guesses, fine_per_context=COARSE)}
    for walk, total in walks.sums(probabilities.flatten(1)):
        own = walks.returning[walk][:, None, None] * probabilities
        others = (total.unflatten(1, contexts) - own).clamp(min=0)
        blocks[f"guesses:{walk.name}"] = Block(
            others, histogram=True, fine_per_context=COARSE
        )
    one_step = [walk for walk in walks.along_edges if len(walk.steps) == 1]
    for walk, total in walks.sums(none.flatten(1), one_step):
        blocks[f"guesses:none:{walk.name}"] = Block(
            total.unflatten(1, contexts), fine_per_context=COARSE
        )
    return blocks
