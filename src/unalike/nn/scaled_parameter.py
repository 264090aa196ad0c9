"""A parameter with its own learning rate and L2 penalty under Adam."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import Function


class ScaledParameter(nn.Module):
    """A parameter that learns `lr` times as fast as others, with an L2 penalty.

    The steps of Adam do not depend on the scale of a gradient, so that `lr` times a
    parameter that starts at 1 / `lr` of the value moves `lr` times as far.
    """

    def __init__(
        self, value: Float[Tensor, "*shape"], *, lr: float = 1.0, decay: float = 0.0
    ) -> None:
        super().__init__()
        self.scaled = nn.Parameter(value / lr)
        self.lr, self.decay = lr, decay

    def forward(self) -> Float[Tensor, "*shape"]:
        value: Tensor = self.lr * self.scaled
        return L2Penalty.apply(value, self.decay) if self.decay else value


class L2Penalty(Function):
    """x, whose gradient has decay · x added."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Float[Tensor, "*shape"], decay: float) -> Float[Tensor, "*shape"]:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        x, ctx.decay = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(
        ctx: Any, grad_out: Float[Tensor, "*shape"]
    ) -> tuple[Float[Tensor, "*shape"], None]:
        (x,) = ctx.saved_tensors
        return grad_out + ctx.decay * x, None
