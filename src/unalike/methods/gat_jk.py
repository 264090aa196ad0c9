"""GAT-JK: attention layers whose outputs are all read, not the last alone."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.attention import Attentions, head_widths
from unalike.methods.layers.jumping import JUMPS, Jump
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class GATJK(MessagePassing):
    """A linear map of what all attention layers gave, joined by jumping knowledge."""

    paper = "Xu et al. 2018, https://arxiv.org/abs/1806.03536"

    hidden: int = 8
    """Width of each head; the paper tries 4, 8, 12 and 32."""
    heads: int = 8
    """Heads of each layer; the paper tries 2, 4 and 8."""
    layers: int = 2
    """Attention layers, at least two."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    batch_norm: bool = True
    """Batch norm between layers."""
    jump: Jump = "max"
    """How outputs are joined: the largest numbers, side by side, or a weighed mean."""

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    def __init__(self, of: GATJK, graph: Graph) -> None:
        features = graph.num_features
        sizes = head_widths(features, of.hidden, of.hidden, of.layers, of.heads)
        super().__init__(graph, Table(*sizes[:2], offset=False, glorot=True))
        self.attentions = Attentions(
            sizes, of.heads, of.dropout, normed=of.batch_norm, averaged=False
        )
        self.join = JUMPS[of.jump](len(sizes) - 1, sizes[-1])
        self.final = nn.Linear(self.join.width, graph.num_classes)

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        outputs = self.attentions(batch.adjacency, self.enter(batch, first))
        return self.final(self.join(outputs))
