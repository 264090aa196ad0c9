"""A2DUG and Dual-Net: edges of both directions and propagated features, row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.graph import Graph
from unalike.methods.base import PropagatedFeaturesMethod, with_directions
from unalike.methods.fsgnn import HopLinears
from unalike.nn.linear import Dropout
from unalike.nn.mlp import MLP, layer_sizes
from unalike.nn.normalized_adjacency import DirectedNorm, GCNNorm
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class A2DUG(PropagatedFeaturesMethod):
    """MLP(dropout(relu([h_1; h_2; …]))), h normalised linear maps of all views.

    Views are rows of A and of Aᵀ, X, and Sᵏ X, Pᵏ X and Qᵏ X of undirected, outgoing
    and incoming edges. Dual-Net averages them; A2DUG has `--no-view-norm`.
    """

    paper = "Maekawa et al. 2023, https://arxiv.org/abs/2306.08274"
    suits = "edges are directed, and it is not known whether rows or means say more"

    hidden: int = 128
    """Width of the linear map of each view, and of every hidden layer."""
    layers: int = 1
    """Linear layers behind the views."""
    hops: int = 2
    """The highest power of the adjacencies; the paper has 3."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    view_norm: bool = True
    """Divide every row of a view by its L2 norm, as Dual-Net does."""

    @property
    def num_propagated(self) -> int:
        return 1 + 3 * self.hops

    def propagate(
        self, graph: Graph, x: Float[Tensor, "nodes features"]
    ) -> list[Float[Tensor, "nodes features"]]:
        s = GCNNorm.of(graph.adjacency.to_undirected(), self_loops="kept")
        directed = DirectedNorm.of(graph.adjacency)
        matrices = [x]
        for step in (s.__matmul__, directed.out, directed.into):
            power = x
            for _ in range(self.hops):
                power = step(power)
                matrices.append(power)
        return matrices

    def prepare(self, graph: Graph) -> Graph:
        """The graph with the adjacency [A, Aᵀ] and all propagated features."""
        edges = with_directions(graph, "both").adjacency
        return replace(super().prepare(graph), adjacency=edges)

    def build_module(self, graph: Graph) -> nn.Module:
        return A2DUGModule(self, graph)


class A2DUGModule(nn.Module):
    """MLP(dropout(relu([h_1; h_2; …])))."""

    def __init__(self, o: A2DUG, graph: Graph) -> None:
        super().__init__()
        self.outgoing = InputLinear("outgoing", graph, o.hidden)
        self.incoming = InputLinear("incoming", graph, o.hidden)
        self.maps = HopLinears(graph, o.num_propagated, o.hidden)
        width = (2 + o.num_propagated) * o.hidden
        sizes = layer_sizes(width, o.hidden, graph.num_classes, o.layers)
        self.dropout = Dropout(o.dropout)
        self.mlp = MLP.of_sizes(sizes, o.dropout)
        self.view_norm = o.view_norm

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        views = [
            self.outgoing(batch.outgoing),
            self.incoming(batch.incoming),
            *self.maps(batch.features),
        ]
        if self.view_norm:
            views = [F.normalize(view, dim=1) for view in views]
        return self.mlp(self.dropout(torch.relu(torch.cat(views, 1))))
