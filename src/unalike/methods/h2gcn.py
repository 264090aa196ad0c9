"""H2GCN: neighbours and neighbours of neighbours, each kept apart."""

import os
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.adjacency import Adjacency
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.layers.normalised import Loops, Normalised
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table

BYTES_PER_ENTRY = 16
"""Memory of an entry of the two-hop graph: itself and copies while it is made."""


@dataclass(frozen=True, kw_only=True)
class H2GCN(MessagePassing):
    """x = [Â x; Â₂ x], round by round; a linear map of all rounds side by side."""

    paper = "Zhu et al. 2020, https://arxiv.org/abs/2006.11468"

    hidden: int = 32
    """Width of the first layer; each round doubles it."""
    layers: int = 2
    """Rounds; the paper tries 1 and 2."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training; the paper tries 0 and .5."""
    batch_norm: bool = True
    """Batch norm between rounds, as in the paper's program; Zhu et al. have none."""
    loops: Loops = "kept"
    """Nodes that are their own neighbours, in one step or two: Zhu et al. have none."""

    def prepare(self, graph: Graph) -> Graph:
        needed = BYTES_PER_ENTRY * most_entries(graph.adjacency)
        if needed > (there := machine_memory()):
            raise UserError(
                f"The two-hop graph of H2GCN may take {needed / 1e9:,.1f} GB; "
                f"this machine has {there / 1e9:,.1f} GB."
            )
        return graph

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    def __init__(self, of: H2GCN, graph: Graph) -> None:
        super().__init__(graph, Table(graph.num_features, of.hidden))
        norm = nn.BatchNorm1d if of.batch_norm else nn.Identity
        sizes = [of.hidden * 2**doubled for doubled in range(of.layers + 1)]
        # The first layer and the last round have no batch norm.
        self.norms = nn.ModuleList(norm(width) for width in sizes[1:-1])
        self.dropout = Dropout(of.dropout)
        self.final = nn.Linear(sum(sizes), graph.num_classes)
        self.loops = of.loops

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        near = Normalised.of(batch.adjacency, loops=self.loops)
        far = Normalised.of(batch.adjacency.two_hop, loops=self.loops)
        rounds = [torch.relu(self.enter(batch, first))]
        for norm in self.norms:
            x = self.dropout(rounds[-1])
            rounds.append(norm(torch.cat([near @ x, far @ x], 1)))
        x = self.dropout(rounds[-1])
        last = self.dropout(torch.cat([near @ x, far @ x], 1))
        return self.final(torch.cat([*rounds, last], 1))


def most_entries(adjacency: Adjacency) -> int:
    """A bound on the entries of the two-hop graph: the paths of two steps."""
    paths = int(adjacency.degrees @ adjacency.transposed.degrees)
    return min(paths, adjacency.num_rows**2)


def machine_memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
