"""`ViewTable`: the views of one task, in every context of hidden labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.data.task import Task, one_hot_labels
from unalike.views import group_of
from unalike.views.blocks import CHUNK, Block, empty_columns, store_columns
from unalike.views.cross_fit import Base
from unalike.views.folds import Folds, Hidden, hide_each_fold, own_context
from unalike.views.graph_views import GRAPH_VIEWS
from unalike.views.label_views import LABEL_VIEWS, Neighbourhoods
from unalike.views.rows import KnownGraph


@dataclass(frozen=True, eq=False)
class SharedViews:
    """What all tasks of a graph share: walks from rows, and views without labels."""

    near: Neighbourhoods
    blocks: Mapping[str, Block]
    groups: tuple[str, ...]
    """Groups of views to make, those of labels too."""
    bases: Sequence[Base] = ()
    """Base models whose log probabilities are views."""

    @classmethod
    def of(
        cls,
        graph: Graph,
        groups: Collection[str],
        hops: int,
        device: torch.device | str = "cpu",
    ) -> SharedViews:
        """The views of all nodes of a graph in some groups."""
        known = KnownGraph.of(graph, hops, device)
        return cls.at(Neighbourhoods.of(known, groups), groups)

    @classmethod
    def at(cls, near: Neighbourhoods, groups: Collection[str]) -> SharedViews:
        """The views of the rows of a neighbourhood."""
        blocks: dict[str, Block] = {}
        for name, view in GRAPH_VIEWS.items():
            if name in groups:
                blocks |= view(near.known, near.rows)
        return cls(near, blocks, tuple(groups))

    def row_folds(self, folds: Folds) -> Folds:
        """The folds of the rows, given those of the graph."""
        return replace(folds, fine=self.near.rows.folds(folds.fine))

    def select(self, groups: Collection[str]) -> SharedViews:
        return replace(
            self, blocks=blocks_of(self.blocks, groups), groups=tuple(groups)
        )

    def label_blocks(
        self, labels: Float[Tensor, "nodes contexts classes"]
    ) -> dict[str, Block]:
        blocks: dict[str, Block] = {}
        for name, view in LABEL_VIEWS.items():
            if name in self.groups:
                blocks |= view(self.near, labels)
        return blocks


@dataclass(frozen=True, eq=False)
class ViewTable:
    """The views of one task: a row per node, in every context of hidden labels.

    A row of fold f is read in context f, in which no label of fold f exists. Rows of
    nodes without a known label may be read in any context.
    """

    blocks: Mapping[str, Block]
    folds: Folds

    @classmethod
    def of(cls, shared: SharedViews, task: Task, folds: Folds) -> ViewTable:
        """The views with the labels of all train nodes but those of the own fold."""
        labels = one_hot_labels(task, task.train)
        contexts = hide_each_fold(labels, folds.fine, folds.num_fine)
        blocks = {**shared.blocks, **shared.label_blocks(contexts)}
        return cls(blocks, shared.row_folds(folds))

    @classmethod
    def without_folds(
        cls, shared: SharedViews, task: Task, folds: Folds, hidden: Hidden
    ) -> ViewTable:
        """The views if no label of some coarse folds was known, in own contexts alone.

        Its label views have one context: the own one of each row.
        """
        inner = folds.inner(hidden)
        labels = one_hot_labels(task, folds.known(task.train, hidden))
        contexts = hide_each_fold(labels, inner, folds.num_fine)
        own = shared.row_folds(folds).inner(hidden)
        joined = {
            name: replace(block, values=store_columns(own_context(block.values, own)))
            for name, block in shared.label_blocks(contexts).items()
        }
        return cls({**shared.blocks, **joined}, shared.row_folds(folds))

    def with_blocks(self, blocks: Mapping[str, Block]) -> ViewTable:
        return replace(self, blocks={**self.blocks, **blocks})

    def select(self, groups: Collection[str]) -> ViewTable:
        return replace(self, blocks=blocks_of(self.blocks, groups))

    @property
    def widths(self) -> list[int]:
        return [block.width for block in self.blocks.values()]

    @property
    def groups(self) -> list[str]:
        """The groups that have a view."""
        return list(dict.fromkeys(map(group_of, self.blocks)))

    def rows(
        self, ids: Ids, context: Int[Tensor, " ids"] | int | None = None
    ) -> Float[Tensor, "ids columns"]:
        """The columns of some nodes, in their own context unless another is given."""
        fine = self.folds.fine[ids]
        if context is not None:
            fine = torch.as_tensor(context).expand(len(ids))
        result = empty_columns((len(ids), sum(self.widths)))
        for low in range(0, len(ids), CHUNK):
            part = slice(low, low + CHUNK)
            columns = [b.rows(ids[part], fine[part]) for b in self.blocks.values()]
            torch.cat(columns, 1, out=result[part])
        return result

    def column_names(self) -> list[str]:
        """A name for each column: the view, and what the column holds."""
        return [
            f"{name}:{column}"
            for name, block in self.blocks.items()
            for column in block.column_names()
        ]


def blocks_of(blocks: Mapping[str, Block], groups: Collection[str]) -> dict[str, Block]:
    """The blocks of some groups."""
    return {name: block for name, block in blocks.items() if group_of(name) in groups}
