"""Bridge: what lies between two layers: batch norm, ReLU and dropout."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.kernels.bridges import Relu
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.rectified_sum import rectified_sum

Weight = Float[Tensor, "_ _"]


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
        out_of: Weight | None = None,
    ) -> Float[Tensor, "nodes _"]:
        """Cross from the product with one weight, where given, to that with another."""
        if isinstance(self.norm, nn.BatchNorm1d) and not self.training:
            return self._settled(x, into, out_of, self.norm)
        if isinstance(self.norm, nn.BatchNorm1d) and x.is_cuda:
            return self._on_card(x, into, out_of, self.norm)
        x = times(x, into)
        x = torch.relu(x) if self.relu == "before" else x
        x = self.norm(x)
        x = torch.relu(x) if self.relu == "after" else x
        return times(self.dropout(x), out_of)

    def _settled(
        self,
        x: Float[Tensor, "nodes _"],
        into: Weight | None,
        out_of: Weight | None,
        norm: nn.BatchNorm1d,
    ) -> Float[Tensor, "nodes _"]:
        """The same when nothing is learned: products take the norm along."""
        gain = norm.weight * (norm.get_buffer("running_var") + norm.eps).rsqrt()
        shift = norm.bias - norm.get_buffer("running_mean") * gain
        if self.relu == "before":
            x = torch.relu(times(x, into))
            if out_of is None:
                return torch.addcmul(shift.to(x.dtype), x, gain.to(x.dtype))
            return times(x, gain[:, None] * out_of) + (shift @ out_of).to(x.dtype)
        if into is not None and self.relu == "after":
            return times(rectified_sum(shift, (x, into * gain)), out_of)
        x = torch.addcmul(shift.to(x.dtype), times(x, into), gain.to(x.dtype))
        return times(torch.relu(x) if self.relu == "after" else x, out_of)

    def _on_card(
        self,
        x: Float[Tensor, "nodes _"],
        into: Weight | None,
        out_of: Weight | None,
        norm: nn.BatchNorm1d,
    ) -> Float[Tensor, "nodes _"]:
        from unalike.methods.layers.crossing import Crossing

        seed = torch.randint(2**31 - 1, (1,), device=x.device)
        crossed, mean, variance = Crossing.apply(
            x[None],
            None if into is None else into[None],
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
    """A linear map of what has crossed a bridge."""

    def __init__(self, inputs: int, outputs: int, dropout: float, relu: Relu) -> None:
        super().__init__()
        self.bridge = Bridge(nn.BatchNorm1d(inputs), dropout, relu=relu)
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Float[Tensor, "nodes inputs"]) -> Float[Tensor, "nodes _"]:
        crossed = self.bridge(x, out_of=self.linear.weight.T)
        return crossed + self.linear.bias.to(crossed.dtype)


def times(
    x: Float[Tensor, "*runs nodes _"], weight: Float[Tensor, "*runs _ _"] | None
) -> Float[Tensor, "*runs nodes _"]:
    """The product with a weight, where there is one, in the precision of x."""
    return x if weight is None else x @ weight.to(x.dtype)


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
