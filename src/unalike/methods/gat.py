"""GAT: layers in which a node weighs its neighbours."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.graph import Graph
from unalike.methods.layers.attention import Attentions, head_widths
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class GAT(MessagePassing):
    """Softmax_j(LeakyReLU(a W x_j + a' W x_i)) W x_j summed over neighbours j, plus b.

    Batch norm, ELU and dropout lie between two layers. The heads of a layer are
    concatenated, those of the last are averaged.
    """

    paper = "Veličković et al. 2018, https://arxiv.org/abs/1710.10903"

    hidden: int = 8
    """Width of each head of a hidden layer; the paper tries 4, 8, 12 and 32."""
    heads: int = 8
    """Heads of each layer; the paper tries 2, 4 and 8."""
    layers: int = 2
    """Attention layers, at least two."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    batch_norm: bool = True
    """Batch norm between layers, which Veličković et al. do without."""

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    def __init__(self, of: GAT, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        sizes = head_widths(features, of.hidden, classes, of.layers, of.heads)
        super().__init__(graph, Table(*sizes[:2], offset=False, glorot=True))
        self.attentions = Attentions(
            sizes, of.heads, of.dropout, normed=of.batch_norm, averaged=True
        )

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        return self.attentions(batch.adjacency, self.enter(batch, first))[-1]
