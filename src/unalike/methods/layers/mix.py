"""Mix: how LINKX joins what it knows of a node's edges and of its features."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.entry import Affine, Hidden, value
from unalike.methods.layers.rectified_sum import rectified_sum


class Mix(nn.Module):
    """relu(W [a; x] + a + x), with dropout and ReLU on the product where wanted."""

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
            mixed = self.inner(self.linear(torch.cat([a, x], 1)))
            return torch.relu(mixed + a + x)
        # Without an inner step all is linear: (W_a + 1) a + (W_x + 1) x + b needs
        # neither the concatenation nor, for dense features, x itself.
        for_a, for_x = self.linear.weight.T.split(a.shape[1])
        one = torch.eye(a.shape[1], device=a.device)
        if not isinstance(x, Affine):
            x = Affine(x, one, torch.zeros_like(self.linear.bias))
        x = x.times(for_x + one)
        offset = self.linear.bias + x.offset
        return rectified_sum(offset, (a, for_a + one), (x.rows, x.weight))
