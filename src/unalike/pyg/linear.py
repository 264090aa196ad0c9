"""Linear layer and initial values as in PyTorch Geometric, and refusal of options."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from unalike.errors import InputError

MESSAGE_PASSING_DEFAULTS = {
    "flow": ("source_to_target",),
    "node_dim": (0, -2),
    "decomposed_layers": (1,),
}
"""Arguments that every layer of PyTorch Geometric takes, with the values we accept."""


class Linear(nn.Linear):
    """`torch.nn.Linear`; `glorot` draws the weight as in most layers of PyG."""

    def __init__(
        self, in_features: int, out_features: int, *, bias: bool, glorot: bool = False
    ) -> None:
        if in_features < 1:
            raise InputError(
                f"in_channels is {in_features}; layers of unalike need the number of "
                "input columns."
            )
        self.glorot = glorot
        super().__init__(in_features, out_features, bias)

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        if not self.glorot:
            super().reset_parameters()
            return
        glorot_(self.weight)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features)
            nn.init.uniform_(self.bias, -bound, bound)


@torch.no_grad()
def glorot_(weight: Tensor) -> None:
    """Uniform values with bound sqrt(6 / (rows + columns))."""
    bound = math.sqrt(6 / (weight.shape[-2] + weight.shape[-1]))
    weight.uniform_(-bound, bound)


def reset(module: Any) -> None:
    """Draw new initial values in a module, or in the modules inside it."""
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()
        return
    for child in module.children():
        reset(child)


def check_message_passing_options(
    layer: str, options: dict[str, Any], aggr: tuple[str, ...] = ("add", "sum")
) -> None:
    """Refuse arguments of PyG's MessagePassing that change what a layer computes."""
    accepted: dict[str, tuple[Any, ...]] = {**MESSAGE_PASSING_DEFAULTS, "aggr": aggr}
    for name, given in options.items():
        if name not in accepted:
            raise InputError(f"unalike's {layer} does not support '{name}'.")
        if given not in accepted[name]:
            raise InputError(
                f"unalike's {layer} does not support {name}={given!r}; "
                f"supported: {', '.join(map(repr, accepted[name]))}."
            )
