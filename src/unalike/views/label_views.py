"""Views of known labels: histograms along walks, and of nodes with equal rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.equal_rows import equal_dense_rows, equal_rows, group_numbers
from unalike.views.blocks import COARSE, Block, store_columns
from unalike.views.rows import KnownGraph, NodeRows
from unalike.views.walks import Walks

MIN_DUPLICATES = 0.02
"""Share of nodes with an equal row from which duplicates are a view."""
BANDS, HASHES_PER_BAND = 4, 4
"""Bands of MinHash: two neighbour sets with Jaccard similarity s share one of them with
probability 1 - (1 - s^4)^4."""
MIN_PROBABILITY = 1e-3

Contexts = Float[Tensor, "nodes contexts classes"]


Groups = tuple[Int[Tensor, " nodes"], Int[Tensor, " rows"]]
"""The group of each node of the known graph, and of each row."""


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """What label views need of rows: walks from them, and groups of nodes alike."""

    known: KnownGraph
    rows: NodeRows
    equal: Mapping[str, Groups]
    """Groups of equal rows, by what is compared."""
    similar: Mapping[str, Groups]

    @classmethod
    def of(cls, known: KnownGraph, views: Collection[str]) -> Neighbourhoods:
        """All nodes of a graph, grouped by equal, and if views need it by similar,
        neighbour sets and features."""
        rows = known.all_rows()
        groups = {step: equal_rows(rows.matrices[step]) for step in known.directions}
        x = rows.features
        if known.graph.num_features:
            group = equal_rows(x) if isinstance(x, Adjacency) else equal_dense_rows(x)
            groups["x"] = group
        similar = "near-duplicates" in views
        near = similar_groups(known.walks.matrices) if similar else {}
        return cls(
            known,
            rows,
            {
                name: (group, group)
                for name, group in groups.items()
                if duplicate_share(group) > MIN_DUPLICATES
            },
            {name: (group, group) for name, group in near.items()},
        )

    def at(self, rows: NodeRows) -> Neighbourhoods:
        """Other rows over the same graph, in the same groups."""
        count = self.known.graph.num_nodes
        known, own = (compared_rows(self.known, r) for r in (self.rows, rows))
        stacked = {name: vstack(known[name], own[name]) for name in known}
        equal = {name: equal_rows(stacked[name]) for name in self.equal}
        near = similar_groups(stacked) if self.similar else {}
        return Neighbourhoods(
            self.known,
            rows,
            {name: (group[:count], group[count:]) for name, group in equal.items()},
            {name: (group[:count], group[count:]) for name, group in near.items()},
        )


def compared_rows(known: KnownGraph, rows: NodeRows) -> dict[str, Adjacency]:
    """Rows whose equality is a view: edges by direction, and features."""
    result = {step: rows.matrices[step] for step in known.directions}
    if isinstance(rows.features, Adjacency):
        result["x"] = rows.features
    elif known.graph.num_features:
        result["x"] = Adjacency.from_dense(rows.features.float())
    return result


def similar_groups(matrices: Mapping[str, Adjacency]) -> dict[str, Tensor]:
    """Groups of rows by MinHash of their edges, one per direction and band."""
    return {
        f"{name}{band}": group
        for name, matrix in matrices.items()
        if name in "oia"
        for band, group in enumerate(min_hash_groups(matrix))
    }


def vstack(first: Adjacency, second: Adjacency) -> Adjacency:
    """The rows of one matrix above those of another."""
    both = scipy.sparse.vstack([first.to_scipy(), second.to_scipy()], format="csr")
    return Adjacency.from_scipy(both)


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
        f"labels:{walk.name}": Block(
            store_columns(total).unflatten(1, shape), histogram=True
        )
        for walk, total in near.rows.sums(near.known.walks, labels.flatten(1))
    }


def duplicates(near: Neighbourhoods, labels: Contexts) -> dict[str, Block]:
    """Known labels of the nodes with the same neighbours or the same features."""
    return {
        f"duplicates:{name}": _group_sums(*groups, labels)
        for name, groups in near.equal.items()
    }


def near_duplicates(near: Neighbourhoods, labels: Contexts) -> dict[str, Block]:
    """Known labels of the nodes with similar neighbours, by MinHash."""
    return {
        f"near-duplicates:{name}": _group_sums(*groups, labels)
        for name, groups in near.similar.items()
    }


def _group_sums(
    known: Int[Tensor, " nodes"], own: Int[Tensor, " rows"], labels: Contexts
) -> Block:
    """The sum over the known nodes in the group of each row.

    A node's own label needs no removal: in its own context it is hidden.
    """
    size = 1 + max(int(group.max()) if len(group) else 0 for group in (known, own))
    sums = labels.new_zeros(size, *labels.shape[1:])
    values = sums.index_add_(0, known, labels)[own]
    return Block(store_columns(values), histogram=True)


LabelView = Callable[[Neighbourhoods, Contexts], dict[str, Block]]

LABEL_VIEWS: dict[str, LabelView] = {
    "labels": label_histograms,
    "duplicates": duplicates,
    "near-duplicates": near_duplicates,
}
"""Groups of views made from known labels. To add one: a function and a line here."""


def guess_views(
    walks: Walks,
    rows: NodeRows,
    probabilities: Contexts,
    guesses: Float[Tensor, "rows contexts classes"],
) -> dict[str, Block]:
    """Second round: histograms of labels where known and probabilities elsewhere.

    With them the log probability that no neighbour is of a class, and the own guess.
    """
    contexts = probabilities.shape[1:]
    probabilities = probabilities.to(walks.device)
    none = (1 - probabilities).clamp(min=MIN_PROBABILITY).log()
    blocks = {"guesses": Block(store_columns(guesses), fine_per_context=COARSE)}
    for walk, total in rows.sums(walks, probabilities.flatten(1)):
        others = total.unflatten(1, contexts)
        if rows.ids is not None:
            weight = walks.returning[walk][rows.ids][:, None, None]
            others = others - weight * probabilities[rows.ids]
        blocks[f"guesses:{walk.name}"] = Block(
            store_columns(others.clamp(min=0)), histogram=True, fine_per_context=COARSE
        )
    one_step = [walk for walk in walks.along_edges if len(walk.steps) == 1]
    for walk, total in rows.sums(walks, none.flatten(1), one_step):
        blocks[f"guesses:none:{walk.name}"] = Block(
            store_columns(total).unflatten(1, contexts), fine_per_context=COARSE
        )
    return blocks
