"""Batch norm, ReLU and dropout as one block, with the linear layers around it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.kernels.bridges import Relu
from unalike.methods.layers.affine import Affine, Hidden, Weight, times
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.entry import DenseLinear
from unalike.methods.layers.rectified_sum import rectified_sum
from unalike.training.network import Init

Offset = Float[Tensor, " _"]


class Bridge(nn.Module):
    """dropout(relu(norm(x))), with the ReLU before or behind the norm.

    In evaluation the batch norm is folded into the weights around it; in training on a
    GPU all is one fused kernel.
    """

    def __init__(
        self, norm: nn.Module, dropout: float, *, relu: Relu = "after"
    ) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.relu: Relu = relu

    def forward(self, x: Float[Tensor, "nodes _"]) -> Float[Tensor, "nodes _"]:
        return self._between(x)

    def _between(
        self,
        x: Float[Tensor, "nodes _"],
        *,
        weight_in: Weight | None = None,
        bias_in: Offset | None = None,
        weight_out: Weight | None = None,
    ) -> Float[Tensor, "nodes _"]:
        """The block between two linear layers: block(x W_in + b_in) W_out."""
        if isinstance(self.norm, nn.BatchNorm1d) and not self.training:
            linear = Affine(x, weight_in, bias_in)
            return self._settled(linear, weight_out, self.norm)
        if isinstance(self.norm, nn.BatchNorm1d) and x.is_cuda:
            return self._on_card(x, weight_in, bias_in, weight_out, self.norm)
        x = Affine(x, weight_in, bias_in).value()
        x = torch.relu(x) if self.relu == "before" else x
        x = self.norm(x)
        x = torch.relu(x) if self.relu == "after" else x
        return times(self.dropout(x), weight_out)

    def _settled(
        self, x: Affine, out_of: Weight | None, norm: nn.BatchNorm1d
    ) -> Float[Tensor, "nodes _"]:
        """The block in evaluation: the norm is folded into the products."""
        gain, shift = settled(norm)
        if self.relu == "before":
            rows = rectified_sum(None, x)
            if out_of is not None:
                return normed_map(rows, norm, out_of, None).value()
            return torch.addcmul(shift.to(rows.dtype), rows, gain.to(rows.dtype))
        if x.weight is not None and self.relu == "after":
            moved = None if x.offset is None else x.offset * gain
            normed = Affine(x.rows, x.weight * gain, moved)
            return times(rectified_sum(shift, normed), out_of)
        rows = x.value()
        rows = torch.addcmul(shift.to(rows.dtype), rows, gain.to(rows.dtype))
        return times(torch.relu(rows) if self.relu == "after" else rows, out_of)

    def _on_card(
        self,
        x: Float[Tensor, "nodes _"],
        into: Weight | None,
        offset: Offset | None,
        out_of: Weight | None,
        norm: nn.BatchNorm1d,
    ) -> Float[Tensor, "nodes _"]:
        from unalike.methods.layers.crossing import Crossing

        seed = torch.randint(2**31 - 1, (1,), device=x.device)
        crossed, mean, variance = Crossing.apply(
            x[None],
            None if into is None else into[None],
            (torch.zeros_like(norm.bias) if offset is None else offset)[None],
            norm.weight[None],
            norm.bias[None],
            self.dropout.p[None],
            seed,
            None if out_of is None else out_of[None],
            self.relu,
        )
        follow(norm, mean[0], variance[0] * (len(x) / max(1, len(x) - 1)))
        return crossed[0]


class LinearNormActDrop(Bridge):
    """dropout(relu(norm(x W))) for a weight that the caller has."""

    def forward(
        self, x: Float[Tensor, "nodes _"], weight: Weight | None = None
    ) -> Float[Tensor, "nodes _"]:
        return self._between(x, weight_in=weight)


class Shift(nn.Module):
    """A bias, for layers without a batch norm.

    In front of a batch norm it would do nothing: the norm subtracts it again, its
    gradient is rounding error, and AdamW follows that faster than averages can.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
        return x + self.bias.to(x.dtype)


def batch_norm_or_shift(width: int, *, normed: bool) -> nn.Module:
    """What follows a layer that has no bias of its own."""
    return nn.BatchNorm1d(width) if normed else Shift(width)


class NormActDropLinear(nn.Module):
    """dropout(relu(norm(x))) W + b.

    `act` says whether the ReLU is before or behind the norm. Without `batch_norm` a
    bias takes the place of the norm. With `init="glorot"` W has no bias behind it.
    """

    linear: nn.Linear | DenseLinear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        dropout: float,
        *,
        act: Relu = "after",
        batch_norm: bool = True,
        init: Init = "linear",
        defer: bool = False,
    ) -> None:
        super().__init__()
        norm = batch_norm_or_shift(in_features, normed=batch_norm)
        self.norm_act_drop = Bridge(norm, dropout, relu=act)
        self.linear = (
            nn.Linear(in_features, out_features)
            if init == "linear"
            else DenseLinear(in_features, out_features, bias=False, init=init)
        )
        self.deferred = defer
        """Is the product left to the next layer in training too?"""

    def forward(self, x: Float[Tensor, "nodes _"]) -> Float[Tensor, "nodes _"]:
        return self.defer(x).value()

    def with_hidden(
        self, x: Float[Tensor, "nodes _"]
    ) -> tuple[Float[Tensor, "nodes _"], Float[Tensor, "nodes _"]]:
        """relu(norm(x)) before dropout, and the output."""
        hidden = torch.relu(self.norm_act_drop.norm(x))
        return hidden, self.norm_act_drop.dropout(hidden) @ self._weight

    def defer(self, x: Hidden) -> Affine:
        """The output with its bias, and mostly its product, still to be computed."""
        before, block = Affine.of(x), self.norm_act_drop
        norm, weight, bias = block.norm, self._weight, self.linear.bias
        early = block.relu == "before"
        if isinstance(norm, nn.BatchNorm1d) and not self.training and early:
            return normed_map(rectified_sum(None, before), norm, weight, bias)
        taken = before.product()
        if self.deferred:
            hidden = block._between(taken.rows, bias_in=taken.offset)
            return Affine(hidden, weight, bias)
        out = block._between(taken.rows, bias_in=taken.offset, weight_out=weight)
        return Affine(out, None, bias)

    @property
    def _weight(self) -> Weight:
        weight = self.linear.weight
        return weight.T if isinstance(self.linear, nn.Linear) else weight


def settled(
    norm: nn.BatchNorm1d,
) -> tuple[Float[Tensor, " width"], Float[Tensor, " width"]]:
    """The scale and the bias that a batch norm amounts to in evaluation."""
    gain = norm.weight * (norm.get_buffer("running_var") + norm.eps).rsqrt()
    return gain, norm.bias - norm.get_buffer("running_mean") * gain


def normed_map(
    rows: Float[Tensor, "nodes _"],
    norm: nn.BatchNorm1d,
    weight: Weight,
    offset: Offset | None,
) -> Affine:
    """A linear layer with the batch norm in front folded into it."""
    gain, shift = settled(norm)
    moved = shift @ weight
    moved = moved if offset is None else moved + offset
    return Affine(rows, gain[:, None] * weight, moved)


@torch.no_grad()
def follow(
    norm: nn.BatchNorm1d,
    mean: Float[Tensor, " width"],
    variance: Float[Tensor, " width"],
) -> None:
    """Update the running statistics of a batch norm as its forward pass does."""
    share = 0.0 if norm.momentum is None else norm.momentum
    for name, now in (("running_mean", mean), ("running_var", variance)):
        norm.get_buffer(name).mul_(1 - share).add_(share * now)
    norm.get_buffer("num_batches_tracked").add_(1)
