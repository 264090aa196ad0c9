"""SAGEConv and GINConv as in PyTorch Geometric: means and sums over incoming edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.errors import InputError
from unalike.pyg.edges import as_edges
from unalike.pyg.linear import Linear, check_message_passing_options, reset
from unalike.pyg.operators import propagate

Features = Tensor | tuple[Tensor, Tensor | None]
"""The features of all nodes, or of sources and targets of a bipartite graph."""

AGGREGATIONS = {"mean": "mean", "add": "sum", "sum": "sum"}
"""The aggregations of SAGEConv and how the operator calls them."""


def as_pair(x: Features) -> tuple[Tensor, Tensor | None]:
    """The features of sources and of targets."""
    return (x, x) if isinstance(x, Tensor) else (x[0], x[1])


def number_of_targets(
    sources: Tensor, targets: Tensor | None, size: tuple[int, int] | None
) -> int:
    """The number of rows of the output."""
    if targets is not None:
        return targets.shape[0]
    return sources.shape[0] if size is None else size[1]


class SAGEConv(nn.Module):
    """W_l mean_j x_j + W_r x_i (Hamilton et al. 2017), `torch_geometric.nn.SAGEConv`.

    The aggregation is `mean` or `sum`.
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        aggr: Any = "mean",
        normalize: bool = False,
        root_weight: bool = True,
        project: bool = False,
        bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        check_message_passing_options("SAGEConv", options)
        if not isinstance(aggr, str) or aggr not in AGGREGATIONS:
            raise InputError(
                f"unalike's SAGEConv does not support aggr={aggr!r}; supported: "
                f"{', '.join(map(repr, AGGREGATIONS))}."
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.aggr, self.normalize = aggr, normalize
        self.root_weight, self.project = root_weight, project
        if isinstance(in_channels, int):
            in_channels = (in_channels, in_channels)
        sources, targets = in_channels
        if project:
            self.lin = Linear(sources, sources, bias=True)
        self.lin_l = Linear(sources, out_channels, bias=bias)
        if root_weight:
            self.lin_r = Linear(targets, out_channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for child in self.children():
            reset(child)

    def forward(
        self, x: Features, edge_index: Any, size: tuple[int, int] | None = None
    ) -> Tensor:
        sources, targets = as_pair(x)
        if self.project:
            sources = self.lin(sources).relu()
        count = number_of_targets(sources, targets, size)
        edges, norm = as_edges(edge_index), AGGREGATIONS[self.aggr]
        narrow = self.lin_l.in_features <= self.lin_l.out_features
        if narrow and sources.layout == torch.strided:
            out = self.lin_l(propagate(sources, edges, count, norm))
        else:
            columns = F.linear(sources, self.lin_l.weight)
            out = propagate(columns, edges, count, norm)
            out = out if self.lin_l.bias is None else out + self.lin_l.bias
        if self.root_weight and targets is not None:
            out = out + self.lin_r(targets)
        return F.normalize(out, p=2.0, dim=-1) if self.normalize else out

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, aggr={self.aggr}"


class GINConv(nn.Module):
    """nn((1 + eps) x_i + sum_j x_j) (Xu et al. 2019), `torch_geometric.nn.GINConv`."""

    eps: Tensor

    def __init__(
        self,
        nn: Callable[[Tensor], Tensor],
        eps: float = 0.0,
        train_eps: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        check_message_passing_options("GINConv", options)
        self.nn, self.initial_eps = nn, eps
        if train_eps:
            self.eps = torch.nn.Parameter(torch.empty(1))
        else:
            self.register_buffer("eps", torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        if isinstance(self.nn, nn.Module):
            reset(self.nn)
        self.eps.data.fill_(self.initial_eps)

    def forward(
        self, x: Features, edge_index: Any, size: tuple[int, int] | None = None
    ) -> Tensor:
        sources, targets = as_pair(x)
        count = number_of_targets(sources, targets, size)
        own = None if targets is None else torch.addcmul(targets, targets, self.eps)
        edges = as_edges(edge_index)
        return self.nn(propagate(sources, edges, count, "sum", residual=own))
