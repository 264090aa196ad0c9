"""Mix: how LINKX joins what it knows of a node's edges and of its features."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.methods.layers.affine import Affine, Hidden, value
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.rectified_sum import rectified_sum


class Mix(nn.Module):
    """relu(W [a; x] + a + x), with dropout and ReLU on the product where wanted."""

    def __init__(self, hidden: int, dropout: float, *, active: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * hidden, hidden)
        between = [Dropout(dropout)] if dropout else []
        self.inner = nn.Sequential(*between, *[nn.ReLU()] * active)

    def forward(self, a: Hidden, x: Hidden) -> Float[Tensor, "nodes hidden"]:
        if len(self.inner):
            a, x = value(a), value(x)
            mixed = self.inner(self.linear(torch.cat([a, x], 1)))
            return torch.relu(mixed + a + x)
        # Without an inner step all is linear: (W_a + 1) a + (W_x + 1) x + b needs
        # neither the concatenation nor a and x, where these are products themselves.
        weights = [half.T for half in self.linear.weight.chunk(2, 1)]
        one = torch.eye(self.linear.out_features, device=self.linear.weight.device)
        terms = [
            Affine.of(hidden).times(weight + one)
            for hidden, weight in zip((a, x), weights, strict=True)
        ]
        return rectified_sum(self.linear.bias, *terms)
