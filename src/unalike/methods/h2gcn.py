"""H2GCN: separate aggregation of one-hop and two-hop neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.two_hop import estimate_two_hop_nnz, two_hop_nnz_bound
from unalike.errors import UserError
from unalike.methods.base import MessagePassingMethod
from unalike.nn.linear import Dropout
from unalike.nn.normalized_adjacency import GCNNorm, SelfLoops
from unalike.nn.sparse_linear import InputLinear
from unalike.system import free_memory


@dataclass(frozen=True, kw_only=True)
class H2GCN(MessagePassingMethod):
    """[x₀; x₁; …] W + b, with x₀ = relu(X W₀) and x_{l+1} = [Â x_l; Â₂ x_l]."""

    paper = "Zhu et al. 2020, https://arxiv.org/abs/2006.11468"
    suits = "neighbours differ and the graph is small: two-hop neighbours are stored"
    uses_edge_weights = False

    hidden: int = 32
    """Width of the first layer; each further layer doubles it."""
    layers: int = 2
    """Aggregation layers; the paper tries 1 and 2."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training; the paper tries 0 and .5."""
    batch_norm: bool = True
    """Batch norm between layers, as in the paper's code; Zhu et al. have none."""
    loops: SelfLoops = "kept"
    """Self-loops of the one-hop and two-hop graph; Zhu et al. have none."""

    def build_module(self, graph: Graph) -> nn.Module:
        return H2GCNModule(self, graph)


class H2GCNModule(nn.Module):
    """[x₀; x₁; …] W + b with x₀ = relu(X W₀) and x_{l+1} = [Â x_l; Â₂ x_l]."""

    def __init__(self, o: H2GCN, graph: Graph) -> None:
        super().__init__()
        self.first = InputLinear("features", graph, o.hidden)
        norm = nn.BatchNorm1d if o.batch_norm else nn.Identity
        sizes = [o.hidden * 2**layer for layer in range(o.layers + 1)]
        # The first and the last layer have no batch norm.
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
    """The two-hop graph; raises before it is computed if it does not fit in memory."""
    if "two_hop" not in vars(adjacency):
        check_memory(adjacency)
    return adjacency.two_hop


def check_memory(adjacency: Adjacency) -> None:
    """Raise if the two-hop graph does not fit into free memory.

    An upper bound is enough for a small one; otherwise a sample of rows is counted.
    """
    pattern = adjacency.to_scipy().astype(bool)
    copies = 1 if adjacency.is_symmetric else 2
    for device in dict.fromkeys((torch.device("cpu"), adjacency.indices.device)):
        free = free_memory(device)
        if copies * csr_bytes(two_hop_nnz_bound(pattern)) <= free:
            continue
        needed = copies * csr_bytes(estimate_two_hop_nnz(pattern))
        if needed > free:
            raise UserError(
                f"The two-hop graph of H2GCN needs about {needed / 1e9:,.1f} GB; "
                f"{free / 1e9:,.1f} GB are free on the {device.type}."
            )


def csr_bytes(nnz: int) -> int:
    """The bytes of a CSR matrix while it is computed.

    An entry has a column and a value; scipy copies more than 2^31 entries to int64.
    """
    return nnz * (5 if nnz < 2**31 else 13)
