"""Mix: how LINKX joins what it knows of a node's edges and of its features."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.entry import Affine, Hidden, value


class Mix(nn.Module):
    """W [a; x] + a + x, with dropout and ReLU on the first term where wanted."""

    def __init__(self, hidden: int, dropout: float, *, active: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * hidden, hidden)
        between = [Dropout(dropout)] if dropout else []
        self.inner = nn.Sequential(*between, *[nn.ReLU()] * active)

    def forward(
        self, a: Float[Tensor, "nodes hidden"], x: Hidden
    ) -> Float[Tensor, "nodes hidden"]:
        if len(self.inner):
            x = value(x)
            return self.inner(self.linear(torch.cat([a, x], 1))) + a + x
        # Without an inner step all is linear: (W_a + 1) a + (W_x + 1) x + b needs
        # neither the concatenation nor, for dense features, x itself.
        for_a, for_x = self.linear.weight.split(a.shape[1], 1)
        identity = torch.eye(a.shape[1], device=a.device)
        return F.linear(a, for_a + identity, self.linear.bias) + self._through(
            x, for_x + identity
        )

    def _through(
        self, x: Hidden, weight: Float[Tensor, "hidden hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        if isinstance(x, Affine):
            return x.times(weight.T).value()
        return F.linear(x, weight)
