"""Activation (gradient) checkpointing that works under vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.function import Function
from torch.func import vjp

Segment: TypeAlias = Callable[..., tuple[Tensor, Tensor]]
"""A pure function of tensors: an output, and an auxiliary one without a gradient."""


class Checkpointed(Function):
    """Saves the inputs of some layers and runs these again in the backward pass.

    Tensors that need a gradient come first. Randomness must be passed in as tensors.
    Unlike `torch.utils.checkpoint` it works under `torch.func.vmap`.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        function: Segment, num_inputs_with_grad: int, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        return function(*tensors)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]
    ) -> None:
        ctx.function, ctx.num_inputs_with_grad, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.mark_non_differentiable(output[1])
        device_type = output[0].device.type
        ctx.autocast = {
            "device_type": device_type,
            "dtype": torch.get_autocast_dtype(device_type),
            "enabled": torch.is_autocast_enabled(device_type),
        }

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        tensors, count = ctx.saved_tensors, ctx.num_inputs_with_grad
        with_grad, constant = tensors[:count], tensors[count:]

        def recompute(*with_grad: Tensor) -> Tensor:
            return ctx.function(*with_grad, *constant)[0]

        with torch.autocast(**ctx.autocast):
            vjp_function = vjp(recompute, *with_grad)[1]
        return None, None, *vjp_function(grad_out), *(None for _ in constant)
