"""GCNII: deep graph convolutions that never forget where they began."""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.adjacency import Adjacency
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table, glorot

MOST_DENSE_NUMBERS = 2**32
"""Features that would be larger than this are not made dense."""


@dataclass(frozen=True, kw_only=True)
class GCNII(MessagePassing):
    """u = (1 − α) Â x + α x₀, then (1 − β) u + β u W, with β = ln(θ / layer + 1)."""

    paper = "Chen et al. 2020, https://arxiv.org/abs/2007.02133"

    hidden: int = 64
    """Width of every layer."""
    layers: int = 2
    """Convolutions; the paper tries 2, 8, 16, 32 and 64."""
    dropout: float = 0.5
    """Share of features and hidden numbers dropped while training."""
    alpha: float = 0.1
    """What the start counts for in every layer; the paper tries .1, .2 and .5."""
    theta: float = 0.5
    """What weights count for, less in later layers; the paper tries .5, 1 and 1.5."""
    batch_norm: bool = True
    """Batch norm after each convolution, which Chen et al. do without."""
    drop_features: bool = True
    """Drop features too, as the paper's program does; sparse ones are made dense."""

    def prepare(self, graph: Graph) -> Graph:
        if not self.drop_features or not isinstance(graph.features, Adjacency):
            return graph
        if math.prod(graph.features.shape) > MOST_DENSE_NUMBERS:
            raise UserError(
                f"Features of {graph.num_nodes} x {graph.num_features} are too many to "
                "be made dense; choose --no-drop-features."
            )
        return replace(graph, features=graph.features.to_dense())

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    def __init__(self, of: GCNII, graph: Graph) -> None:
        table = Table(graph.num_features, of.hidden)
        super().__init__(graph, table, of.dropout if of.drop_features else None)
        norm = nn.BatchNorm1d if of.batch_norm else nn.Identity
        self.weights = nn.ParameterList(
            glorot(of.hidden, of.hidden) for _ in range(of.layers)
        )
        self.norms = nn.ModuleList(norm(of.hidden) for _ in range(of.layers))
        self.dropout = Dropout(of.dropout)
        self.final = nn.Linear(of.hidden, graph.num_classes)
        self.alpha, self.theta = of.alpha, of.theta

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        adjacency = Normalised.of(batch.adjacency)
        start = torch.relu(self.enter(batch, first))
        x = start
        layers = zip(self.weights, self.norms, strict=True)
        for layer, (weight, norm) in enumerate(layers, start=1):
            beta = math.log(self.theta / layer + 1)
            u = adjacency.back_to(start, self.alpha, self.dropout(x))
            x = torch.relu(norm((1 - beta) * u + beta * (u @ weight)))
        return self.final(self.dropout(x))
