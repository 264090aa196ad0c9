"""A fitted model of views: scores of new rows, and its form as named tensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Features, Graph
from unalike.data.metrics import ACCURACY
from unalike.data.task import Task, labels_of, one_hot_labels
from unalike.errors import UserError
from unalike.views import BASES, VIEWS, group_of
from unalike.views.blocks import CHUNK, Block
from unalike.views.cross_fit import Base, CrossFit, LogProbabilities, Models
from unalike.views.folds import NO_FOLDS, Folds, Hidden
from unalike.views.heads import (
    MANY_ROWS,
    BaseScores,
    ColumnScores,
    Scorer,
    Scores,
    Trees,
    prefixed,
    within,
)
from unalike.views.label_views import Neighbourhoods, guess_views
from unalike.views.linear_heads import LinearScores, score_linear_heads
from unalike.views.mlp_head import MLPHead
from unalike.views.rows import KnownGraph, NodeRows
from unalike.views.table import SharedViews, ViewTable

MANY_CONTEXTS = 3
"""Contexts in which unseen rows are scored where there are many."""
HEADS: dict[str, type[Trees] | type[MLPHead]] = {"trees": Trees, "mlp": MLPHead}
"""Heads that read columns of views, by their name in a file."""
COLUMN_HEADS: dict[str, type[ColumnScores]] = {
    "linear": LinearScores,
    "base_heads": BaseScores,
}
"""Heads whose scores are columns of a row, by their name in a file."""
ABOUT = "about"
"""The tensor with the JSON text of what is not a tensor."""


@dataclass(frozen=True, eq=False)
class Guess:
    """Trees that have not seen some folds, and their scores of the known nodes."""

    trees: Trees
    scores: Scores
    widths: list[int]
    """Columns of each view that the trees read."""


@dataclass(frozen=True, eq=False)
class FittedViews:
    """Heads and base models with the graph and the labels that views are made of."""

    task: Task
    """The graph with the labels of the train nodes alone."""
    near: Neighbourhoods
    groups: tuple[str, ...]
    rounds: int
    folds: Folds
    heads: tuple[Scorer, ...]
    widths: list[int]
    """Columns of each view that the heads read; the last ones are scores of heads."""
    mean: Float[Tensor, " columns"]
    """The mean of each column over the train rows."""
    scores: Scores
    """Those of the known nodes."""
    models: Models = field(default_factory=dict)
    """Weights of base models."""
    guesses: Mapping[Hidden, Guess] = field(default_factory=dict)
    """Scores of other rounds, by the folds that the trees have not seen."""
    bases: Sequence[Base] = ()
    """The bases that score rows, if there are views or heads of them."""

    def rows(self, batch: Graph, ids: Ids | None = None) -> NodeRows:
        """Prepared rows; with `ids` those of known nodes."""
        return self.near.known.new_rows(batch.adjacency, batch.features, ids)

    def table(self, rows: NodeRows) -> ViewTable:
        """The views of rows."""
        task, folds, near = self.task, self.folds, self.near.at(rows)
        shared = SharedViews.at(near, self.groups)
        bases = CrossFit(folds)
        for base in self.bases:
            bases.by_view |= base.score_rows(rows, self.models)

        def base_views(hidden: Hidden) -> dict[str, Block]:
            return bases.blocks(hidden) if BASES in self.groups else {}

        def guesses(hidden: Hidden) -> dict[str, Block]:
            return guess_blocks(near, task, folds, hidden, scores)

        def scores(hidden: Hidden) -> tuple[LogProbabilities, Scores]:
            guess = self.guesses[hidden]
            table = ViewTable.without_folds(shared, task, folds, hidden)
            table = table.with_blocks(base_views(hidden))
            if self.rounds - len(hidden) > 1:
                table = table.with_blocks(guesses(hidden))
            _check(table.widths == guess.widths, "columns")
            own = guess.trees(table.rows(torch.arange(rows.num_rows)))
            return guess.scores, own

        table = ViewTable.of(shared, task, folds).with_blocks(base_views(NO_FOLDS))
        if self.rounds > 1:
            table = table.with_blocks(guesses(frozenset()))
        table = table.with_blocks(column_blocks(self._head_columns(rows, bases)))
        if table.widths != self.widths:
            raise UserError("The columns of these nodes differ from those of training.")
        return table

    def score(
        self,
        table: ViewTable,
        rows: NodeRows,
        replaced: Bool[Tensor, "rows columns"] | None = None,
    ) -> Scores:
        """The scores of rows; columns that are `replaced` have the mean of training.

        A train node is read in its own context, another one in several.
        """
        known = torch.zeros(rows.num_rows, dtype=torch.bool)
        if rows.ids is not None:
            known = torch.isin(rows.ids, self.task.train)

        def change(ids: Ids, x: Tensor) -> Tensor:
            return x if replaced is None else torch.where(replaced[ids], self.mean, x)

        per_head = [
            score_table(self._on_columns(head), table, known, self.task, change)
            for head in self.heads
        ]
        return sum(per_head, torch.zeros(())) / len(per_head)

    @property
    def column_heads(self) -> list[ColumnScores]:
        """The heads whose scores are columns of a row, in the order of these."""
        return [head for head in self.heads if isinstance(head, ColumnScores)]

    def _head_columns(self, rows: NodeRows, bases: CrossFit) -> dict[str, Scores]:
        """The scores of rows by such heads, by view."""
        linear = {
            head.name: head.weights
            for head in self.column_heads
            if isinstance(head, LinearScores)
        }
        scores = {
            f"{LinearScores.group}:{name}": own
            for name, own in score_linear_heads(self.task.graph, rows, linear).items()
        }
        for name, by_hidden in bases.by_view.items():
            if NO_FOLDS in by_hidden:
                scores[f"{BaseScores.group}:{name}"] = by_hidden[NO_FOLDS]
        views = [head.view for head in self.column_heads]
        _check(set(views) <= set(scores), "heads")
        return {view: scores[view] for view in views}

    def _on_columns(self, head: Scorer) -> Callable[[Tensor], Scores]:
        """A head on whole rows, some of whose columns are scores of heads."""
        classes = self.task.graph.num_classes
        views = [own.view for own in self.column_heads]
        others = sum(self.widths) - classes * len(views)
        first, last = 0, others
        if isinstance(head, ColumnScores):
            first = others + classes * views.index(head.view)
            last = first + classes
        return lambda x: head(x[:, first:last])

    def column_groups(self, table: ViewTable) -> dict[str, Bool[Tensor, " columns"]]:
        """For each group of views, which columns of a row are its own."""
        names = [group_of(n) for n, b in table.blocks.items() for _ in range(b.width)]
        return {
            group: torch.tensor([name == group for name in names])
            for group in dict.fromkeys(names)
        }

    # The form of a file.

    def to_tensors(self) -> dict[str, Tensor]:
        """All that `from_tensors` needs besides the options of the method."""
        graph = self.task.graph
        about = {
            "groups": self.groups,
            "rounds": self.rounds,
            "folds": self.folds.count,
            "classes": graph.num_classes,
            "directed": graph.directed,
            "heads": [
                name
                for head in self.heads
                for name, kind in {**HEADS, **COLUMN_HEADS}.items()
                if isinstance(head, kind)
            ],
            **{
                name: [head.name for head in self.heads if isinstance(head, kind)]
                for name, kind in COLUMN_HEADS.items()
            },
            "widths": self.widths,
            "guess_widths": {
                str(len(hidden)): guess.widths for hidden, guess in self.guesses.items()
            },
        }
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        tensors = {
            ABOUT: torch.from_numpy(text.copy()),
            "train": self.task.train,
            "labels": labels_of(graph, self.task.train),
            "folds": self.folds.fine,
            "mean": self.mean,
            "scores": self.scores,
            **prefixed("adjacency/", _matrix_to_tensors(graph.adjacency)),
            **prefixed("features/", _matrix_to_tensors(graph.features)),
            **prefixed("vectors/", self.near.known.vectors),
        }
        for number, head in enumerate(self.heads):
            tensors |= prefixed(f"heads/{number}/", head.to_tensors())
        for view, models in self.models.items():
            for hidden, weights in models.items():
                tensors |= prefixed(f"bases/{view}/{_join(hidden)}/", weights)
        for hidden, guess in self.guesses.items():
            tensors |= prefixed(f"guesses/{_join(hidden)}/", guess.trees.to_tensors())
            tensors[f"guess_scores/{_join(hidden)}"] = guess.scores
        return {name: tensor.detach().cpu() for name, tensor in tensors.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], hops: int) -> FittedViews:
        """The model in named tensors, after checking sizes and indices."""
        about = json.loads(bytes(tensors[ABOUT].numpy()))
        classes, widths = int(about["classes"]), [int(w) for w in about["widths"]]
        groups = tuple(about["groups"])
        _check(set(groups) <= set(VIEWS), "groups of views")
        _check(about["folds"] > about["rounds"] >= 1, "rounds")
        train, labels, fine = (tensors[n] for n in ("train", "labels", "folds"))
        nodes = len(labels)
        adjacency = _matrix_from_tensors(within(tensors, "adjacency/"), nodes, nodes)
        features = _matrix_from_tensors(within(tensors, "features/"), nodes, None)
        _check_ids(train, nodes, "train nodes")
        _check(labels.dtype == torch.int64 and labels.ndim == 1, "labels")
        _check(bool(((labels >= -1) & (labels < classes)).all()), "labels")
        _check(bool((labels[train] >= 0).all()), "labels")
        _check_ids(fine, 2 * about["folds"], "folds")
        _check(len(fine) == nodes, "folds")
        _check(tensors["scores"].shape == (nodes, classes), "scores")
        _check(tensors["mean"].shape == (sum(widths),), "columns")
        assert isinstance(adjacency, Adjacency)
        graph = Graph.build(
            adjacency,
            features=features,
            labels=labels,
            num_classes=classes,
            directed=bool(about["directed"]),
        )
        known = KnownGraph.of(graph, hops)
        for name, vectors in within(tensors, "vectors/").items():
            wide = graph.num_features if name == "features" else nodes
            _check(vectors.ndim == 2 and len(vectors) == wide, "singular vectors")
            known.vectors[name] = vectors
        heads = _heads_from_tensors(tensors, about)
        guesses = {}
        for name, scores in within(tensors, "guess_scores/").items():
            hidden = _split(name)
            _check(scores.shape == (nodes, classes), "scores")
            own = [int(w) for w in about["guess_widths"][str(len(hidden))]]
            trees = within(tensors, f"guesses/{name}/")
            guesses[hidden] = Guess(
                Trees.from_tensors(trees, own, classes), scores, own
            )
        models: dict[str, dict[Hidden, dict[str, Tensor]]] = {}
        for name, weight in within(tensors, "bases/").items():
            view, hidden_text, part = name.split("/", 2)
            of_view = models.setdefault(view, {})
            of_view.setdefault(_split(hidden_text), {})[part] = weight
        return cls(
            task=Task(graph, train, torch.arange(0), ACCURACY),
            near=Neighbourhoods.of(known, groups),
            groups=groups,
            rounds=int(about["rounds"]),
            folds=Folds(fine, int(about["folds"])),
            heads=tuple(heads),
            widths=widths,
            mean=tensors["mean"],
            scores=tensors["scores"],
            models=models,
            guesses=guesses,
        )


def score_table(
    scorer: Callable[[Tensor], Scores],
    table: ViewTable,
    train: Bool[Tensor, " rows"],
    task: Task,
    change: Callable[[Ids, Tensor], Tensor] = lambda ids, x: x,
) -> Scores:
    """The scores of all rows of a table.

    Train rows are read in their own context. Other rows are scored in several contexts
    and the log probabilities averaged. `change` may alter the columns of rows.
    """
    scores = torch.zeros(len(train), task.graph.num_classes)
    # One fine fold of each coarse fold, or of a few where rows are many.
    many = len(task.train) > MANY_ROWS
    contexts = range(0, 2 * (MANY_CONTEXTS if many else table.folds.count), 2)
    for ids in (~train).nonzero()[:, 0].split(CHUNK):
        for context in contexts:
            x = change(ids, table.rows(ids, context))
            scores[ids] += scorer(x) / len(contexts)
    for ids in train.nonzero()[:, 0].split(CHUNK):
        scores[ids] = scorer(change(ids, table.rows(ids)))
    return scores


def guess_blocks(
    near: Neighbourhoods,
    task: Task,
    folds: Folds,
    hidden: Hidden,
    scores: Callable[[Hidden], tuple[LogProbabilities, Scores]],
) -> dict[str, Block]:
    """The views of guesses where some folds are hidden, one context per fold.

    `scores` gives the scores of the known nodes and of the rows by trees that have not
    seen some folds. Where the label of a known node is hidden, it has probabilities.
    """
    contexts = folds.contexts(hidden)
    soft, own = {}, {}
    for context in dict.fromkeys(contexts):
        of_known, own[context] = scores(context)
        soft[context] = of_known.softmax(1)
        known = folds.known(task.train, context)
        soft[context][known] = one_hot_labels(task, known)[known]
    return guess_views(
        near.known.walks,
        near.rows,
        torch.stack([soft[context] for context in contexts], 1),
        torch.stack([own[context] for context in contexts], 1),
    )


def column_blocks(scores: Mapping[str, Scores]) -> dict[str, Block]:
    """The scores of heads as the last views of a row."""
    return {view: Block(own) for view, own in scores.items()}


def _heads_from_tensors(
    tensors: Mapping[str, Tensor], about: Mapping[str, Any]
) -> list[Scorer]:
    """The heads of a file; an older one does not name heads that it cannot have."""
    classes, widths = int(about["classes"]), [int(width) for width in about["widths"]]
    names = {kind: list(about.get(kind, [])) for kind in COLUMN_HEADS}
    kinds, count = list(about["heads"]), sum(map(len, names.values()))
    _check(len(kinds) > 0, "heads")
    _check(all(kinds.count(kind) == len(own) for kind, own in names.items()), "heads")
    own = len(widths) - count
    _check(own >= 0 and widths[own:] == [classes] * count, "heads")
    heads: list[Scorer] = []
    for number, kind in enumerate(kinds):
        part = within(tensors, f"heads/{number}/")
        if kind in COLUMN_HEADS:
            name = names[kind].pop(0)
            heads.append(COLUMN_HEADS[kind].from_tensors(part, name, classes))
        else:
            heads.append(HEADS[kind].from_tensors(part, widths[:own], classes))
    return heads


def _join(hidden: Hidden) -> str:
    return "-".join(map(str, sorted(hidden)))


def _split(text: str) -> Hidden:
    return frozenset(map(int, text.split("-"))) if text else NO_FOLDS


def _matrix_to_tensors(matrix: Features) -> dict[str, Tensor]:
    if not isinstance(matrix, Adjacency):
        return {"dense": matrix}
    tensors = {"indptr": matrix.indptr, "indices": matrix.indices}
    tensors["num_cols"] = torch.tensor(matrix.num_cols)
    return tensors if matrix.values is None else {**tensors, "values": matrix.values}


def _matrix_from_tensors(
    tensors: Mapping[str, Tensor], num_rows: int, num_cols: int | None
) -> Features:
    """A matrix after checking its sizes and indices."""
    if "dense" in tensors and num_cols is None:
        dense = tensors["dense"]
        _check(dense.ndim == 2 and len(dense) == num_rows, "features")
        _check(dense.is_floating_point(), "features")
        return dense
    indptr, indices, values = (tensors.get(n) for n in ("indptr", "indices", "values"))
    width = int(tensors["num_cols"])
    assert indptr is not None and indices is not None
    integers = (torch.int32, torch.int64)
    _check(indptr.dtype == torch.int64 and indices.dtype in integers, "edges")
    _check(indptr.shape == (num_rows + 1,) and indices.ndim == 1, "edges")
    _check(num_cols in (None, width), "edges")
    _check(int(indptr[0]) == 0 and int(indptr[-1]) == len(indices), "edges")
    _check(bool((indptr.diff() >= 0).all()), "edges")
    _check_ids(indices.long(), width, "edges")
    _check(values is None or values.shape == indices.shape, "edges")
    return Adjacency(indptr, indices, width, values)


def _check_ids(ids: Tensor, size: int, what: str) -> None:
    _check(ids.dtype == torch.int64 and ids.ndim == 1, what)
    _check(bool(((ids >= 0) & (ids < size)).all()), what)


def _check(right: bool, what: str) -> None:
    if not right:
        raise ValueError(f"its {what} have wrong sizes or numbers")
