"""Model: learned weights, and all it takes to use them on nodes old and new."""

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

from unalike.adjacency import Adjacency
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.importing.encoding import Encoder
from unalike.importing.ids import IdIndex
from unalike.methods import METHODS, name_of
from unalike.methods.method import RowWise, Trained
from unalike.models.facts import Facts
from unalike.models.new_features import AnyFeatures, fitting
from unalike.models.new_rows import Given, NewRows, gather_rows
from unalike.models.prediction import Prediction
from unalike.training.scoring import some_rows
from unalike.training.sparse_linear import sparse_layers

Numbers = Float[Tensor, "nodes classes"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A trained method with the names that its graph's owner gave to everything."""

    method: Trained
    weights: dict[str, Tensor]
    facts: Facts
    classes: list[Hashable]
    encoder: Encoder | None = None
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
        shell = self._shell
        with torch.device("meta"):
            return self.method.network(shell)

    @cached_property
    def _shell(self) -> Graph:
        """A prepared graph without any node, whose shapes are those of all others."""
        none = torch.zeros(0, dtype=torch.int64)
        rows = Adjacency.from_edges(none, none, shape=(0, self.facts.num_known))
        new = NewRows.of(rows, rows, directed=self.facts.directed)
        features = fitting(torch.zeros(0, self.facts.num_features), self.facts)
        return self.method.prepare(self.facts.around(new, features))

    @property
    def width(self) -> int:
        """Columns of the rows that the network sees."""
        return self._shell.adjacency.width

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
        return pa.array(np.arange(self.facts.num_known))

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
        from unalike.models.file import save_model

        return save_model(self, Path(path))

    def predict(
        self,
        edges: Given = (),
        features: AnyFeatures | None = None,
        *,
        entering: Given | None = None,
    ) -> Prediction:
        """Score nodes that the graph did not have, by edges to known nodes.

        Edges are pairs (number of the new node, id of a known one), or sparse rows.
        `entering` holds those that point at new nodes, where direction counts.
        """
        graph, unknown = self.new_nodes(edges, features, entering=entering)
        return self.prediction(self.score_rows(graph), unknown)

    def prediction(self, scores: Numbers, unknown: int = 0) -> Prediction:
        """What scores say: the probability of each class, at the temperature."""
        # In double, so that no two scores become equal: answers stay what they are.
        shares = (scores.double() / self.temperature).softmax(1)
        return Prediction(shares, self.classes, unknown)

    def new_nodes(
        self,
        edges: Given = (),
        features: AnyFeatures | None = None,
        *,
        entering: Given | None = None,
    ) -> tuple[Graph, int]:
        """New nodes as prepared rows, and how many of their neighbours are unknown."""
        self.check_row_wise()
        told = None if features is None else fitting(features, self.facts)
        num_rows = None if told is None else told.shape[0]
        rows, unknown = gather_rows(
            (edges, entering), lambda ids: self.index.find(ids), self.facts, num_rows
        )
        if told is None:
            told = fitting(np.zeros((rows.num_rows, 0), np.float32), self.facts)
        return self.method.prepare(self.facts.around(rows, told)), unknown

    def scores(self, graph: Graph) -> Numbers:
        """Scores of all nodes of a graph: of the one that was learned from, mostly."""
        if graph.num_features != self.facts.num_features:
            raise UserError(
                f"The model was trained on {self.facts.num_features} features; "
                f"this graph has {graph.num_features}."
            )
        prepared = self.method.prepare(graph)
        if not self.method.row_wise:
            return self.score_rows(prepared)
        if prepared.adjacency.width != self.width:
            raise UserError(
                f"The model was trained on rows of {self.width:,} columns; "
                f"those of this graph have {prepared.adjacency.width:,}."
            )
        layers = sparse_layers(self.network).values()
        size = sum(layer.out_features for layer in layers)
        ids = torch.arange(prepared.num_nodes)
        pieces = some_rows(prepared, ids, size, self.device)
        none = torch.zeros(0, self.facts.num_classes)
        return torch.cat([none, *map(self.score_rows, pieces)])

    @torch.no_grad()
    def score_rows(self, prepared: Graph) -> Numbers:
        """Scores of rows that the method has prepared."""
        logits: Tensor = self.network(prepared.to(self.device))
        return logits.float().cpu()

    def check(self) -> None:
        """Refuse weights, names or columns that do not belong together."""
        told = {
            "classes": (len(self.classes), self.facts.num_classes),
            "names of nodes": (len(self.known_names), self.facts.num_known),
        }
        if self.encoder is not None:
            told["features"] = (self.encoder.width, self.facts.num_features)
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
        able = [name for name, kind in METHODS.items() if issubclass(kind, RowWise)]
        raise UserError(
            f"{name_of(self.method)} cannot {wish}: its scores of a node "
            "depend on the edges of its neighbours too. "
            f"Those that can are {', '.join(able)}."
        )
