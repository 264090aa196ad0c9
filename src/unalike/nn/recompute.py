"""Activation (gradient) checkpointing that works under vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.function import Function
from torch.func import vjp

Pass: TypeAlias = Callable[..., tuple[Tensor, Tensor]]
"""A pure function of tensors: what goes on from here, and what is only noted."""


class Checkpointed(Function):
    """Keeps what goes into some layers and, for gradients, passes through them again.

    The tensors that are learned from come first. All chance must lie in the tensors.
    What is noted has no gradient. It works under `torch.func.vmap`, as
    `torch.utils.checkpoint` does not.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        through: Pass, num_learned: int, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        return through(*tensors)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]
    ) -> None:
        ctx.through, ctx.num_learned, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.mark_non_differentiable(output[1])
        kind = output[0].device.type
        ctx.arithmetic = {
            "device_type": kind,
            "dtype": torch.get_autocast_dtype(kind),
            "enabled": torch.is_autocast_enabled(kind),
        }

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        learned, fixed = tensors[: ctx.num_learned], tensors[ctx.num_learned :]

        def again(*learned: Tensor) -> Tensor:
            return ctx.through(*learned, *fixed)[0]

        with torch.autocast(**ctx.arithmetic):
            pull = vjp(again, *learned)[1]
        return None, None, *pull(slope), *(None for _ in fixed)
