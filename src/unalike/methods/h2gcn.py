"""H2GCN: neighbours and neighbours of neighbours, each kept apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.adjacency import Adjacency
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.kernels.two_hop import likely_entries, most_entries
from unalike.memory import free_memory
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.entry import InputLinear
from unalike.methods.layers.normalised import Loops, Normalised
from unalike.methods.method import MessagePassing


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

    def build_module(self, graph: Graph) -> nn.Module:
        return H2GCNModule(self, graph)


class H2GCNModule(nn.Module):
    """[x_0; x_1; …] W + b with x_0 = relu(X W) and x_{l+1} = [Â x_l; Â₂ x_l]."""

    def __init__(self, o: H2GCN, graph: Graph) -> None:
        super().__init__()
        self.first = InputLinear("features", graph, o.hidden)
        norm = nn.BatchNorm1d if o.batch_norm else nn.Identity
        sizes = [o.hidden * 2**doubled for doubled in range(o.layers + 1)]
        # The first layer and the last round have no batch norm.
        self.norms = nn.ModuleList(norm(width) for width in sizes[1:-1])
        self.dropout = Dropout(o.dropout)
        self.final = nn.Linear(sum(sizes), graph.num_classes)
        self.self_loops = o.loops

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        one_hop = Normalised.of(batch.adjacency, loops=self.self_loops)
        two_hop = Normalised.of(far_from(batch.adjacency), loops=self.self_loops)
        outputs = [torch.relu(self.first(batch.features))]
        for norm in self.norms:
            x = self.dropout(outputs[-1])
            outputs.append(norm(torch.cat([one_hop @ x, two_hop @ x], 1)))
        x = self.dropout(outputs[-1])
        last = self.dropout(torch.cat([one_hop @ x, two_hop @ x], 1))
        return self.final(torch.cat([*outputs, last], 1))


def far_from(adjacency: Adjacency) -> Adjacency:
    """The two-hop graph; it is refused beforehand where memory is too small for it."""
    if "two_hop" not in vars(adjacency):
        check_room(adjacency)
    return adjacency.two_hop


def check_room(adjacency: Adjacency) -> None:
    """Refuse a two-hop graph that does not fit into what memory is free.

    A bound tells at once that a small one fits; others are estimated from some rows.
    """
    once = adjacency.to_scipy().astype(bool)
    copies = 1 if adjacency.is_symmetric else 2
    for where in dict.fromkeys((torch.device("cpu"), adjacency.columns.device)):
        there = free_memory(where)
        if copies * bytes_of(most_entries(once)) <= there:
            continue
        needed = copies * bytes_of(likely_entries(once))
        if needed > there:
            raise UserError(
                f"The two-hop graph of H2GCN needs about {needed / 1e9:,.1f} GB; "
                f"{there / 1e9:,.1f} GB are free on the {where.type}."
            )


def bytes_of(entries: int) -> int:
    """The memory of sparse rows while they are worked with.

    An entry has a column and a one; so many that 32 bits cannot count them are copied.
    """
    return entries * (5 if entries < 2**31 else 13)
