"""Folds of nodes for cross-fitting: labels of a fold are hidden from its own rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unalike.data.adjacency import Ids

Hidden = frozenset[int]
"""Coarse folds whose labels are hidden."""
NO_FOLDS: Hidden = frozenset()


@dataclass(frozen=True, eq=False)
class Folds:
    """The fold of every node.

    Label histograms hide one of `2 * count` fine folds; base methods and the second
    round hide one of `count` coarse folds, which are two fine folds each. The fold of a
    node is drawn from its position and the seed alone: it depends neither on labels nor
    on the split, so that no row can depend on its own label through the folds.
    """

    fine: Int[Tensor, " nodes"]
    count: int

    @classmethod
    def draw(cls, num_nodes: int, count: int, seed: int) -> Folds:
        """Random folds of equal size."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(num_nodes, generator=generator)
        fine = torch.empty(num_nodes, dtype=torch.int64)
        fine[order] = torch.arange(num_nodes) % (2 * count)
        return cls(fine, count)

    @property
    def num_fine(self) -> int:
        return 2 * self.count

    @property
    def coarse(self) -> Int[Tensor, " nodes"]:
        return self.fine // 2

    def known(self, ids: Ids, hidden: Hidden) -> Ids:
        """The nodes outside the hidden coarse folds."""
        return ids[~torch.isin(self.coarse[ids], torch.tensor(sorted(hidden)))]

    def without(self, ids: Ids, hidden: Hidden) -> tuple[Ids, Ids]:
        """Train nodes outside the hidden coarse folds: to fit, and to stop early by."""
        known = self.known(ids, hidden)
        stop = self.fine[known] == 2 * self.stand_in(0, hidden)
        return known[~stop], known[stop]

    def stand_in(self, fold: int, hidden: Hidden) -> int:
        """The fold itself, or for a hidden one the next that is not hidden."""
        while fold in hidden:
            fold = (fold + 1) % self.count
        return fold

    def contexts(self, hidden: Hidden) -> list[Hidden]:
        """For each coarse fold, the folds that its rows hide; rows of a hidden fold
        are read like those of the next one."""
        folds = range(self.count)
        return [hidden | {self.stand_in(fold, hidden)} for fold in folds]

    def inner(self, hidden: Hidden) -> Int[Tensor, " nodes"]:
        """The fine folds inside the visible coarse folds: nodes of a hidden one are
        read like those of the next."""
        folds = [self.stand_in(fold, hidden) for fold in range(self.count)]
        return 2 * torch.tensor(folds)[self.coarse] + self.fine % 2


def hide_each_fold(
    labels: Float[Tensor, "nodes classes"], fold: Int[Tensor, " nodes"], num_folds: int
) -> Float[Tensor, "nodes folds classes"]:
    """The labels in each context: context f has those of all folds but f."""
    visible: Bool[Tensor, "nodes folds"] = fold[:, None] != torch.arange(num_folds)
    return labels[:, None, :] * visible[:, :, None]


def own_context(
    values: Float[Tensor, "nodes contexts width"], context: Int[Tensor, " nodes"]
) -> Float[Tensor, "nodes width"]:
    """Each row as its own context has it."""
    return values[torch.arange(len(values)), context]
