"""LINK-concat: a perceptron on adjacency row and features, end to end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph
from unalike.methods.base import Directions, RowWiseMethod, with_directions
from unalike.nn.linear import value
from unalike.nn.mlp import layer_sizes, mlp_after_first_layer
from unalike.nn.module import (
    InputLinear,
    SparseInputModule,
    SparseProducts,
    SparseWeightSpec,
)


@dataclass(frozen=True, kw_only=True)
class LINKConcat(RowWiseMethod):
    """MLP([A; X]), the ablation of LINKX that does not embed the two apart."""

    paper = "Lim et al. 2021, https://arxiv.org/abs/2110.14446, section 5.4"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 2
    """Linear maps."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    binarised: bool = True
    """Read every feature that is not zero as 1, as the paper's program does."""
    directions: Directions = "out"
    """Neighbours a node is known by: those it points at, those that point at it, …"""

    def prepare(self, graph: Graph) -> Graph:
        seen = with_directions(graph, self.directions)
        if not self.binarised:
            return seen
        return replace(seen, features=binarise(seen.features))

    def network(self, graph: Graph) -> SparseInputModule:
        return LINKConcatModule(self, graph)


class LINKConcatModule(SparseInputModule):
    def __init__(self, of: LINKConcat, graph: Graph) -> None:
        columns, features = graph.adjacency.num_cols_global, graph.num_features
        inputs = columns + features
        sizes = layer_sizes(inputs, of.hidden, graph.num_classes, of.layers)
        table = SparseWeightSpec(features, sizes[1], fan_in=inputs, offset=False)
        entry = InputLinear(graph, table)
        held = graph.adjacency.local_cols
        edges = SparseWeightSpec(columns, sizes[1], fan_in=inputs, held=held)
        super().__init__({"edges": edges, **entry.tables})
        self.entry = entry
        self.only_tables = entry.sparse
        self.rest = mlp_after_first_layer(sizes, of.dropout)

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return {"edges": batch.adjacency, **self.entry.inputs(batch)}

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        joint = first["edges"] + value(self.entry(batch, first))
        return value(self.rest(joint))


def binarise(features: Features) -> Features:
    """1 where there is something, 0 elsewhere."""
    if isinstance(features, Adjacency):
        return Adjacency(features.indptr, features.indices, features.num_cols)
    return (features != 0).to(torch.float32)
