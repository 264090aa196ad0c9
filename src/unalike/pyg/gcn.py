"""GCNConv, GCN2Conv, APPNP, SGConv and MixHopConv as in PyTorch Geometric.

All of them multiply by D^-1/2 (A + L) D^-1/2, which is never written out unless the
edge weights need a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.errors import InputError
from unalike.pyg.edges import Edges, as_edges, edge_ends
from unalike.pyg.linear import Linear, check_message_passing_options, glorot_, reset
from unalike.pyg.operators import NO_SELF_LOOPS, propagate


class GCNPropagation(nn.Module):
    """The base of layers that propagate with the symmetrically normalised adjacency."""

    def __init__(
        self,
        *,
        add_self_loops: bool,
        normalize: bool = True,
        improved: bool = False,
        cached: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        check_message_passing_options(type(self).__name__, options)
        self.add_self_loops, self.normalize = add_self_loops, normalize
        self.improved, self.cached = improved, cached
        self._cached_edges: Edges | None = None

    def reset_parameters(self) -> None:
        """Forget cached edges; layers with parameters draw new ones."""
        self._cached_edges = None

    def edges(self, edge_index: Any, edge_weight: Tensor | None) -> Edges:
        """The edges of this call, or of the first one if the layer caches them."""
        if self._cached_edges is not None:
            return self._cached_edges
        edges = as_edges(edge_index, edge_weight)
        if self.cached and self.normalize:
            self._cached_edges = edges
        return edges

    def propagate(
        self,
        x: Tensor,
        edges: Edges,
        *,
        scale: float = 1.0,
        residual: Tensor | None = None,
        restart: float = 0.0,
        steps: int = 1,
    ) -> Tensor:
        """scale * Â x + residual; or steps that add `restart` times the first x."""
        if not _needs_grad(edges.weight):
            norm: tuple[Any, ...] = ("sum",)
            if self.normalize:
                loops = edges.self_loops if self.add_self_loops else NO_SELF_LOOPS
                norm = ("gcn", loops, self.fill)
            return propagate(
                x,
                edges,
                x.shape[0],
                *norm,
                scale=scale,
                residual=residual,
                restart=restart,
                steps=steps,
            )
        loop_weight = None
        if self.normalize:
            edges, loop_weight = self.normalized(x, edges)
        if restart != 0:
            residual = restart * x
        for _ in range(steps):
            x = propagate_weighted(x, edges, loop_weight, scale, residual)
        return x

    @property
    def fill(self) -> float:
        """The weight of the self-loops."""
        return 2.0 if self.improved else 1.0

    def normalized(self, x: Tensor, edges: Edges) -> tuple[Edges, Tensor | None]:
        """Edges with normalised weights, and the weights of the self-loops."""
        return normalize_weights(edges, x, self.fill if self.add_self_loops else None)


def _needs_grad(weight: Tensor | None) -> bool:
    return weight is not None and weight.requires_grad and torch.is_grad_enabled()


def normalize_weights(
    edges: Edges, x: Tensor, fill: float | None
) -> tuple[Edges, Tensor | None]:
    """Weights of D^-1/2 (A + L) D^-1/2 with gradients: of the edges, of the loops."""
    num_nodes = x.shape[0]
    source, target = edge_ends(edges)
    weight, loop_weight = edges.weight, None
    if weight is None:
        dtype = torch.promote_types(x.dtype, torch.float32)
        weight = torch.ones_like(source, dtype=dtype)
        if fill is not None and edges.self_loops == "remaining":
            fill = 1.0  # as in PyG
    if fill is not None:
        is_loop = source == target
        if edges.self_loops == "remaining":
            loop_weight = _kept_loops(weight, is_loop, target, num_nodes, fill)
        else:
            loop_weight = weight.new_full((num_nodes,), fill)
        if edges.self_loops != "added":
            weight = weight.masked_fill(is_loop, 0)
    ones = weight.new_ones(num_nodes, 1)
    degrees = propagate(ones, edges._replace(weight=weight), num_nodes, "sum")[:, 0]
    degrees = degrees if loop_weight is None else degrees + loop_weight
    scale = degrees.pow(-0.5)
    scale = scale.masked_fill(scale == torch.inf, 0)
    normalized = scale[source] * weight * scale[target]
    if loop_weight is not None:
        loop_weight = scale * loop_weight * scale
    return edges._replace(weight=normalized), loop_weight


def _kept_loops(
    weight: Tensor, is_loop: Tensor, target: Tensor, num_nodes: int, fill: float
) -> Tensor:
    """The weight of each node's last self-loop, `fill` for nodes without one."""
    edge = torch.arange(weight.shape[0], device=weight.device)
    last = torch.full((num_nodes,), -1, device=weight.device)
    last = last.scatter_reduce(0, target.long(), edge.where(is_loop, -1), "amax")
    if weight.shape[0] == 0:
        return weight.new_full((num_nodes,), fill)
    return torch.where(last >= 0, weight[last.clamp(min=0)], fill)


def propagate_weighted(
    x: Tensor,
    edges: Edges,
    loop_weight: Tensor | None,
    scale: float = 1.0,
    residual: Tensor | None = None,
) -> Tensor:
    """scale * (A + L) x + residual with weights that are normalised already."""
    out = propagate(x, edges, x.shape[0], "sum", scale=scale, residual=residual)
    if loop_weight is None:
        return out
    return out + (scale * loop_weight)[:, None].to(x.dtype) * x


def _refuse_pair(layer: nn.Module, x: Any) -> None:
    if isinstance(x, tuple | list):
        raise InputError(f"{type(layer).__name__} does not take bipartite graphs.")


class GCNConv(GCNPropagation):
    """Â x W + b (Kipf and Welling 2017), `torch_geometric.nn.GCNConv`."""

    bias: nn.Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        improved: bool = False,
        cached: bool = False,
        add_self_loops: bool | None = None,
        normalize: bool = True,
        bias: bool = True,
        **options: Any,
    ) -> None:
        loops = normalize if add_self_loops is None else add_self_loops
        if loops and not normalize:
            raise InputError("GCNConv adds self-loops only where it normalises.")
        super().__init__(
            add_self_loops=loops,
            normalize=normalize,
            improved=improved,
            cached=cached,
            **options,
        )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = Linear(in_channels, out_channels, bias=False, glorot=True)
        empty = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.register_parameter("bias", empty)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        super().reset_parameters()
        self.lin.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        _refuse_pair(self, x)
        edges = self.edges(edge_index, edge_weight)
        if self.in_channels <= self.out_channels and x.layout == torch.strided:
            # Fewer columns to propagate, and no sparse product in the backward pass of
            # a first layer.
            out = F.linear(self.propagate(x, edges), self.lin.weight, self.bias)
        else:
            out = self.propagate(self.lin(x), edges)
            out = out if self.bias is None else out + self.bias
        return out

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"


class GCN2Conv(GCNPropagation):
    """The layer of GCNII (Chen et al. 2020), `torch_geometric.nn.GCN2Conv`."""

    weight2: nn.Parameter | None

    def __init__(
        self,
        channels: int,
        alpha: float,
        theta: float | None = None,
        layer: int | None = None,
        shared_weights: bool = True,
        cached: bool = False,
        add_self_loops: bool = True,
        normalize: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(
            add_self_loops=add_self_loops,
            normalize=normalize,
            cached=cached,
            **options,
        )
        if (theta is None) != (layer is None):
            raise InputError("GCN2Conv needs theta and layer together.")
        self.channels, self.alpha, self.beta = channels, alpha, 1.0
        if theta is not None and layer is not None:
            self.beta = math.log(theta / layer + 1)
        self.weight1 = nn.Parameter(torch.empty(channels, channels))
        second = None if shared_weights else torch.empty(channels, channels)
        self.register_parameter(
            "weight2", None if second is None else nn.Parameter(second)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        super().reset_parameters()
        for weight in self.parameters():
            glorot_(weight)

    def forward(
        self,
        x: Tensor,
        x_0: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        edges = self.edges(edge_index, edge_weight)
        initial = self.alpha * x_0[: x.shape[0]]
        if self.weight2 is None:
            out = self.propagate(x, edges, scale=1 - self.alpha, residual=initial)
            return self.mix(out, self.weight1)
        out = self.propagate(x, edges, scale=1 - self.alpha)
        return self.mix(out, self.weight1) + self.mix(initial, self.weight2)

    def mix(self, x: Tensor, weight: Tensor) -> Tensor:
        """(1 - beta) x + beta x W."""
        return torch.addmm(x, x, weight, beta=1 - self.beta, alpha=self.beta)

    def extra_repr(self) -> str:
        return f"{self.channels}, alpha={self.alpha}, beta={self.beta}"


class APPNP(GCNPropagation):
    """K steps of personalised PageRank (Gasteiger et al. 2019)."""

    def __init__(
        self,
        K: int,
        alpha: float,
        dropout: float = 0.0,
        cached: bool = False,
        add_self_loops: bool = True,
        normalize: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(
            add_self_loops=add_self_loops,
            normalize=normalize,
            cached=cached,
            **options,
        )
        self.K, self.alpha, self.dropout = K, alpha, dropout

    def forward(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        edges = self.edges(edge_index, edge_weight)
        if self.training and self.dropout > 0:
            return self._with_dropout(x, edges)
        if self.K == 0:
            return x
        scale, restart = 1 - self.alpha, self.alpha
        return self.propagate(x, edges, scale=scale, restart=restart, steps=self.K)

    def _with_dropout(self, x: Tensor, edges: Edges) -> Tensor:
        """Drop normalised weights; as in PyG, later steps drop some of the rest."""
        loops, initial = None, self.alpha * x
        if self.normalize:
            edges, loops = self.normalized(x, edges)
        if edges.weight is None:
            raise InputError("APPNP drops edge weights, but there are none.")
        for _ in range(self.K):
            edges = edges._replace(weight=F.dropout(edges.weight, self.dropout))
            loops = None if loops is None else F.dropout(loops, self.dropout)
            x = propagate_weighted(x, edges, loops, 1 - self.alpha, initial)
        return x

    def extra_repr(self) -> str:
        return f"K={self.K}, alpha={self.alpha}"


class SGConv(GCNPropagation):
    """Â^K x W + b (Wu et al. 2019), `torch_geometric.nn.SGConv`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        K: int = 1,
        cached: bool = False,
        add_self_loops: bool = True,
        bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(add_self_loops=add_self_loops, **options)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.K, self.cached = K, cached
        self._cached_x: Tensor | None = None
        self.lin = Linear(in_channels, out_channels, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        self.lin.reset_parameters()
        self._cached_x = None

    def forward(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        if self._cached_x is not None:
            return self.lin(self._cached_x.detach())
        edges = as_edges(edge_index, edge_weight)
        x = self.propagate(x, edges, steps=self.K) if self.K else x
        if self.cached:
            self._cached_x = x
        return self.lin(x)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, K={self.K}"


class MixHopConv(GCNPropagation):
    """Â^p x W_p side by side (Abu-El-Haija et al. 2019)."""

    bias: nn.Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        powers: Sequence[int] | None = None,
        add_self_loops: bool = True,
        bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(add_self_loops=add_self_loops, **options)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.powers = [0, 1, 2] if powers is None else list(powers)
        self.lins = nn.ModuleList(
            Linear(in_channels, out_channels, bias=False)
            if power in self.powers
            else nn.Identity()
            for power in range(max(self.powers) + 1)
        )
        columns = len(self.powers) * out_channels
        empty = nn.Parameter(torch.empty(columns)) if bias else None
        self.register_parameter("bias", empty)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for power in sorted(set(self.powers)):
            reset(self.lins[power])
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        edges = as_edges(edge_index, edge_weight)
        outs = [self.lins[0](x)]
        for lin in self.lins[1:]:
            x = self.propagate(x, edges)
            outs.append(lin(x))
        out = torch.cat([outs[power] for power in self.powers], -1)
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, powers={self.powers}"
