"""GCN-JK: graph convolutions whose outputs are all read, not the last alone."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.convolutions import Convolutions
from unalike.methods.layers.jumping import JUMPS, Jump
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.layers.mlp import widths
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class GCNJK(MessagePassing):
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

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    def __init__(self, of: GCNJK, graph: Graph) -> None:
        sizes = widths(graph.num_features, of.hidden, of.hidden, of.layers)
        super().__init__(graph, Table(*sizes[:2], offset=False, glorot=True))
        self.convolutions = Convolutions(sizes, of.dropout, normed=of.batch_norm)
        self.join = JUMPS[of.jump](of.layers, of.hidden)
        self.final = nn.Linear(self.join.width, graph.num_classes)

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        adjacency = Normalised.of(batch.adjacency)
        flown = self.enter_flown(batch, first, adjacency, [1])
        outputs = self.convolutions.outputs(adjacency, flown)
        return self.final(self.join(outputs))
