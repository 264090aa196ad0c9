"""H2GCN: neighbours and neighbours of neighbours, each kept apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.csr import estimate_two_hop_nnz, two_hop_nnz_bound
from unalike.data.graph import Graph
from unalike.errors import UserError
from unalike.methods.base import MessagePassingMethod
from unalike.nn.dropout import Dropout
from unalike.nn.normalized_adjacency import GCNNorm, SelfLoops
from unalike.nn.sparse_linear import InputLinear
from unalike.system import free_memory


@dataclass(frozen=True, kw_only=True)
class H2GCN(MessagePassingMethod):
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
    loops: SelfLoops = "kept"
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
        one_hop = GCNNorm.of(batch.adjacency, self_loops=self.self_loops)
        two_hop = GCNNorm.of(
            two_hop_adjacency(batch.adjacency), self_loops=self.self_loops
        )
        outputs = [torch.relu(self.first(batch.features))]
        for norm in self.norms:
            x = self.dropout(outputs[-1])
            outputs.append(norm(torch.cat([one_hop @ x, two_hop @ x], 1)))
        x = self.dropout(outputs[-1])
        last = self.dropout(torch.cat([one_hop @ x, two_hop @ x], 1))
        return self.final(torch.cat([*outputs, last], 1))


def two_hop_adjacency(adjacency: Adjacency) -> Adjacency:
    """The two-hop graph; it is refused beforehand where memory is too small for it."""
    if "two_hop" not in vars(adjacency):
        check_memory(adjacency)
    return adjacency.two_hop


def check_memory(adjacency: Adjacency) -> None:
    """Refuse a two-hop graph that does not fit into what memory is free.

    A bound tells at once that a small one fits; others are estimated from some rows.
    """
    once = adjacency.to_scipy().astype(bool)
    copies = 1 if adjacency.is_symmetric else 2
    for where in dict.fromkeys((torch.device("cpu"), adjacency.indices.device)):
        there = free_memory(where)
        if copies * csr_bytes(two_hop_nnz_bound(once)) <= there:
            continue
        needed = copies * csr_bytes(estimate_two_hop_nnz(once))
        if needed > there:
            raise UserError(
                f"The two-hop graph of H2GCN needs about {needed / 1e9:,.1f} GB; "
                f"{there / 1e9:,.1f} GB are free on the {where.type}."
            )


def csr_bytes(entries: int) -> int:
    """The memory of sparse rows while they are worked with.

    An entry has a column and a one; so many that 32 bits cannot count them are copied.
    """
    return entries * (5 if entries < 2**31 else 13)
