"""Explain a prediction: gradient x input and leave-one-out of neighbours and features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.importing.features import FeatureEncoder
from unalike.inference.model import Model
from unalike.nn.sparse_linear import (
    Products,
    forward_with,
    sparse_layers,
    sparse_products,
)

# Case: one node taken apart into what its inputs add to a prediction.


CHUNK_SIZE = 1 << 12
"""Inputs that are taken away in one pass, each from a copy of the node."""

Numbers = Float[Tensor, " inputs"]


@dataclass(frozen=True, eq=False)
class InputAttributions:
    """Inputs of one kind, and what they did to the log-odds."""

    of_edges: bool
    columns: Int[Tensor, " inputs"]
    values: Numbers
    gradient_times_input: Numbers
    """Slope times vector: with those of all parts and a rest, the log-odds."""
    leave_one_out: Numbers
    """What the log-odds would lose without the input."""


@dataclass(frozen=True, eq=False)
class NodeAttribution:
    """A prepared row, and the two classes whose log-odds are in question."""

    network: nn.Module
    row: Graph
    classes: tuple[int, int]
    temperature: float = 1.0

    @cached_property
    def first(self) -> Products:
        """The outputs of the `SparseLinear` layers for the row."""
        return sparse_products(self.network, self.row)

    def log_odds_of(self, rows: Graph, first: Products) -> Float[Tensor, " rows"]:
        """The log-odds of the first class against the second."""
        scores = forward_with(self.network, rows, first).double()
        odds = scores[:, self.classes[0]] - scores[:, self.classes[1]]
        return odds / self.temperature

    @cached_property
    def log_odds(self) -> float:
        return float(self.log_odds_of(self.row, self.first)[0])

    def parts(self) -> Iterator[InputAttributions]:
        """The inputs of each `SparseLinear` layer, and the dense features."""
        leaves = {name: x.detach().requires_grad_() for name, x in self.first.items()}
        dense = self.row.features
        if isinstance(dense, Adjacency):
            odds = self.log_odds_of(self.row, leaves)
        else:
            dense = dense.detach().requires_grad_()
            odds = self.log_odds_of(replace(self.row, features=dense), leaves)
        wanted = [*leaves.values(), *([] if isinstance(dense, Adjacency) else [dense])]
        slopes = torch.autograd.grad(odds.sum(), wanted, materialize_grads=True)
        for name, slope in zip(leaves, slopes, strict=False):
            yield self._of_table(name, slope[0])
        if not isinstance(dense, Adjacency):
            yield self._of_dense(dense.detach()[0], slopes[-1][0])

    def _of_table(self, name: str, slope: Float[Tensor, " width"]) -> InputAttributions:
        layer = sparse_layers(self.network)[name]
        matrix = getattr(self.row, layer.source)
        columns, values = matrix.indices.long(), matrix.values
        if values is None:
            values = slope.new_ones(len(columns))
        vectors = values[:, None] * layer.weight[columns]

        def without(some: slice) -> tuple[Graph, Products]:
            left = self.first[name] - vectors[some]
            rows = self._copies(len(left))
            return rows, {**self._repeated(len(left)), name: left}

        shares = vectors.double() @ slope.double()
        edges = layer.source == "adjacency"
        return InputAttributions(
            edges, columns, values, shares, self._changes(columns, without)
        )

    def _of_dense(
        self, features: Float[Tensor, " features"], slope: Float[Tensor, " features"]
    ) -> InputAttributions:
        columns = features.nonzero()[:, 0]
        values = features[columns]

        def without(some: slice) -> tuple[Graph, Products]:
            chosen = columns[some]
            left = features.repeat(len(chosen), 1)
            left[torch.arange(len(chosen)), chosen] = 0
            rows = replace(self._copies(len(chosen)), features=left)
            return rows, self._repeated(len(chosen))

        shares = values.double() * slope[columns].double()
        return InputAttributions(
            False, columns, values, shares, self._changes(columns, without)
        )

    @torch.no_grad()
    def _changes(
        self,
        columns: Int[Tensor, " inputs"],
        without: Callable[[slice], tuple[Graph, Products]],
    ) -> Numbers:
        found = torch.zeros(len(columns), dtype=torch.float64)
        for begin in range(0, len(columns), CHUNK_SIZE):
            some = slice(begin, begin + CHUNK_SIZE)
            found[some] = self.log_odds - self.log_odds_of(*without(some)).cpu()
        return found

    def _repeated(self, count: int) -> Products:
        return {name: x.expand(count, -1) for name, x in self.first.items()}

    def _copies(self, count: int) -> Graph:
        """The node so many times; its sparse rows went into the first layer already."""
        features = self.row.features
        return Graph(
            adjacency=_empty(count, self.row.adjacency),
            features=_empty(count, features)
            if isinstance(features, Adjacency)
            else features.expand(count, -1),
            labels=self.row.labels.expand(count),
            num_classes=self.row.num_classes,
            directed=self.row.directed,
        )


def _empty(count: int, like: Adjacency) -> Adjacency:
    starts = torch.zeros(count + 1, dtype=torch.int64, device=like.indptr.device)
    return Adjacency(starts, like.indices[:0], like.num_cols)


# Explanation: which neighbours and which features pushed a prediction.
#
# Edges and features enter a row-wise network through a linear layer, as a sum of one
# vector for each. What follows is linear as long as no ReLU changes sides: the slope of
# the log-odds times a vector is that vector's share, and all shares and a rest that no
# input has a part in add up to the log-odds. What taking one input away would change is
# found by taking its vector out of the sum. Both are exact. The changes do not add up,
# since ReLUs may change sides.


FEATURE = "feature"
NEIGHBOUR_KINDS = {1: ("neighbour",), 2: ("points at", "pointed at by")}
"""What a neighbour is called, by how many columns there are for each."""


@dataclass(frozen=True)
class Attribution:
    """A neighbour or a feature, and what it did to the log-odds."""

    kind: str
    name: Hashable
    value: float
    share: float
    """Its part of the log-odds."""
    change: float
    """What the log-odds would lose without it."""


@dataclass(frozen=True)
class Explanation:
    """Why a node was given a class, against the class that came next."""

    label: Hashable
    against: Hashable
    probability: float
    log_odds: float
    """Of the class against the next one."""
    rest: float
    """What is left of them when all shares are taken off."""
    pushes: list[Attribution]
    """The largest shares first."""


def explain(model: Model, prepared: Graph) -> Iterator[Explanation]:
    """Explain the predictions of rows that the method has prepared."""
    model.check_row_wise()
    if not isinstance(prepared.features, Adjacency):
        prepared = replace(prepared, features=prepared.features.float())
    every = model.score_rows(prepared)
    shares = model.to_prediction(every).probabilities
    for place, scores in enumerate(every):
        best, other, *_ = scores.argsort(descending=True, stable=True).tolist()
        row = prepared.select_rows(torch.tensor([place])).to(model.device)
        case = NodeAttribution(model.network, row, (best, other), model.temperature)
        found = (push for part in case.parts() for push in _pushes(model, part))
        pushes = [push for push in found if push.share or push.change]
        yield Explanation(
            label=model.classes[best],
            against=model.classes[other],
            probability=float(shares[place, best]),
            log_odds=case.log_odds,
            rest=case.log_odds - sum(push.share for push in pushes),
            pushes=sorted(pushes, key=lambda push: -abs(push.share)),
        )


def feature_names(encoder: FeatureEncoder | None, count: int) -> list[str]:
    """What each feature is called: its column, and of texts the category too."""
    if encoder is None:
        return [f"{FEATURE} {place}" for place in range(count)]
    return [
        name
        for column in encoder.columns
        for name in [f"{column.name} = {c}" for c in column.categories] or [column.name]
    ]


def _pushes(model: Model, part: InputAttributions) -> Iterator[Attribution]:
    numbers = (part.values, part.gradient_times_input, part.leave_one_out)
    told = _neighbours(model, part) if part.of_edges else _features(model, part)
    for (kind, name), *known in zip(told, *(n.tolist() for n in numbers), strict=True):
        yield Attribution(kind, name, *known)


def _neighbours(
    model: Model, part: InputAttributions
) -> Iterator[tuple[str, Hashable]]:
    known = model.graph_info.num_known
    kinds = NEIGHBOUR_KINDS[model.num_columns // known]
    names = model.known_names
    for column in part.columns.tolist():
        yield kinds[column // known], names[column % known].as_py()


def _features(model: Model, part: InputAttributions) -> Iterator[tuple[str, Hashable]]:
    names = feature_names(model.encoder, model.graph_info.num_features)
    for column in part.columns.tolist():
        yield FEATURE, names[column]
