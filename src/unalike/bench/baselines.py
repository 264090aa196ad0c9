"""Baselines: the same models written with PyTorch Geometric."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.graph import Graph
from unalike.data.split import Split
from unalike.nn.mlp import layer_sizes

Epoch = Callable[[], None]
ModelAndEdges = tuple[nn.Module, tuple[Tensor, ...]]
"""A network, and its arguments after the features."""
ModelFactory = Callable[[Graph], ModelAndEdges]


class CooLINKX(nn.Module):
    """LINKX as in the paper's code: a COO matrix times a linear layer."""

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


def pyg_linkx_edges(graph: Graph, hidden: int, layers: int = 1) -> ModelAndEdges:
    """PyTorch Geometric's LINKX on an `edge_index`."""
    return _pyg(graph, hidden, layers), (_coo(graph).indices(),)


def pyg_linkx_csr(graph: Graph, hidden: int, layers: int = 1) -> ModelAndEdges:
    """PyTorch Geometric's LINKX on a torch CSR matrix."""
    return _pyg(graph, hidden, layers), (graph.adjacency.to_torch_csr(),)


LINKX_BASELINES: dict[str, Callable[..., ModelAndEdges]] = {
    "COO linear layer": lambda graph, hidden: (CooLINKX(graph, hidden), (_coo(graph),)),
    "PyG on edge_index": pyg_linkx_edges,
    "PyG on CSR": pyg_linkx_csr,
}


def reference_epoch(make: ModelFactory, graph: Graph, split: Split) -> Epoch:
    """A step on the train nodes, then the accuracy of train, valid and test nodes."""
    labels, device = graph.labels, graph.labels.device
    network, edges = make(graph)
    network.to(device)
    x = graph.features.to_dense().float()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.001)
    parts = [ids.to(device) for ids in (split.train, split.valid, split.test)]

    def epoch() -> None:
        network.train()
        optimizer.zero_grad()
        train = parts[0]
        F.cross_entropy(network(x, *edges)[train], labels[train]).backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            correct = network(x, *edges).argmax(1) == labels
            for part in parts:
                correct[part].double().mean()

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
    ends = rows.edge_index
    ones = torch.ones(rows.nnz, device=ends.device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        return torch.sparse_coo_tensor(ends, ones, rows.shape, is_coalesced=True)


# Message-passing methods. The normalised edges are computed once, for all layers.


EdgeFormat = Callable[[Graph], tuple[Tensor, ...]]


def edge_index(graph: Graph) -> tuple[Tensor, ...]:
    """The edge index with self-loops, and the weights of GCN normalisation."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    (ends,), values = bare_edge_index(graph), graph.adjacency.values
    normalised: tuple[Tensor, Tensor] = gcn_norm(ends, values, graph.num_nodes)
    return normalised


def bare_edge_index(graph: Graph) -> tuple[Tensor, ...]:
    """The edge index without weights."""
    return (graph.adjacency.edge_index,)


def csr(graph: Graph) -> tuple[Tensor, ...]:
    """The GCN-normalised adjacency as a CSR matrix with a row for each target."""
    ends, weight = edge_index(graph)
    return (_csr(ends, weight, graph),)


def _csr(ends: Tensor, weight: Tensor, graph: Graph) -> Tensor:
    from torch_geometric.utils import to_torch_csr_tensor

    size = (graph.num_nodes, graph.num_nodes)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        matrix: Tensor = to_torch_csr_tensor(ends.flip(0), weight, size=size)
    return matrix


def both_directions(graph: Graph) -> tuple[Tensor, ...]:
    """Edges into and out of each node, with weights D_out^-1/2 A D_in^-1/2."""
    from torch_geometric.utils import degree

    (ends,) = bare_edge_index(graph)
    scales = (degree(end, graph.num_nodes).clamp(min=1).rsqrt() for end in ends)
    source, target = (scale[end] for scale, end in zip(scales, ends, strict=True))
    return ends, source * target, ends.flip(0), source * target


def both_directions_csr(graph: Graph) -> tuple[Tensor, ...]:
    """The same as two CSR matrices."""
    into, weight, out, _ = both_directions(graph)
    return _csr(into, weight, graph), _csr(out, weight, graph)


EDGE_FORMATS: dict[str, EdgeFormat] = {
    "PyG on edge_index": edge_index,
    "PyG on CSR": csr,
}
DIRECTED_FORMATS: dict[str, EdgeFormat] = {
    "PyG on edge_index": both_directions,
    "PyG on CSR": both_directions_csr,
}


class PyGLayers(nn.Module):
    """Layers with batch norm, an activation and dropout, and a last layer."""

    def __init__(
        self,
        layers: Iterable[nn.Module],
        sizes: Sequence[int],
        last: nn.Module,
        dropout: float,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.layers, self.last = nn.ModuleList(layers), last
        self.norms = nn.ModuleList(map(nn.BatchNorm1d, sizes))
        self.dropout, self.activation = nn.Dropout(dropout), activation

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = self.dropout(self.activation(norm(layer(x, *edges))))
        return (
            self.last(x) if isinstance(self.last, nn.Linear) else self.last(x, *edges)
        )


# A bias before batch norm has no effect, and these layers have none.


def pyg_gcn(method: Any, graph: Graph) -> nn.Module:
    """GCN."""
    from torch_geometric.nn import GCNConv

    sizes = layer_sizes(
        graph.num_features, method.hidden, graph.num_classes, method.layers
    )
    *hidden, last = pairwise(sizes)
    layers = (GCNConv(*ends, normalize=False, bias=False) for ends in hidden)
    final = GCNConv(*last, normalize=False)
    return PyGLayers(layers, sizes[1:-1], final, method.dropout)


def pyg_gat(method: Any, graph: Graph) -> nn.Module:
    """GAT."""
    from torch_geometric.nn import GATConv

    heads, wide = method.heads, method.heads * method.hidden
    sizes = [wide] * (max(method.layers, 2) - 1)
    *inputs, last = graph.num_features, *sizes
    layers = (GATConv(size, method.hidden, heads, bias=False) for size in inputs)
    final = GATConv(last, graph.num_classes, heads, concat=False)
    return PyGLayers(layers, sizes, final, method.dropout, F.elu)


def pyg_sage(method: Any, graph: Graph) -> nn.Module:
    """GraphSAGE, then a linear layer."""
    from torch_geometric.nn import SAGEConv

    sizes = [graph.num_features, *[method.hidden] * method.layers]
    layers = (SAGEConv(*ends, bias=False) for ends in pairwise(sizes))
    final = nn.Linear(method.hidden, graph.num_classes)
    return PyGLayers(layers, sizes[1:], final, method.dropout)


class PyGMixHop(nn.Module):
    """MixHop on normalised edges; `MixHopConv.forward` would normalise each time."""

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
    outputs = [layer.lins[0](x)]
    for linear in layer.lins[1:]:
        x = layer.propagate(edges, x=x, edge_weight=edge_weight)
        outputs.append(linear(x))
    return torch.cat(outputs, 1) + layer.bias


def pyg_mlp(method: Any, graph: Graph) -> nn.Module:
    """MLP with ReLU, batch norm and dropout between layers."""
    from torch_geometric.nn import MLP

    sizes = layer_sizes(
        graph.num_features, method.hidden, graph.num_classes, method.layers
    )
    return MLP(sizes, dropout=method.dropout, act_first=True)


class PyGAPPNP(nn.Module):
    """APPNP: an MLP, then personalised PageRank."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import APPNP

        super().__init__()
        self.mlp = pyg_mlp(method, graph)
        self.propagate = APPNP(method.hops, method.alpha, normalize=False)

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        return self.propagate(self.mlp(x), *edges)


class PyGGPRGNN(nn.Module):
    """GPR-GNN: an MLP, then powers of the adjacency with learned weights."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import SimpleConv

        super().__init__()
        self.mlp = pyg_mlp(method, graph)
        self.propagate = SimpleConv("add")
        powers = (1 - method.alpha) ** torch.arange(method.hops + 1)
        self.gamma = nn.Parameter(torch.cat([method.alpha * powers[:-1], powers[-1:]]))

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        x = self.mlp(x)
        total = self.gamma[0] * x
        for gamma in self.gamma[1:]:
            x = self.propagate(x, *edges)
            total = total + gamma * x
        return total


class PyGGCNII(nn.Module):
    """GCNII: convolutions with initial residual and identity mapping."""

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
        x_0 = x = F.relu(self.first(self.dropout(x)))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = F.relu(norm(layer(self.dropout(x), x_0, *edges)))
        return self.final(self.dropout(x))


class PyGDirGNN(nn.Module):
    """Dir-GNN of two graph convolutions in each layer; `DirGNNConv` has no weights."""

    def __init__(self, method: Any, graph: Graph) -> None:
        from torch_geometric.nn import GCNConv

        super().__init__()
        hidden, self.alpha = method.hidden, method.alpha
        inputs = [graph.num_features, *[hidden] * (method.layers - 1)]
        self.into, self.out = (
            nn.ModuleList(
                GCNConv(before, hidden, normalize=False, bias=bias) for before in inputs
            )
            for bias in (True, False)
        )
        self.dropout = nn.Dropout(method.dropout)
        self.final = nn.Linear(hidden, graph.num_classes)

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        half, outputs = len(edges) // 2, []
        for into, out in zip(self.into, self.out, strict=True):
            mixed = self.alpha * out(x, *edges[half:])
            x = mixed + (1 - self.alpha) * into(x, *edges[:half])
            x = self.dropout(F.relu(x))
            outputs.append(x)
        return self.final(torch.stack(outputs).amax(0))


HEAD_DIVISOR = 8
"""Hidden width of other methods divided by that of an attention head."""


@dataclass(frozen=True)
class PyGBaseline:
    """A network of PyTorch Geometric, its edge formats, and the options to compare."""

    network: Callable[[Any, Graph], nn.Module]
    layers: int = 2
    heads: int | None = None
    edge_formats: Mapping[str, EdgeFormat] = field(default_factory=lambda: EDGE_FORMATS)

    def options(self, hidden: int) -> dict[str, Any]:
        options = {"hidden": hidden, "layers": self.layers}
        if self.heads is not None:
            options |= {"hidden": max(1, hidden // HEAD_DIVISOR), "heads": self.heads}
        return options

    def make(self, edge_format: EdgeFormat, method: Any, graph: Graph) -> ModelAndEdges:
        return self.network(method, graph), edge_format(graph)


METHOD_BASELINES = {
    "gcn": PyGBaseline(pyg_gcn),
    "gat": PyGBaseline(
        pyg_gat, heads=4, edge_formats={"PyG on edge_index": bare_edge_index}
    ),
    "mixhop": PyGBaseline(PyGMixHop),
    "appnp": PyGBaseline(PyGAPPNP),
    "gpr-gnn": PyGBaseline(PyGGPRGNN),
    "gcnii": PyGBaseline(PyGGCNII, layers=8),
    "sage": PyGBaseline(pyg_sage, edge_formats={"PyG on edge_index": bare_edge_index}),
    "dir-gnn": PyGBaseline(PyGDirGNN, edge_formats=DIRECTED_FORMATS),
}
