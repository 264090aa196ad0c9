"""Custom operators of torch with little overhead in each call.

`torch.library.custom_op` spends 0.1 to 0.3 ms in each call on trees of arguments and on
checks, which is more than the kernels take on a small graph. An operator of this module
is registered under the same keys, so that it works under `torch.compile`, autocast and
`torch.vmap` alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd.function import _SingleLevelFunction
from torch.library import Library, register_fake, register_vmap

from unalike.errors import UserError

LIBRARY = Library("unalike", "DEF")

Context = Any
"""The `ctx` of `torch.autograd.Function`."""


def register_operator(
    schema: str,
    kernel: Callable[..., Any],
    *,
    fake: Callable[..., Any],
    setup_context: Callable[[Context, tuple[Any, ...], Any], None],
    backward: Callable[..., tuple[Any, ...]],
    vmap: Callable[..., Any] | None = None,
) -> Any:
    """The operator `unalike::name` of a schema, with its gradient.

    The arguments are those of `torch.library.custom_op` and its `register_fake`,
    `register_autograd` and `register_vmap`.
    """
    name = schema.partition("(")[0]
    LIBRARY.define(schema, tags=torch.Tag.pt2_compliant_tag)
    for device in ("CPU", "CUDA"):
        LIBRARY.impl(name, kernel, device)
    operator = getattr(torch.ops.unalike, name).default
    register_fake(operator, fake)
    if vmap is not None:
        register_vmap(operator, vmap)
    kernel_with_gradient = _with_gradient(operator, setup_context, backward)
    LIBRARY.impl(name, kernel_with_gradient, "Autograd", with_keyset=True)
    return operator


def _with_gradient(
    operator: Any,
    setup_context: Callable[[Context, tuple[Any, ...], Any], None],
    backward: Callable[..., tuple[Any, ...]],
) -> Callable[..., Any]:
    """What the dispatcher calls first: it records the gradient where one is needed."""

    def call_kernel(keys: torch.DispatchKeySet, *inputs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return operator.redispatch(keys & torch._C._after_autograd_keyset, *inputs)

    class Gradient(_SingleLevelFunction):
        @staticmethod
        def forward(ctx: Context, *inputs_and_keys: Any) -> Any:
            *inputs, keys = inputs_and_keys
            output = call_kernel(keys, *inputs)
            setup_context(ctx, tuple(inputs), output)
            return output

        @staticmethod
        def backward(ctx: Context, *grads: Tensor) -> tuple[Any, ...]:
            return *backward(ctx, *grads), None

    record: Any = Gradient

    def call(keys: torch.DispatchKeySet, *inputs: Any) -> Any:
        if not (torch.is_grad_enabled() and torch._C._any_requires_grad(*inputs)):
            return call_kernel(keys, *inputs)
        # The dispatcher gives each transform of torch.func, such as grad, its turn.
        with enable_single_level_autograd_function():
            return record.apply(*inputs, keys)

    return call


def no_second_derivative(layer: str) -> dict[str, Callable[..., Any]]:
    """The gradient of an operator that is itself a gradient: it raises one line."""

    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    def refuse(ctx: Context, *grads: Tensor) -> tuple[Any, ...]:
        raise UserError(f"{layer} has no second derivative.")

    return {"setup_context": setup_context, "backward": refuse}


def refuse_batched(in_dims: tuple[Any, ...]) -> None:
    """Raise one clear line if `torch.vmap` maps over edges or their weights."""
    if any(dim is not None for dim in in_dims):
        raise UserError(
            "torch.vmap over edges or edge weights is not supported; map over the "
            "features or the parameters."
        )
