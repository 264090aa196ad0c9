"""LINK: logistic regression on the rows of the adjacency."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import Directions, RowWiseMethod, with_directions
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class LINK(RowWiseMethod):
    """A W + b: one weight per neighbour and class."""

    paper = "Zheleva and Getoor 2009, https://doi.org/10.1145/1526709.1526781"
    suits = "there are no features, or whom a node is joined to says more than they do"

    directions: Directions = "out"
    """Edges of a node: outgoing, incoming, both in separate columns, or undirected."""

    def prepare(self, graph: Graph) -> Graph:
        return with_directions(graph, self.directions)

    def build_module(self, graph: Graph) -> nn.Module:
        return LINKModule(graph)


class LINKModule(nn.Module):
    """A W + b."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.linear = InputLinear("adjacency", graph, graph.num_classes)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        return self.linear(batch.adjacency)
