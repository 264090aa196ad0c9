"""Mix: how LINKX joins what it knows of a node's edges and of its features."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.methods.layers.dropout import Dropout


class Mix(nn.Module):
    """W [a; x] + a + x, with dropout and ReLU on the first term where wanted."""

    def __init__(self, hidden: int, dropout: float, *, active: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * hidden, hidden)
        between = [Dropout(dropout)] if dropout else []
        self.inner = nn.Sequential(*between, *[nn.ReLU()] * active)

    def forward(
        self, a: Float[Tensor, "nodes hidden"], x: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        if len(self.inner):
            return self.inner(self.linear(torch.cat([a, x], 1))) + a + x
        # Without an inner step all is linear: (W_a + 1) a + (W_x + 1) x + b needs
        # neither the concatenation nor the sums as matrices of their own.
        weight, identity = self.linear.weight, torch.eye(a.shape[1], device=a.device)
        for_a, for_x = weight.split(a.shape[1], 1)
        mixed = F.linear(a, for_a + identity, self.linear.bias)
        return mixed + F.linear(x, for_x + identity)
