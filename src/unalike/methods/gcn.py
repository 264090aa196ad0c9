"""GCN and GCN-JK; GAT and GAT-JK."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.conv import GCNLayers
from unalike.nn.jumping_knowledge import JUMPING_KNOWLEDGE, Jump
from unalike.nn.mlp import layer_sizes
from unalike.nn.module import (
    MessagePassingModule,
    SparseInputModule,
    SparseProducts,
    SparseWeightSpec,
)
from unalike.nn.normalized_adjacency import GCNNorm

# GCN: graph convolutions one after the other.


@dataclass(frozen=True, kw_only=True)
class GCN(MessagePassingMethod):
    """Â x W + b, with batch norm, ReLU and dropout between two such layers."""

    paper = "Kipf and Welling 2017, https://arxiv.org/abs/1609.02907"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 2
    """Convolutions."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    batch_norm: bool = True
    """Batch norm between convolutions."""

    def network(self, graph: Graph) -> SparseInputModule:
        return GCNModule(self, graph)


class GCNModule(MessagePassingModule):
    def __init__(self, of: GCN, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        sizes = layer_sizes(features, of.hidden, classes, of.layers)
        super().__init__(graph, SparseWeightSpec(*sizes[:2], offset=False, glorot=True))
        self.convolutions = GCNLayers(sizes, of.dropout, normed=of.batch_norm)

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        adjacency = GCNNorm.of(batch.adjacency)
        flown = self.enter_flown(batch, first, adjacency, [1])
        return self.convolutions(adjacency, flown)


# GCN-JK: graph convolutions whose outputs are all read, not the last alone.


@dataclass(frozen=True, kw_only=True)
class GCNJK(MessagePassingMethod):
    """A linear map of what all graph convolutions gave, joined by jumping knowledge."""

    paper = "Xu et al. 2018, https://arxiv.org/abs/1806.03536"

    hidden: int = 32
    """Width of every layer."""
    layers: int = 2
    """Convolutions."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    batch_norm: bool = True
    """Batch norm between convolutions."""
    jump: Jump = "max"
    """How outputs are joined: the largest numbers, side by side, or a weighed mean."""

    def network(self, graph: Graph) -> SparseInputModule:
        return GCNJKModule(self, graph)


class GCNJKModule(MessagePassingModule):
    def __init__(self, of: GCNJK, graph: Graph) -> None:
        sizes = layer_sizes(graph.num_features, of.hidden, of.hidden, of.layers)
        super().__init__(graph, SparseWeightSpec(*sizes[:2], offset=False, glorot=True))
        self.convolutions = GCNLayers(sizes, of.dropout, normed=of.batch_norm)
        self.join = JUMPING_KNOWLEDGE[of.jump](of.layers, of.hidden)
        self.final = nn.Linear(self.join.width, graph.num_classes)

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        adjacency = GCNNorm.of(batch.adjacency)
        flown = self.enter_flown(batch, first, adjacency, [1])
        outputs = self.convolutions.outputs(adjacency, flown)
        return self.final(self.join(outputs))
