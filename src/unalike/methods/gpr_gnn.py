"""GPR-GNN: a perceptron's scores, spread by a PageRank with learned weights."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.affine import value
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.layers.mlp import after_table, widths
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class GPRGNN(MessagePassing):
    """Σ γₖ Âᵏ Z₀, with Z₀ = MLP(X); γ is learned and begins as in APPNP."""

    paper = "Chien et al. 2021, https://arxiv.org/abs/2006.07988"
    may_differ = MessagePassing.may_differ | {"alpha"}

    hidden: int = 32
    """Width of every hidden layer of the perceptron."""
    layers: int = 2
    """Linear maps of the perceptron."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    alpha: float = 0.1
    """γₖ begins as α (1 − α)ᵏ; the paper's program tries no other value."""
    hops: int = 10
    """Propagations."""

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    def __init__(self, of: GPRGNN, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        sizes = widths(features, of.hidden, classes, of.layers)
        super().__init__(graph, Table(*sizes[:2]))
        self.rest = after_table(sizes, of.dropout)
        self.gamma = nn.Parameter(page_rank(of.alpha, of.hops))

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        adjacency = Normalised.of(batch.adjacency)
        z = value(self.rest(self.entry(batch, first)))
        total = self.gamma[0] * z
        for gamma in self.gamma[1:]:
            z = adjacency @ z
            total = total + gamma * z
        return total


def page_rank(alpha: float, hops: int) -> Float[Tensor, " powers"]:
    """α (1 − α)ᵏ for every power but the last, which takes what remains."""
    left = (1 - alpha) ** torch.arange(hops + 1)
    return torch.cat([alpha * left[:-1], left[-1:]])
