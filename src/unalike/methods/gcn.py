"""GCN: graph convolutions one after the other."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.graph import Graph
from unalike.methods.layers.convolutions import Convolutions
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.layers.mlp import widths
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class GCN(MessagePassing):
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

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    def __init__(self, of: GCN, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        sizes = widths(features, of.hidden, classes, of.layers)
        super().__init__(graph, Table(*sizes[:2], offset=False, glorot=True))
        self.convolutions = Convolutions(sizes, of.dropout, normed=of.batch_norm)

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        adjacency = Normalised.of(batch.adjacency)
        flown = self.enter_flown(batch, first, adjacency, [1])
        return self.convolutions(adjacency, flown)
