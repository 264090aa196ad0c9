"""A trained model: weights, class names, scores and probabilities."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.store import StoredGraph
from unalike.data.task import Solution, Task
from unalike.errors import UserError
from unalike.importing.features import FeatureEncoder
from unalike.importing.ids import IdIndex
from unalike.inference.new_nodes import (
    AnyFeatures,
    EdgesLike,
    NewRows,
    TrainingGraph,
    build_rows,
    match_features,
)
from unalike.methods import METHODS, name_of
from unalike.methods.base import Method, RowWiseMethod, TrainedMethod
from unalike.nn.sparse_linear import sparse_layers
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.step import row_batches

# Prediction: what a model says of some nodes.


@dataclass(frozen=True, eq=False)
class Prediction:
    """The probability of every class for every node."""

    probabilities: Float[Tensor, "nodes classes"]
    classes: list[Hashable]
    """The names of the classes, in the order of the columns."""
    unknown: int = 0
    """Neighbours that the model does not know, and that were left out."""

    @property
    def labels(self) -> list[Hashable]:
        """The most probable class of each node."""
        return [self.classes[place] for place in self.probabilities.argmax(1).tolist()]


# Model: learned weights, and all it takes to use them on nodes old and new.


Scores = Float[Tensor, "nodes classes"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A trained method with the names that its graph's owner gave to everything."""

    method: TrainedMethod
    weights: dict[str, Tensor]
    graph_info: TrainingGraph
    classes: list[Hashable]
    encoder: FeatureEncoder | None = None
    """How columns of a table become features; None where nobody said."""
    names: pa.Array | None = None
    """The user's own ids of known nodes; None where they are 0, 1, 2, …"""
    temperature: float = 1.0
    """What scores are divided by before they become probabilities."""

    @cached_property
    def network(self) -> nn.Module:
        """The module with its weights, in evaluation mode."""
        network = self.untrained()
        network.load_state_dict(self.weights, assign=True)
        return network.to(self.device).eval().requires_grad_(False)

    def untrained(self) -> nn.Module:
        """The module before its weights are loaded, on the meta device."""
        shell = self._empty_graph
        with torch.device("meta"):
            return self.method.network(shell)

    @cached_property
    def _empty_graph(self) -> Graph:
        """A prepared graph without any node, whose shapes are those of all others."""
        none = torch.zeros(0, dtype=torch.int64)
        rows = Adjacency.from_edges(none, none, shape=(0, self.graph_info.num_known))
        new = NewRows.of(rows, rows, directed=self.graph_info.directed)
        features = match_features(
            torch.zeros(0, self.graph_info.num_features), self.graph_info
        )
        return self.method.prepare(self.graph_info.rows_graph(new, features))

    @property
    def num_columns(self) -> int:
        """Columns of the rows that the network sees."""
        return self._empty_graph.adjacency.num_cols

    @cached_property
    def index(self) -> IdIndex:
        """Finds known nodes by the user's own ids."""
        index = IdIndex()
        index.add(self.known_names)
        return index

    @property
    def known_names(self) -> pa.Array:
        """The user's own id of each known node."""
        if self.names is not None:
            return self.names
        return pa.array(np.arange(self.graph_info.num_known))

    @property
    def device(self) -> torch.device:
        return next(iter(self.weights.values())).device

    @cached_property
    def reads_edges(self) -> bool:
        """Does the method read edges at all?"""
        layers = sparse_layers(self.network).values()
        own = any(layer.source == "adjacency" for layer in layers)
        return own or not self.method.row_wise

    def to(self, device: torch.device | str) -> Model:
        """The same model on another device."""
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
        """Score nodes that the graph did not have, by edges to known nodes.

        Edges are pairs (number of the new node, id of a known one), or sparse rows.
        `entering` holds those that point at new nodes, where direction counts.
        """
        graph, unknown = self.new_nodes(edges, features, entering=entering)
        return self.to_prediction(self.score_rows(graph), unknown)

    def to_prediction(self, scores: Scores, unknown: int = 0) -> Prediction:
        """What scores say: the probability of each class, at the temperature."""
        # In double, so that no two scores become equal: answers stay what they are.
        shares = (scores.double() / self.temperature).softmax(1)
        return Prediction(shares, self.classes, unknown)

    def new_nodes(
        self,
        edges: EdgesLike = (),
        features: AnyFeatures | None = None,
        *,
        entering: EdgesLike | None = None,
    ) -> tuple[Graph, int]:
        """New nodes as prepared rows, and how many of their neighbours are unknown."""
        self.check_row_wise()
        told = None if features is None else match_features(features, self.graph_info)
        num_rows = None if told is None else told.shape[0]
        rows, unknown = build_rows(
            (edges, entering),
            lambda ids: self.index.find(ids),
            self.graph_info,
            num_rows,
        )
        if told is None:
            told = match_features(
                np.zeros((rows.num_rows, 0), np.float32), self.graph_info
            )
        return self.method.prepare(self.graph_info.rows_graph(rows, told)), unknown

    def scores(self, graph: Graph) -> Scores:
        """Scores of all nodes of a graph: of the one that was learned from, mostly."""
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
        pieces = row_batches(prepared, ids, size, self.device)
        none = torch.zeros(0, self.graph_info.num_classes)
        return torch.cat([none, *map(self.score_rows, pieces)])

    @torch.no_grad()
    def score_rows(self, prepared: Graph) -> Scores:
        """Scores of rows that the method has prepared."""
        logits: Tensor = self.network(prepared.to(self.device))
        return logits.float().cpu()

    def check(self) -> None:
        """Refuse weights, names or columns that do not belong together."""
        told = {
            "classes": (len(self.classes), self.graph_info.num_classes),
            "names of nodes": (len(self.known_names), self.graph_info.num_known),
        }
        if self.encoder is not None:
            told["features"] = (self.encoder.width, self.graph_info.num_features)
        for what, (found, needed) in told.items():
            if found != needed:
                raise UserError(f"The model has {found} {what} in place of {needed}.")
        if not 0 < self.temperature < math.inf:
            raise UserError(f"The model has the temperature {self.temperature}.")
        self.network.eval()

    def check_row_wise(self, wish: str = "score new nodes") -> None:
        """Refuse a wish where a node's scores depend on more than its own row."""
        if self.method.row_wise:
            return
        able = [
            name for name, kind in METHODS.items() if issubclass(kind, RowWiseMethod)
        ]
        raise UserError(
            f"{name_of(self.method)} cannot {wish}: its scores of a node "
            "depend on the edges of its neighbours too. "
            f"Those that can are {', '.join(able)}."
        )


# Names: the user's own node ids as tensors, and back.


def custom_ids(names: pa.Array) -> pa.Array | None:
    """The same names; None where they are 0, 1, 2, … and need not be kept."""
    if not pa.types.is_integer(names.type):
        return names
    numbers = names.to_numpy(zero_copy_only=False)
    plain = np.array_equal(numbers, np.arange(len(numbers)))
    return None if plain else names


# Learning: a task solved so that the answer can be used on other nodes.


def check_trainable(method: Method) -> TrainedMethod:
    """Refuse a method that learns nothing which could be kept."""
    if isinstance(method, TrainedMethod):
        return method
    able = [name for name, kind in METHODS.items() if issubclass(kind, TrainedMethod)]
    raise UserError(
        f"{name_of(method)} leaves no model to save: its scores come from the labels "
        f"around each node. Those that do are {', '.join(able)}."
    )


def fit_model(
    method: Method,
    task: Task,
    *,
    device: torch.device | str = "cpu",
    progress: Progress = NO_PROGRESS,
) -> tuple[Model, Solution]:
    """Solve a task and keep what was learned."""
    trained = check_trainable(method)
    (solution,) = trained.solve_all(
        [replace(task, keep=True)], device=device, progress=progress
    )
    return model_from_solution(trained, task.graph, solution), solution


def model_from_solution(
    method: Method,
    graph: Graph,
    solution: Solution,
    *,
    stored: StoredGraph | None = None,
    name: str = "",
    row_normalised: bool = False,
) -> Model:
    """The model behind a solution that kept its weights."""
    assert solution.weights is not None
    about = {} if stored is None else stored.metadata
    classes: list[Hashable] = about.get("class_names") or [*range(graph.num_classes)]
    columns = about.get("feature_columns")
    names: pa.Array | None = None if stored is None else custom_ids(stored.names)
    return Model(
        method=check_trainable(method),
        weights=solution.weights,
        graph_info=TrainingGraph.of(graph, name, row_normalised=row_normalised),
        classes=classes,
        encoder=None if columns is None else FeatureEncoder.from_dict(columns),
        names=names,
    )
