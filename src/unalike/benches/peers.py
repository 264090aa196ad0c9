"""Peers: LINKX as others compute it, for one epoch of the paper's protocol."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.graph import Graph
from unalike.split import Split

Epoch = Callable[[], None]
Made = tuple[nn.Module, tuple[Tensor, ...]]
"""A network, and the edges it is called with after the features."""
Make = Callable[[Graph], Made]


class CooLINKX(nn.Module):
    """LINKX whose first layer is a linear layer applied to a COO matrix."""

    def __init__(self, graph: Graph, hidden: int) -> None:
        super().__init__()
        self.edges = nn.Linear(graph.num_nodes, hidden)
        self.features = nn.Linear(graph.num_features, hidden)
        self.mix = nn.Linear(2 * hidden, hidden)
        self.final = nn.Linear(hidden, graph.num_classes)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        a = torch.sparse.mm(adjacency, self.edges.weight.t()) + self.edges.bias
        x = self.features(x)
        return self.final(torch.relu(self.mix(torch.cat([a, x], 1)) + a + x))


def coo_linkx(graph: Graph, hidden: int) -> Made:
    """The paper's program: the adjacency as a COO matrix times a linear layer."""
    return CooLINKX(graph, hidden), (_coo(graph),)


def pyg_linkx_edges(graph: Graph, hidden: int, layers: int = 1) -> Made:
    """PyTorch Geometric's LINKX on an `edge_index`."""
    return _pyg(graph, hidden, layers), (_coo(graph).indices(),)


def pyg_linkx_csr(graph: Graph, hidden: int, layers: int = 1) -> Made:
    """PyTorch Geometric's LINKX on a torch CSR matrix."""
    rows = graph.adjacency
    ones = torch.ones(rows.num_entries, device=rows.columns.device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        csr = torch.sparse_csr_tensor(
            rows.starts, rows.columns.long(), ones, rows.shape
        )
    return _pyg(graph, hidden, layers), (csr,)


PEERS = {
    "COO linear layer": coo_linkx,
    "PyG on edge_index": pyg_linkx_edges,
    "PyG on CSR": pyg_linkx_csr,
}


def theirs_epoch(
    make: Make, graph: Graph, split: Split, device: torch.device
) -> tuple[Epoch, None]:
    """An epoch of a peer, which has no part of its own to be timed."""
    return peer_epoch(make, graph.to(device), split), None


def peer_epoch(make: Make, graph: Graph, split: Split) -> Epoch:
    """A step on the training nodes, then the accuracy of all three parts."""
    labels, device = graph.labels, graph.labels.device
    network, edges = make(graph)
    network.to(device)
    x = graph.features.to_dense().float()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.001)
    parts = [ids.to(device) for ids in (split.train, split.valid, split.test)]

    def epoch() -> None:
        network.train()
        optimizer.zero_grad()
        known = parts[0]
        F.cross_entropy(network(x, *edges)[known], labels[known]).backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            right = network(x, *edges).argmax(1) == labels
            for part in parts:
                right[part].double().mean()

    return epoch


def _pyg(graph: Graph, hidden: int, layers: int) -> nn.Module:
    from torch_geometric.nn.models import LINKX

    return LINKX(
        num_nodes=graph.num_nodes,
        in_channels=graph.num_features,
        hidden_channels=hidden,
        out_channels=graph.num_classes,
        num_layers=layers,
    )


def _coo(graph: Graph) -> Tensor:
    rows = graph.adjacency
    ends = torch.stack([rows.row_of_entry, rows.columns.long()])
    ones = torch.ones(rows.num_entries, device=ends.device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        return torch.sparse_coo_tensor(ends, ones, rows.shape, is_coalesced=True)
