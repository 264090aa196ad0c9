"""Bridge: what lies between two layers: batch norm, ReLU and dropout."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.kernels.bridges import Relu
from unalike.methods.layers.affine import Affine, Hidden, Weight, times
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.rectified_sum import rectified_sum

Offset = Float[Tensor, " _"]


class Bridge(nn.Module):
    """A norm, mostly a batch norm, with a ReLU before or after it, and dropout."""

    def __init__(
        self, norm: nn.Module, dropout: float, *, relu: Relu = "after"
    ) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.relu: Relu = relu

    def forward(
        self,
        x: Float[Tensor, "nodes _"],
        *,
        into: Weight | None = None,
        offset: Offset | None = None,
        out_of: Weight | None = None,
    ) -> Float[Tensor, "nodes _"]:
        """Cross from the product with one weight, where given, to that with another.

        An offset is added to the first product.
        """
        if isinstance(self.norm, nn.BatchNorm1d) and not self.training:
            return self._settled(Affine(x, into, offset), out_of, self.norm)
        if isinstance(self.norm, nn.BatchNorm1d) and x.is_cuda:
            return self._on_card(x, into, offset, out_of, self.norm)
        x = Affine(x, into, offset).value()
        x = torch.relu(x) if self.relu == "before" else x
        x = self.norm(x)
        x = torch.relu(x) if self.relu == "after" else x
        return times(self.dropout(x), out_of)

    def _settled(
        self, x: Affine, out_of: Weight | None, norm: nn.BatchNorm1d
    ) -> Float[Tensor, "nodes _"]:
        """The same when nothing is learned: products take the norm along."""
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
            self.dropout.rate[None],
            seed,
            None if out_of is None else out_of[None],
            self.relu,
        )
        follow(norm, mean[0], variance[0] * (len(x) / max(1, len(x) - 1)))
        return crossed[0]


class Shift(nn.Module):
    """An offset, for where no batch norm has one.

    Before a batch norm it would do nothing: the norm takes it away again, its gradient
    is made of rounding errors, and AdamW follows those faster than averages can.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
        return x + self.offset.to(x.dtype)


def batch_norm_or_shift(width: int, *, normed: bool) -> nn.Module:
    """What stands behind a layer that has no offset of its own."""
    return nn.BatchNorm1d(width) if normed else Shift(width)


class BridgedLinear(nn.Module):
    """A linear map of what has crossed a bridge; its offset is still to be added."""

    def __init__(self, inputs: int, outputs: int, dropout: float, relu: Relu) -> None:
        super().__init__()
        self.bridge = Bridge(nn.BatchNorm1d(inputs), dropout, relu=relu)
        self.linear = nn.Linear(inputs, outputs)
        self.joined = False
        """Is the product left untaken in training too, for others to join it?"""

    def forward(self, x: Hidden) -> Affine:
        before = Affine.of(x)
        norm, weight, offset = self.bridge.norm, self.linear.weight.T, self.linear.bias
        early = self.bridge.relu == "before"
        if isinstance(norm, nn.BatchNorm1d) and not self.training and early:
            return normed_map(rectified_sum(None, before), norm, weight, offset)
        taken = before.product()
        if self.joined:
            return Affine(self.bridge(taken.rows, offset=taken.offset), weight, offset)
        crossed = self.bridge(taken.rows, offset=taken.offset, out_of=weight)
        return Affine(crossed, None, offset)


def settled(
    norm: nn.BatchNorm1d,
) -> tuple[Float[Tensor, " width"], Float[Tensor, " width"]]:
    """What a batch norm that does not learn multiplies by, and what it adds."""
    gain = norm.weight * (norm.get_buffer("running_var") + norm.eps).rsqrt()
    return gain, norm.bias - norm.get_buffer("running_mean") * gain


def normed_map(
    rows: Float[Tensor, "nodes _"],
    norm: nn.BatchNorm1d,
    weight: Weight,
    offset: Offset | None,
) -> Affine:
    """A linear map of rows that a settled batch norm has yet to see."""
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
    """Move the running statistics of a batch norm as its own forward pass would."""
    share = 0.0 if norm.momentum is None else norm.momentum
    for name, now in (("running_mean", mean), ("running_var", variance)):
        norm.get_buffer(name).mul_(1 - share).add_(share * now)
    norm.get_buffer("num_batches_tracked").add_(1)
