"""A trained model: weights, class names, scores and probabilities."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency, NewRows
from unalike.data.graph import Graph
from unalike.data.regression import NumberScale
from unalike.data.store import StoredGraph
from unalike.data.task import Solution, Task
from unalike.errors import UserError
from unalike.importing.features import FeatureEncoder
from unalike.importing.ids import IdIndex
from unalike.importing.readers import TableInput
from unalike.inference.new_nodes import (
    AnyFeatures,
    EdgesLike,
    TrainingGraph,
    build_rows,
    match_features,
)
from unalike.methods import METHODS, name_of
from unalike.methods.base import Method, RowWiseMethod, TrainedMethod
from unalike.methods.views import Views
from unalike.nn.sparse_linear import sparse_layers
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.step import row_batches

if TYPE_CHECKING:
    from unalike.inference.new_node_tables import TableColumns

Scores = Float[Tensor, "nodes classes"]
SavedMethod: TypeAlias = TrainedMethod | Views
"""Methods that leave a model."""


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """The probability of every class for every node."""

    probabilities: Float[Tensor, "nodes classes"]
    classes: list[Hashable]
    """The names of the classes, in the order of the columns."""
    unknown: int = 0
    """Neighbours that the model does not know; they are ignored."""
    numbers: Float[Tensor, " nodes"] | None = None
    """The predicted number of every node, where the label is no class."""

    def __repr__(self) -> str:
        return f"Prediction({len(self.probabilities):,} nodes, {self.classes!r})"

    @property
    def labels(self) -> list[Hashable]:
        """The most probable class of each node."""
        return [self.classes[index] for index in self.probabilities.argmax(1).tolist()]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Model:
    """A trained method with its weights, class names and node ids."""

    method: SavedMethod
    weights: dict[str, Tensor]
    graph_info: TrainingGraph
    classes: list[Hashable]
    encoder: FeatureEncoder | None = None
    """Encoder of table columns as features; None if the graph came without columns."""
    names: pa.Array | None = None
    """The user's ids of the training nodes; None where they are 0, 1, 2, …"""
    temperature: float = 1.0
    """Divisor of the logits before the softmax."""
    number_scale: NumberScale | None = None
    """Mean and standard deviation of the numbers that are predicted; None: classes."""

    def __repr__(self) -> str:
        known, name = self.graph_info.num_known, name_of(self.method)
        return f"Model({name}, {known:,} known nodes, {len(self.classes)} classes)"

    @cached_property
    def network(self) -> nn.Module:
        """The module with its weights, in evaluation mode."""
        network = self.untrained()
        network.load_state_dict(self.weights, assign=True)
        return network.to(self.device).eval().requires_grad_(False)

    def untrained(self) -> nn.Module:
        """The module before its weights are loaded, on the meta device."""
        assert isinstance(self.method, TrainedMethod)
        return self.method.network_on_meta(self._empty_graph)

    @cached_property
    def _empty_graph(self) -> Graph:
        """A prepared graph without rows, with the columns of every prepared graph."""
        rows = Adjacency.empty((0, self.graph_info.num_known))
        new = NewRows.of(rows, rows, directed=self.graph_info.directed)
        features = match_features(
            torch.zeros(0, self.graph_info.num_features), self.graph_info
        )
        return self.method.prepare(self.graph_info.rows_graph(new, features))

    @property
    def num_columns(self) -> int:
        return self._empty_graph.adjacency.num_cols

    @cached_property
    def index(self) -> IdIndex:
        """Index of the training nodes by the user's ids."""
        index = IdIndex()
        index.add(self.known_names)
        return index

    @cached_property
    def known_names(self) -> pa.Array:
        if self.names is not None:
            return self.names
        return pa.array(np.arange(self.graph_info.num_known))

    @property
    def device(self) -> torch.device:
        return next(iter(self.weights.values())).device

    @property
    def scores_rows(self) -> bool:
        """Are known nodes scored by their rows, like new ones?"""
        return self.method.row_wise

    @cached_property
    def reads_edges(self) -> bool:
        """Does the method read edges at all?"""
        layers = sparse_layers(self.network).values()
        of_edges = any(layer.source == "adjacency" for layer in layers)
        row_wise = self.method.row_wise and not self.method.needs_full_graph
        return of_edges or not row_wise

    def to(self, device: torch.device | str) -> Model:
        if self.device == torch.device(device):
            return self
        moved = {name: weight.to(device) for name, weight in self.weights.items()}
        return replace(self, weights=moved)

    def save(self, path: str | Path) -> int:
        """Write the model to a new file; returns its size in bytes."""
        from unalike.inference.model_file import save_model

        return save_model(self, Path(path))

    def predict(
        self,
        edges: EdgesLike = (),
        features: AnyFeatures | None = None,
        *,
        entering: EdgesLike | None = None,
    ) -> Prediction:
        """Predict nodes that were not in the training graph, by edges to its nodes.

        Edges are pairs (index of the new node, id of a training node), or sparse rows.
        `entering` holds the edges that point at new nodes, in a directed graph.
        """
        graph, unknown = self.new_nodes(edges, features, entering=entering)
        return self.to_prediction(self.score_rows(graph), unknown)

    def predict_tables(
        self,
        edges: TableInput = (),
        nodes: TableInput = (),
        *,
        columns: TableColumns | None = None,
    ) -> pa.Table:
        """Predict the new nodes of tables: their ids, classes and probabilities.

        Tables are paths or frames of pandas, polars, PyArrow, DuckDB or Spark, as
        those of `import_graph`. Nodes have the columns of training; edges are between
        new nodes and training nodes.
        """
        from unalike.inference.predict import predict_tables

        return predict_tables(self, edges, nodes, columns)

    def to_prediction(self, scores: Scores, unknown: int = 0) -> Prediction:
        """Probabilities from logits, scaled by the temperature; or numbers."""
        if self.number_scale is not None:
            numbers = self.number_scale.numbers(scores)
            return Prediction(torch.ones_like(scores), self.classes, unknown, numbers)
        probabilities = to_probabilities(scores, self.temperature)
        return Prediction(probabilities, self.classes, unknown)

    def new_nodes(
        self,
        edges: EdgesLike = (),
        features: AnyFeatures | None = None,
        *,
        entering: EdgesLike | None = None,
    ) -> tuple[Graph, int]:
        """New nodes as prepared rows, and how many of their neighbours are unknown."""
        self.check_row_wise()
        info = self.graph_info
        x = None if features is None else match_features(features, info)
        rows, unknown = build_rows(
            edges,
            entering,
            lambda ids: self.index.find(ids),
            info,
            None if x is None else x.shape[0],
        )
        if x is None:
            x = match_features(np.zeros((rows.num_rows, 0), np.float32), info)
        return self.method.prepare(info.rows_graph(rows, x)), unknown

    def scores(self, graph: Graph) -> Scores:
        """Logits of all nodes of a graph, in general the training graph."""
        if graph.num_features != self.graph_info.num_features:
            raise UserError(
                f"The model was trained on {self.graph_info.num_features} features; "
                f"this graph has {graph.num_features}."
            )
        prepared = self.method.prepare(graph)
        if not self.method.row_wise:
            return self.score_rows(prepared)
        if prepared.adjacency.num_cols != self.num_columns:
            raise UserError(
                f"The model was trained on rows of {self.num_columns:,} columns; "
                f"those of this graph have {prepared.adjacency.num_cols:,}."
            )
        layers = sparse_layers(self.network).values()
        size = sum(layer.out_features for layer in layers)
        ids = torch.arange(prepared.num_nodes)
        batches = row_batches(prepared, ids, size, self.device)
        none = torch.zeros(0, self.graph_info.num_classes)
        return torch.cat([none, *map(self.score_rows, batches)])

    @torch.no_grad()
    def score_rows(self, prepared: Graph) -> Scores:
        logits: Tensor = self.network(prepared.to(self.device))
        return logits.float().cpu()

    def check(self) -> None:
        """Raise if weights, names and columns have different sizes."""
        sizes = {"classes": (len(self.classes), self.graph_info.num_classes)}
        if self.names is not None:
            # Other ids are counted, not stored; a wrong count must not fill memory.
            sizes["names of nodes"] = (len(self.names), self.graph_info.num_known)
        if self.encoder is not None:
            sizes["features"] = (self.encoder.width, self.graph_info.num_features)
        for what, (size, expected) in sizes.items():
            if size != expected:
                raise UserError(f"The model has {size} {what} in place of {expected}.")
        if not 0 < self.temperature < math.inf:
            raise UserError(f"The model has the temperature {self.temperature}.")
        for name, weight in self.weights.items():
            if weight.numel() and not all(map(torch.isfinite, weight.aminmax())):
                raise UserError(
                    f"The weight {name} of the model has NaN or infinite numbers; "
                    "train the model again."
                )
        self.check_weights()

    def check_weights(self) -> None:
        self.network.eval()

    def check_row_wise(self, purpose: str = "score new nodes") -> None:
        """Raise if the logits of a node depend on more than its own row."""
        if self.method.row_wise and not self.method.needs_full_graph:
            return
        row_wise = _names_of(RowWiseMethod | Views)
        raise UserError(
            f"{name_of(self.method)} cannot {purpose}: its scores of a node "
            f"depend on the edges of its neighbours too. Those that can are {row_wise}."
        )


def _names_of(kinds: Any) -> str:
    return ", ".join(name for name, kind in METHODS.items() if issubclass(kind, kinds))


def to_probabilities(
    scores: Scores, temperature: float
) -> Float[Tensor, "nodes classes"]:
    """The softmax of logits divided by a temperature."""
    # In double precision, so that rounding makes no two classes equally probable.
    return (scores.double() / temperature).softmax(1)


def custom_ids(names: pa.Array) -> pa.Array | None:
    """The same ids; None where they are 0, 1, 2, … and need not be stored."""
    if not pa.types.is_integer(names.type):
        return names
    ids = names.to_numpy(zero_copy_only=False)
    return None if np.array_equal(ids, np.arange(len(ids))) else names


def check_trainable(method: Method) -> SavedMethod:
    """Raise if a method trains no weights that could be saved."""
    if isinstance(method, SavedMethod):
        return method
    raise UserError(
        f"{name_of(method)} leaves no model to save: its scores come from the labels "
        f"around each node. Those that do are {_names_of(SavedMethod)}."
    )


def model_class(method: Method) -> type[Model]:
    """The class of the models of a method."""
    if isinstance(method, Views):
        from unalike.inference.views_model import ViewsModel

        return ViewsModel
    return Model


def fit_model(
    method: Method,
    task: Task,
    *,
    device: torch.device | str = "cpu",
    progress: Progress = NO_PROGRESS,
    stored: StoredGraph | None = None,
) -> tuple[Model, Solution]:
    """Train a method; the model has the ids and the columns of a stored graph."""
    trained = check_trainable(method)
    (solution,) = trained.solve_all(
        [replace(task, keep=True)], device=device, progress=progress
    )
    solution.raise_if_failed()
    name = "" if stored is None else stored.name
    return model_from_solution(
        trained, task.graph, solution, stored=stored, name=name
    ), solution


def model_from_solution(
    method: Method,
    graph: Graph,
    solution: Solution,
    *,
    stored: StoredGraph | None = None,
    name: str = "",
    row_normalised: bool = False,
) -> Model:
    """The model of a solution that has its weights."""
    assert solution.weights is not None
    metadata = {} if stored is None else stored.metadata
    columns = metadata.get("feature_columns")
    return model_class(method)(
        method=check_trainable(method),
        weights=solution.weights,
        graph_info=TrainingGraph.of(graph, name, row_normalised=row_normalised),
        classes=list(graph.class_names or range(graph.num_classes)),
        encoder=None if columns is None else FeatureEncoder.from_dict(columns),
        names=None if stored is None else custom_ids(stored.names),
    )
