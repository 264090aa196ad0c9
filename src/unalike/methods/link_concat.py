"""LINK-concat: MLP on the concatenation of adjacency row and features."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.methods.base import Directions, RowWiseMethod, with_directions
from unalike.nn.mlp import MLP, layer_sizes
from unalike.nn.sparse_linear import InputLinear, in_draw_order


@dataclass(frozen=True, kw_only=True)
class LINKConcat(RowWiseMethod):
    """MLP([A; X]), the ablation of LINKX without separate embeddings."""

    paper = "Lim et al. 2021, https://arxiv.org/abs/2110.14446, appendix"
    suits = "edges and features should be read together, by one MLP"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 2
    """Linear layers."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    binarised: bool = True
    """Replace every non-zero feature by 1, as the paper's code does."""
    directions: Directions = "out"
    """Edges of a node: outgoing, incoming, both in separate columns, or undirected."""

    def prepare(self, graph: Graph) -> Graph:
        graph = with_directions(graph, self.directions)
        x = graph.features
        if not self.binarised:
            return graph
        # 1 where a feature is not 0, else 0.
        ones = x.pattern if isinstance(x, Adjacency) else (x != 0).float()
        return replace(graph, features=ones)

    def build_module(self, graph: Graph) -> nn.Module:
        return LINKConcatModule(self, graph)


class LINKConcatModule(nn.Module):
    """MLP([A; X]), whose first layer is A W_A + X W_X + b."""

    def __init__(self, o: LINKConcat, graph: Graph) -> None:
        super().__init__()
        inputs = graph.adjacency.num_cols_global + graph.num_features
        sizes = layer_sizes(inputs, o.hidden, graph.num_classes, o.layers)[1:]
        first = {
            source: InputLinear(
                source, graph, sizes[0], fan_in=inputs, bias=source == "adjacency"
            )
            for source in in_draw_order(graph)
        }
        self.first_a, self.first_x = first["adjacency"], first["features"]
        self.mlp = MLP(nn.Identity(), sizes, o.dropout)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        return self.mlp(self.first_a(batch.adjacency) + self.first_x(batch.features))
