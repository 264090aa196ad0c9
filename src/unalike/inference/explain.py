"""Explain a prediction by gradient x input and leave-one-out of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.errors import UserError
from unalike.inference.model import Model
from unalike.inference.views_model import ViewsModel
from unalike.nn.sparse_linear import (
    Products,
    forward_with,
    sparse_layers,
    sparse_products,
)

CHUNK_SIZE = 1 << 12
"""Inputs that one forward pass leaves out, each from its own copy of the node."""

Numbers = Float[Tensor, " inputs"]
FEATURE = "feature"
NEIGHBOUR_KINDS = {1: ("neighbour",), 2: ("points at", "pointed at by")}
"""Kinds of neighbours by the number of columns for each training node."""


@dataclass(frozen=True)
class Attribution:
    """A neighbour or a feature, and its effect on the log-odds.

    The field names are keys of `unalike predict --json`.
    """

    kind: str
    name: Hashable
    value: float
    share: float
    """Gradient x input: its contribution to the log-odds."""
    change: float
    """Leave-one-out: the log-odds minus those without it."""


@dataclass(frozen=True)
class Explanation:
    """Why a node got its class rather than the second most probable one.

    The field names are keys of `unalike predict --json`.
    """

    label: Hashable
    against: Hashable
    probability: float
    log_odds: float
    """Logit of the class minus logit of the second one."""
    rest: float
    """The log-odds minus the contributions of all inputs."""
    pushes: list[Attribution]
    """The largest contributions first."""


def explain(
    model: Model, prepared: Graph, known: Ids | None = None
) -> Iterator[Explanation]:
    """Explain prepared rows; `known` are their training nodes if scores are stored."""
    model.check_row_wise()
    if model.number_scale is not None:
        raise UserError("Explanations need classes; this model predicts numbers.")
    if isinstance(model, ViewsModel):
        from unalike.inference.explain_views import explain_views

        yield from explain_views(model, prepared, known)
        return
    if not isinstance(prepared.features, Adjacency):
        prepared = replace(prepared, features=prepared.features.float())
    logits = model.score_rows(prepared)
    probabilities = model.to_prediction(logits).probabilities
    for index, node_logits in enumerate(logits):
        best, second, *_ = node_logits.argsort(descending=True, stable=True).tolist()
        row = prepared.select_rows(torch.tensor([index])).to(model.device)
        node = NodeAttribution(model.network, row, (best, second), model.temperature)
        attributions = [
            attribution
            for part in node.parts()
            for attribution in _attributions(model, part)
            if attribution.share or attribution.change
        ]
        yield Explanation(
            label=model.classes[best],
            against=model.classes[second],
            probability=float(probabilities[index, best]),
            log_odds=node.log_odds,
            rest=node.log_odds - sum(each.share for each in attributions),
            pushes=sorted(attributions, key=lambda each: -abs(each.share)),
        )


def neighbour(model: Model, column: int) -> tuple[str, Hashable]:
    """The kind and the name of the training node of a column of prepared rows."""
    direction, node = divmod(column, model.graph_info.num_known)
    kinds = NEIGHBOUR_KINDS[model.num_columns // model.graph_info.num_known]
    return kinds[direction], model.known_names[node].as_py()


def _attributions(model: Model, part: InputAttributions) -> Iterator[Attribution]:
    columns, encoder = part.columns.tolist(), model.encoder
    if part.of_edges:
        inputs = [neighbour(model, column) for column in columns]
    elif encoder is None:
        inputs = [(FEATURE, f"{FEATURE} {column}") for column in columns]
    else:
        names = [name for each in encoder.columns for name in each.feature_names]
        inputs = [(FEATURE, names[column]) for column in columns]
    arrays = (part.values, part.gradient_times_input, part.leave_one_out)
    numbers = (array.tolist() for array in arrays)
    for (kind, name), *effects in zip(inputs, *numbers, strict=True):
        yield Attribution(kind, name, *effects)


# Gradient x input and leave-one-out.
#
# Edges and sparse features enter a row-wise network through a linear layer, as a sum of
# one vector for each input. The rest of the network is piecewise linear, so gradient x
# input of all inputs and a remainder without input add up to the log-odds.
# Leave-one-out subtracts the vector of one input from the sum. Both are exact; the
# leave-one-out differences do not add up, because ReLUs may switch.


@dataclass(frozen=True, eq=False)
class InputAttributions:
    """Inputs of one kind, and their effects on the log-odds."""

    of_edges: bool
    columns: Int[Tensor, " inputs"]
    values: Numbers
    gradient_times_input: Numbers
    """Contributions to the log-odds."""
    leave_one_out: Numbers
    """The log-odds minus those without the input."""


@dataclass(frozen=True, eq=False)
class NodeAttribution:
    """Attributions of the log-odds of two classes to the inputs of one node."""

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
        inputs, row, x = [*leaves.values()], self.row, self.row.features
        if not isinstance(x, Adjacency):
            inputs.append(x.detach().requires_grad_())
            row = replace(row, features=inputs[-1])
        odds = self.log_odds_of(row, leaves).sum()
        grads = torch.autograd.grad(odds, inputs, materialize_grads=True)
        for name, grad in zip(leaves, grads, strict=False):
            yield self._of_sparse(name, grad[0])
        if not isinstance(x, Adjacency):
            yield self._of_dense(x[0], grads[-1][0])

    def _of_sparse(self, name: str, grad: Float[Tensor, " width"]) -> InputAttributions:
        layer = sparse_layers(self.network)[name]
        matrix = getattr(self.row, layer.source)
        columns, values = matrix.indices.long(), matrix.values
        if values is None:
            values = grad.new_ones(len(columns))
        vectors = values[:, None] * layer.weight[columns]

        def without(chunk: slice) -> tuple[Graph, Products]:
            products = self.first[name] - vectors[chunk]
            rows = self._copies(len(products))
            return rows, {**self._repeated(len(products)), name: products}

        contributions = vectors.double() @ grad.double()
        changes = self._changes(columns, without)
        return InputAttributions(
            layer.source == "adjacency", columns, values, contributions, changes
        )

    def _of_dense(
        self, features: Float[Tensor, " features"], grad: Float[Tensor, " features"]
    ) -> InputAttributions:
        columns = features.nonzero()[:, 0]
        values = features[columns]

        def without(chunk: slice) -> tuple[Graph, Products]:
            zeroed = columns[chunk]
            x = features.repeat(len(zeroed), 1)
            x[torch.arange(len(zeroed)), zeroed] = 0
            rows = replace(self._copies(len(zeroed)), features=x)
            return rows, self._repeated(len(zeroed))

        contributions = values.double() * grad[columns].double()
        changes = self._changes(columns, without)
        return InputAttributions(False, columns, values, contributions, changes)

    @torch.no_grad()
    def _changes(
        self,
        columns: Int[Tensor, " inputs"],
        without: Callable[[slice], tuple[Graph, Products]],
    ) -> Numbers:
        changes = torch.zeros(len(columns), dtype=torch.float64)
        for start in range(0, len(columns), CHUNK_SIZE):
            chunk = slice(start, start + CHUNK_SIZE)
            changes[chunk] = self.log_odds - self.log_odds_of(*without(chunk)).cpu()
        return changes

    def _repeated(self, count: int) -> Products:
        return {name: x.expand(count, -1) for name, x in self.first.items()}

    def _copies(self, count: int) -> Graph:
        """Copies of the node; sparse rows are empty, their products are given."""
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
    indptr = torch.zeros(count + 1, dtype=torch.int64, device=like.indptr.device)
    return Adjacency(indptr, like.indices[:0], like.num_cols)
