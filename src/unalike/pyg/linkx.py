"""LINKX as in PyTorch Geometric, on full graphs and on batches of rows."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency
from unalike.pyg.edges import as_edges
from unalike.pyg.linear import Linear, reset
from unalike.pyg.operators import propagate


class SparseLinear(nn.Module):
    """A W + b, where row i of A holds the sources of the edges that point at node i."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for parameter in (self.weight, self.bias):
            bound = 1 / math.sqrt(self.in_channels)
            nn.init.uniform_(parameter, -bound, bound)

    def forward(
        self, edge_index: Any, edge_weight: Tensor | None, num_rows: int
    ) -> Tensor:
        edges = as_edges(edge_index, edge_weight)
        return propagate(self.weight, edges, num_rows, "sum") + self.bias


class BatchNorm(nn.Module):
    """A batch norm whose parameters are named as in PyTorch Geometric's BatchNorm."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.module = nn.BatchNorm1d(columns)

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)


class MLP(nn.Module):
    """Linear layers with ReLU, batch norm and dropout between them, in this order."""

    def __init__(self, channels: list[int], dropout: float = 0.0) -> None:
        super().__init__()
        pairs = pairwise(channels)
        self.lins = nn.ModuleList(Linear(*pair, bias=True) for pair in pairs)
        self.norms = nn.ModuleList(BatchNorm(width) for width in channels[1:-1])
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for lin in self.lins:
            reset(lin)
        for norm in self.norms:
            reset(norm)

    def forward(self, x: Tensor) -> Tensor:
        for lin, norm in zip(self.lins, self.norms, strict=False):
            x = F.dropout(norm(lin(x).relu()), self.dropout, self.training)
        return self.lins[-1](x)


class LINKX(nn.Module):
    """LINKX (Lim et al. 2021), `torch_geometric.nn.LINKX`.

    A batch is the features of some nodes and their rows of the adjacency: an
    `Adjacency`, a `torch.sparse` tensor or a `SparseTensor` with a row for each node of
    the batch and `num_nodes` columns, or an `edge_index` whose targets are numbered in
    the batch.
    """

    def __init__(
        self,
        num_nodes: int,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        num_edge_layers: int = 1,
        num_node_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_nodes, self.in_channels = num_nodes, in_channels
        self.out_channels, self.num_edge_layers = out_channels, num_edge_layers
        hidden = hidden_channels
        self.edge_lin = SparseLinear(num_nodes, hidden)
        deep = num_edge_layers > 1
        self.edge_norm = nn.BatchNorm1d(hidden) if deep else None
        self.edge_mlp = MLP([hidden] * num_edge_layers) if deep else None
        self.node_mlp = MLP([in_channels] + [hidden] * num_node_layers)
        self.cat_lin1 = nn.Linear(hidden, hidden)
        self.cat_lin2 = nn.Linear(hidden, hidden)
        self.final_mlp = MLP([hidden] * num_layers + [out_channels], dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for child in self.children():
            reset(child)

    def forward(
        self, x: Tensor | None, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        num_rows = self._number_of_rows(x, edge_index)
        out = self.edge_lin(edge_index, edge_weight, num_rows)
        if self.edge_norm is not None and self.edge_mlp is not None:
            out = self.edge_mlp(self.edge_norm(out.relu()))
        out = out + self.cat_lin1(out)
        if x is not None:
            h = self.node_mlp(x)
            out = out + h + self.cat_lin2(h)
        return self.final_mlp(out.relu())

    def _number_of_rows(self, x: Tensor | None, edge_index: Any) -> int:
        if x is not None:
            return x.shape[0]
        if isinstance(edge_index, Adjacency):
            return edge_index.num_rows
        if isinstance(edge_index, Tensor) and edge_index.layout != torch.strided:
            return edge_index.shape[0]
        return self.num_nodes

    def extra_repr(self) -> str:
        return f"{self.num_nodes}, {self.in_channels}, {self.out_channels}"
