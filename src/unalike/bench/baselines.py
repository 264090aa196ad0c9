"""The same models written with PyTorch Geometric."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.graph import Graph
from unalike.data.split import Split
from unalike.nn.mlp import layer_sizes

# Peers: LINKX as others compute it, for one epoch of the paper's protocol.


Epoch = Callable[[], None]
ModelAndEdges = tuple[nn.Module, tuple[Tensor, ...]]
"""A network, and the edges it is called with after the features."""
Make = Callable[[Graph], ModelAndEdges]


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


def coo_linkx(graph: Graph, hidden: int) -> ModelAndEdges:
    """The paper's program: the adjacency as a COO matrix times a linear layer."""
    return CooLINKX(graph, hidden), (_coo(graph),)


def pyg_linkx_edges(graph: Graph, hidden: int, layers: int = 1) -> ModelAndEdges:
    """PyTorch Geometric's LINKX on an `edge_index`."""
    return _pyg(graph, hidden, layers), (_coo(graph).indices(),)


def pyg_linkx_csr(graph: Graph, hidden: int, layers: int = 1) -> ModelAndEdges:
    """PyTorch Geometric's LINKX on a torch CSR matrix."""
    rows = graph.adjacency
    ones = torch.ones(rows.nnz, device=rows.indices.device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        csr = torch.sparse_csr_tensor(
            rows.indptr, rows.indices.long(), ones, rows.shape
        )
    return _pyg(graph, hidden, layers), (csr,)


LINKX_BASELINES = {
    "COO linear layer": coo_linkx,
    "PyG on edge_index": pyg_linkx_edges,
    "PyG on CSR": pyg_linkx_csr,
}


def baseline_epoch(
    make: Make, graph: Graph, split: Split, device: torch.device
) -> tuple[Epoch, None]:
    """An epoch of a peer, which has no part of its own to be timed."""
    return reference_epoch(make, graph.to(device), split), None


def reference_epoch(make: Make, graph: Graph, split: Split) -> Epoch:
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
    ends = torch.stack([rows.row_indices, rows.indices.long()])
    ones = torch.ones(rows.nnz, device=ends.device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        return torch.sparse_coo_tensor(ends, ones, rows.shape, is_coalesced=True)


# Rivals: our methods composed of PyTorch Geometric's layers, as fast as they go.
#
# Their normalisation is taken once, beforehand, and shared by all layers.


Form = Callable[[Graph], tuple[Tensor, ...]]


def edge_index(graph: Graph) -> tuple[Tensor, ...]:
    """The ends of every edge and loop, and what each counts for."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    ends = bare_edge_index(graph)[0]
    normalised: tuple[Tensor, Tensor] = gcn_norm(
        ends, graph.adjacency.values, graph.num_nodes
    )
    return normalised


def bare_edge_index(graph: Graph) -> tuple[Tensor, ...]:
    """The ends of every edge, for layers that weigh them by themselves."""
    rows = graph.adjacency
    return (torch.stack([rows.row_indices, rows.indices.long()]),)


def csr(graph: Graph) -> tuple[Tensor, ...]:
    """The normalised matrix by rows of what enters a node."""
    from torch_geometric.utils import to_torch_csr_tensor

    ends, weight = edge_index(graph)
    size = (graph.num_nodes, graph.num_nodes)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        return (to_torch_csr_tensor(ends.flip(0), weight, size=size),)


FORMS: dict[str, Form] = {"PyG on edge_index": edge_index, "PyG on CSR": csr}


class PyGGCN(nn.Module):
    """Convolutions with batch norm, ReLU and dropout between them."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import GCNConv

        super().__init__()
        sizes = layer_sizes(
            graph.num_features, method.hidden, graph.num_classes, method.layers
        )
        # Before a batch norm an offset would do nothing.
        *hidden, last = pairwise(sizes)
        self.layers = nn.ModuleList(
            GCNConv(*ends, normalize=False, bias=False) for ends in hidden
        )
        self.layers.append(GCNConv(*last, normalize=False))
        self.norms = nn.ModuleList(nn.BatchNorm1d(size) for size in sizes[1:-1])
        self.dropout = nn.Dropout(method.dropout)

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=False):
            x = self.dropout(F.relu(norm(layer(x, *edges))))
        return self.layers[-1](x, *edges)


class GATRival(nn.Module):
    """Attention with batch norm, ELU and dropout between layers."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import GATConv

        super().__init__()
        heads, wide = method.heads, method.heads * method.hidden
        inputs = [graph.num_features, *[wide] * (max(method.layers, 2) - 1)]
        self.layers = nn.ModuleList(
            GATConv(before, method.hidden, heads, bias=False) for before in inputs[:-1]
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(wide) for _ in inputs[:-1])
        self.final = GATConv(inputs[-1], graph.num_classes, heads, concat=False)
        self.dropout = nn.Dropout(method.dropout)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = self.dropout(F.elu(norm(layer(x, edges))))
        return self.final(x, edges)


class MixHopRival(nn.Module):
    """Distances side by side; the layer's own forward would normalise each time."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import MixHopConv

        super().__init__()
        powers = list(range(method.hops + 1))
        sizes = layer_sizes(0, method.hidden, graph.num_classes, method.layers)[1:]
        inputs = [graph.num_features, *(len(powers) * size for size in sizes[:-1])]
        self.layers = nn.ModuleList(
            MixHopConv(before, after, powers)
            for before, after in zip(inputs, sizes, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(size) for size in inputs[1:])
        self.dropout = nn.Dropout(method.dropout)
        self.final = nn.Linear(len(powers) * graph.num_classes, graph.num_classes)

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        x = _mix(self.layers[0], x, *edges)
        for norm, layer in zip(self.norms, self.layers[1:], strict=True):
            x = _mix(layer, self.dropout(F.relu(norm(x))), *edges)
        return self.final(x)


def _mix(
    layer: Any, x: Tensor, edges: Tensor, edge_weight: Tensor | None = None
) -> Tensor:
    found = [layer.lins[0](x)]
    for linear in layer.lins[1:]:
        x = layer.propagate(edges, x=x, edge_weight=edge_weight)
        found.append(linear(x))
    return torch.cat(found, 1) + layer.bias


class PyGMLP(nn.Sequential):
    """Linear, ReLU, batch norm, dropout, and again."""

    def __init__(self, method: Any, graph: Graph) -> None:
        sizes = layer_sizes(
            graph.num_features, method.hidden, graph.num_classes, method.layers
        )
        parts: list[nn.Module] = [nn.Linear(sizes[0], sizes[1])]
        for before, after in pairwise(sizes[1:]):
            between = [nn.ReLU(), nn.BatchNorm1d(before), nn.Dropout(method.dropout)]
            parts += [*between, nn.Linear(before, after)]
        super().__init__(*parts)


class APPNPRival(nn.Module):
    """A perceptron, then personalised PageRank."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import APPNP

        super().__init__()
        self.perceptron = PyGMLP(method, graph)
        self.spread = APPNP(method.hops, method.alpha, normalize=False)

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        return self.spread(self.perceptron(x), *edges)


class GPRRival(nn.Module):
    """A perceptron, then powers of the matrix with learned weights."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import SimpleConv

        super().__init__()
        self.perceptron = PyGMLP(method, graph)
        self.spread = SimpleConv("add")
        left = (1 - method.alpha) ** torch.arange(method.hops + 1)
        self.gamma = nn.Parameter(torch.cat([method.alpha * left[:-1], left[-1:]]))

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        x = self.perceptron(x)
        total = self.gamma[0] * x
        for gamma in self.gamma[1:]:
            x = self.spread(x, *edges)
            total = total + gamma * x
        return total


class GCNIIRival(nn.Module):
    """Convolutions that begin anew from the first hidden numbers."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import GCN2Conv

        super().__init__()
        hidden, depths = method.hidden, range(1, method.layers + 1)
        self.first = nn.Linear(graph.num_features, hidden)
        self.layers = nn.ModuleList(
            GCN2Conv(hidden, method.alpha, method.theta, depth, normalize=False)
            for depth in depths
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in depths)
        self.dropout = nn.Dropout(method.dropout)
        self.final = nn.Linear(hidden, graph.num_classes)

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        start = x = F.relu(self.first(self.dropout(x)))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = F.relu(norm(layer(self.dropout(x), start, *edges)))
        return self.final(self.dropout(x))


HEAD_SHARE = 8
"""A head is this much narrower than the layers of other methods."""


@dataclass(frozen=True)
class PyGBaseline:
    """A network of others, the edges it can be given, and the options to compare."""

    network: Callable[[Any, Graph], nn.Module]
    layers: int = 2
    heads: int | None = None
    """Heads that share the hidden width, where a method has them."""
    edge_formats: dict[str, Form] = field(default_factory=lambda: dict(FORMS))

    def options(self, hidden: int) -> dict[str, Any]:
        """What our method is made with."""
        if self.heads is None:
            return {"hidden": hidden, "layers": self.layers}
        each = max(1, hidden // HEAD_SHARE)
        return {"hidden": each, "layers": self.layers, "heads": self.heads}

    def make(self, form: Form, method: Any, graph: Graph) -> ModelAndEdges:
        """The network for a method of ours, and its edges."""
        return self.network(method, graph), form(graph)


METHOD_BASELINES = {
    "gcn": PyGBaseline(PyGGCN),
    "gat": PyGBaseline(
        GATRival, heads=4, edge_formats={"PyG on edge_index": bare_edge_index}
    ),
    "mixhop": PyGBaseline(MixHopRival),
    "appnp": PyGBaseline(APPNPRival),
    "gpr-gnn": PyGBaseline(GPRRival),
    "gcnii": PyGBaseline(GCNIIRival, layers=8),
}
