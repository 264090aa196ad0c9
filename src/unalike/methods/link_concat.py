"""LINK-concat: a perceptron on adjacency row and features, end to end."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.features import Features
from unalike.graph import Graph
from unalike.methods.directions import Directions, look
from unalike.methods.layers.affine import value
from unalike.methods.layers.entry import Entry
from unalike.methods.layers.mlp import after_table, widths
from unalike.methods.method import RowWise
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class LINKConcat(RowWise):
    """MLP([A; X]), the ablation of LINKX that does not embed the two apart."""

    paper = "Lim et al. 2021, https://arxiv.org/abs/2110.14446, section 5.4"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 2
    """Linear maps."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    binarised: bool = True
    """Read every feature that is not zero as 1, as the paper's program does."""
    directions: Directions = "out"
    """Neighbours a node is known by: those it points at, those that point at it, …"""

    def prepare(self, graph: Graph) -> Graph:
        seen = look(graph, self.directions)
        if not self.binarised:
            return seen
        return replace(seen, features=binarise(seen.features))

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(Network):
    def __init__(self, of: LINKConcat, graph: Graph) -> None:
        columns, features = graph.adjacency.num_columns, graph.num_features
        inputs = columns + features
        sizes = widths(inputs, of.hidden, graph.num_classes, of.layers)
        table = Table(features, sizes[1], fan_in=inputs, offset=False)
        entry = Entry(graph, table)
        held = graph.adjacency.held
        edges = Table(columns, sizes[1], fan_in=inputs, held=held)
        super().__init__({"edges": edges, **entry.tables})
        self.entry = entry
        self.only_tables = entry.sparse
        self.rest = after_table(sizes, of.dropout)

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return {"edges": batch.adjacency, **self.entry.inputs(batch)}

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        joint = first["edges"] + value(self.entry(batch, first))
        return value(self.rest(joint))


def binarise(features: Features) -> Features:
    """1 where there is something, 0 elsewhere."""
    if isinstance(features, Adjacency):
        return Adjacency(features.starts, features.columns, features.width)
    return (features != 0).to(torch.float32)
