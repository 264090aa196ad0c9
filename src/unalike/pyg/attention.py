"""GATConv and GATv2Conv as in PyTorch Geometric, without a message for each edge."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unalike.errors import InputError
from unalike.nn.attention import block_diagonal
from unalike.pyg.attention_operators import (
    ONE_LOOP_PER_NODE,
    gat_attention,
    gatv2_attention,
)
from unalike.pyg.edges import Edges, as_edges
from unalike.pyg.linear import Linear, check_message_passing_options, glorot_, reset
from unalike.pyg.operators import check_features
from unalike.pyg.sage_gin import Features, as_pair


class AttentionConv(nn.Module):
    """The base of attention layers: options, heads, residual, bias."""

    bias: nn.Parameter | None
    res: Linear | None

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int,
        concat: bool,
        negative_slope: float,
        dropout: float,
        add_self_loops: bool,
        edge_dim: int | None,
        residual: bool,
        options: dict[str, Any],
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_message_passing_options(name, options)
        if edge_dim is not None:
            raise InputError(f"unalike's {name} does not support edge_dim.")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.heads, self.concat = heads, concat
        self.negative_slope, self.dropout = negative_slope, dropout
        self.add_self_loops, self.residual = add_self_loops, residual
        self.edge_dim = edge_dim

    @property
    def input_sizes(self) -> tuple[int, int]:
        """The columns of sources and of targets."""
        if isinstance(self.in_channels, tuple | list):
            return self.in_channels[0], self.in_channels[1]
        return self.in_channels, self.in_channels

    def make_linear(self, in_channels: int, *, bias: bool = False) -> Linear:
        """A linear layer to all heads."""
        columns = self.heads * self.out_channels
        return Linear(in_channels, columns, bias=bias, glorot=True)

    def make_attention_vector(self) -> nn.Parameter:
        """A weight for each column of each head."""
        return nn.Parameter(torch.empty(1, self.heads, self.out_channels))

    def make_residual_and_bias(self, *, bias: bool) -> None:
        """Parameters of what is added to the attention-weighted sums."""
        columns = self.out_channels * (self.heads if self.concat else 1)
        self.res = None
        if self.residual:
            self.res = Linear(self.input_sizes[1], columns, bias=False, glorot=True)
        empty = nn.Parameter(torch.empty(columns)) if bias else None
        self.register_parameter("bias", empty)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for child in filter(None, self._modules.values()):
            reset(child)
        for name, parameter in self.named_parameters(recurse=False):
            if name == "bias":
                nn.init.zeros_(parameter)
            else:
                glorot_(parameter)

    def check_call(
        self, x: Features, edge_attr: Tensor | None, return_weights: bool | None
    ) -> None:
        """Refuse what the kernels do not compute."""
        name = type(self).__name__
        check_features(as_pair(x)[0])
        if edge_attr is not None:
            raise InputError(f"unalike's {name} does not support edge_attr.")
        if return_weights:
            raise InputError(
                f"unalike's {name} does not store attention weights; without "
                "return_attention_weights it returns the output alone."
            )

    def combine(self, out: Tensor, x_targets: Tensor | None) -> Tensor:
        """The heads side by side or their mean, with residual and bias."""
        out = out.flatten(1) if self.concat else out.mean(1)
        if self.res is not None and x_targets is not None:
            out = out + self.res(x_targets)
        return out if self.bias is None else out + self.bias

    def number_of_loops(self, num_sources: int, num_targets: int) -> int:
        """Self-loops that are added: of the nodes that are source and target."""
        return min(num_sources, num_targets) if self.add_self_loops else 0

    def sample_dropout(
        self, x: Tensor, edges: Edges, num_loops: int
    ) -> tuple[Tensor | None, float]:
        """The attention weights that dropout keeps, and their factor."""
        if not self.training or self.dropout <= 0:
            return None, 1.0
        count = edges.indices.shape[-1] + num_loops
        return sample_kept(x, count, self.heads, self.dropout)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"


class GATConv(AttentionConv):
    """Attention of Veličković et al. (2018), `torch_geometric.nn.GATConv`."""

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: Any = "mean",
        bias: bool = True,
        residual: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            heads,
            concat,
            negative_slope,
            dropout,
            add_self_loops,
            edge_dim,
            residual,
            options,
        )
        if not 0 <= negative_slope <= 1:
            raise InputError(f"negative_slope is {negative_slope}; give 0 to 1.")
        self.lin = self.lin_src = self.lin_dst = None
        if isinstance(in_channels, int):
            self.lin = self.make_linear(in_channels)
        else:
            self.lin_src, self.lin_dst = map(self.make_linear, self.input_sizes)
        self.att_src = self.make_attention_vector()
        self.att_dst = self.make_attention_vector()
        self.make_residual_and_bias(bias=bias)

    def forward(
        self,
        x: Features,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor:
        self.check_call(x, edge_attr, return_attention_weights)
        edges = as_edges(edge_index)
        if isinstance(x, Tensor) and self.lin is not None:
            columns = self.lin(x)
            vectors = (self.att_src, self.att_dst)
            weight = [
                block_diagonal(vector.flatten(), self.heads) for vector in vectors
            ]
            scores = columns @ torch.cat(weight, 1).to(columns.dtype)
            source, target = scores.chunk(2, 1)
            x_targets: Tensor | None = x
        else:
            sources, x_targets = (x, x) if isinstance(x, Tensor) else x
            columns = self._transform(sources, self.lin_src)
            source = self._scores(columns, self.att_src)
            target = self._target_scores(x_targets, source, size)
        out = self.attend(columns.unflatten(1, (self.heads, -1)), source, target, edges)
        return self.combine(out, x_targets)

    def _transform(self, x: Tensor, lin: Linear | None) -> Tensor:
        lin = self.lin if lin is None else lin
        assert lin is not None
        return lin(x)

    def _scores(self, columns: Tensor, vector: Tensor) -> Tensor:
        return (columns.unflatten(1, (self.heads, -1)) * vector).sum(-1)

    def _target_scores(
        self, x_targets: Tensor | None, source: Tensor, size: tuple[int, int] | None
    ) -> Tensor:
        if x_targets is not None:
            columns = self._transform(x_targets, self.lin_dst)
            return self._scores(columns, self.att_dst)
        count = source.shape[0] if size is None else size[1]
        return source.new_zeros(count, self.heads)

    def attend(self, x: Tensor, source: Tensor, target: Tensor, edges: Edges) -> Tensor:
        """The attention-weighted sums of x over incoming edges."""
        num_loops = self.number_of_loops(x.shape[0], target.shape[0])
        square = x.shape[0] == target.shape[0]
        one_loop_each = self.add_self_loops and square
        keep, keep_scale = self.sample_dropout(x, edges, num_loops)
        return gat_attention(
            (x, source, target),
            keep,
            edges,
            ONE_LOOP_PER_NODE if one_loop_each else num_loops,
            self.negative_slope,
            keep_scale,
        )


def sample_kept(
    like: Tensor, count: int, heads: int, dropout: float
) -> tuple[Tensor, float]:
    """Sample the attention weights that remain, and their factor."""
    empty = torch.empty(count, heads, dtype=torch.uint8, device=like.device)
    return empty.bernoulli_(1 - dropout), 1 / (1 - dropout) if dropout < 1 else 0.0


class GATv2Conv(AttentionConv):
    """Attention of Brody et al. (2022), `torch_geometric.nn.GATv2Conv`."""

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: Any = "mean",
        bias: bool = True,
        share_weights: bool = False,
        residual: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            heads,
            concat,
            negative_slope,
            dropout,
            add_self_loops,
            edge_dim,
            residual,
            options,
        )
        self.share_weights = share_weights
        sources, targets = self.input_sizes
        self.lin_l = self.make_linear(sources, bias=bias)
        self.lin_r = self.lin_l
        if not share_weights:
            self.lin_r = self.make_linear(targets, bias=bias)
        self.att = self.make_attention_vector()
        self.make_residual_and_bias(bias=bias)

    def forward(
        self,
        x: Features,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor:
        self.check_call(x, edge_attr, return_attention_weights)
        edges = as_edges(edge_index)
        sources, targets = as_pair(x)
        if targets is None:
            raise InputError("GATv2Conv needs features of the targets.")
        left = self.lin_l(sources).unflatten(1, (self.heads, -1))
        shared = isinstance(x, Tensor) and self.share_weights
        right = left
        if not shared:
            right = self.lin_r(targets).unflatten(1, (self.heads, -1))
        return self.combine(self.attend(left, right, edges), targets)

    def attend(self, left: Tensor, right: Tensor, edges: Edges) -> Tensor:
        """The attention-weighted sums of `left` over incoming edges."""
        num_loops = self.number_of_loops(left.shape[0], right.shape[0])
        keep, keep_scale = self.sample_dropout(left, edges, num_loops)
        vector = self.att.squeeze(0).to(left.dtype)
        options = (num_loops, self.negative_slope, keep_scale)
        return gatv2_attention((left, right, vector), keep, edges, *options)
