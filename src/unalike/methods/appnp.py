"""APPNP: a perceptron's scores, spread by personalised PageRank."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.graph import Graph
from unalike.methods.layers.affine import value
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.layers.mlp import after_table, widths
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class APPNP(MessagePassing):
    """Z = (1 − α) Â Z + α Z₀, a few times, with Z₀ = MLP(X)."""

    paper = "Klicpera et al. 2019, https://arxiv.org/abs/1810.05997"
    may_differ = MessagePassing.may_differ | {"alpha"}

    hidden: int = 32
    """Width of every hidden layer of the perceptron."""
    layers: int = 2
    """Linear maps of the perceptron."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    alpha: float = 0.1
    """Chance to return to the start; the paper tries .1, .2, .5 and .9."""
    hops: int = 10
    """Propagations."""

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    alpha: Float[Tensor, ""]

    def __init__(self, of: APPNP, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        sizes = widths(features, of.hidden, classes, of.layers)
        super().__init__(graph, Table(*sizes[:2]))
        self.rest = after_table(sizes, of.dropout)
        self.hops = of.hops
        self.fix(alpha=of.alpha)

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        adjacency = Normalised.of(batch.adjacency)
        start = value(self.rest(self.entry(batch, first)))
        z, share = start, self.alpha.to(start.dtype) * start
        for _ in range(self.hops):
            z = adjacency.back_to(share, self.alpha, z)
        return z
