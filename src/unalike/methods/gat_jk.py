"""GAT-JK: attention layers whose outputs are all read, not the last alone."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.attention import Attentions, head_widths
from unalike.methods.layers.entry import InputLinear
from unalike.methods.layers.jumping import JUMPS, Jump
from unalike.methods.method import MessagePassing


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

    def build_module(self, graph: Graph) -> nn.Module:
        return GATJKModule(self, graph)


class GATJKModule(nn.Module):
    """jump(x_1, …, x_L) W + b, where x_l is the output of attention layer l."""

    def __init__(self, o: GATJK, graph: Graph) -> None:
        super().__init__()
        features = graph.num_features
        sizes = head_widths(features, o.hidden, o.hidden, o.layers, o.heads)
        self.first = InputLinear("features", graph, sizes[1], bias=False, init="glorot")
        self.layers = Attentions(
            sizes, o.heads, o.dropout, normed=o.batch_norm, averaged=False
        )
        self.jump = JUMPS[o.jump](len(sizes) - 1, sizes[-1])
        self.final = nn.Linear(self.jump.width, graph.num_classes)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        outputs = self.layers(batch.adjacency, self.first(batch.features))
        return self.final(self.jump(outputs))
