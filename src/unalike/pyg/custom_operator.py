"""Custom operators of torch with little overhead in each call.

`torch.library.custom_op` spends 0.1 to 0.3 ms in each call on trees of arguments and on
checks, which is more than the kernels take on a small graph. An operator of this module
is registered under the same keys, so that it works under `torch.compile`, autocast and
`torch.vmap` alike. Plain eager calls do not enter the dispatcher at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction
from torch.library import Library, register_fake, register_vmap

from unalike.errors import UserError

LIBRARY = Library("unalike", "DEF")

PLAIN_TENSORS = (Tensor, torch.nn.Parameter)

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
    jvp: Callable[..., Any] | None = None,
) -> Any:
    """The operator `unalike::name` of a schema, with its gradient.

    The arguments are those of `torch.library.custom_op` and its `register_fake`,
    `register_autograd` and `register_vmap`; `jvp` is that of
    `torch.autograd.Function`. Without it, forward-mode derivatives raise one line.
    """
    name = schema.partition("(")[0]
    LIBRARY.define(schema, tags=torch.Tag.pt2_compliant_tag)
    for device in ("CPU", "CUDA"):
        LIBRARY.impl(name, kernel, device)
    operator = getattr(torch.ops.unalike, name).default
    register_fake(operator, fake)
    if vmap is not None:
        register_vmap(operator, vmap)
    kernel_with_gradient = _with_gradient(
        operator, setup_context, backward, jvp or _refuse_jvp
    )
    LIBRARY.impl(name, kernel_with_gradient, "Autograd", with_keyset=True)
    return _with_eager_path(operator, kernel, setup_context, backward)


def _with_eager_path(
    operator: Any,
    kernel: Callable[..., Any],
    setup_context: Callable[[Context, tuple[Any, ...], Any], None],
    backward: Callable[..., tuple[Any, ...]],
) -> Callable[..., Any]:
    """The operator, or the same without the dispatcher for plain tensors."""

    class EagerGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Context, *inputs: Any) -> Any:
            output = kernel(*inputs)
            setup_context(ctx, inputs, output)
            return output

        @staticmethod
        def backward(ctx: Context, *grads: Tensor | None) -> tuple[Any, ...]:
            return backward(ctx, *grads)

    def call(*inputs: Any) -> Any:
        if not _is_plain_eager(inputs):
            return operator(*inputs)
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*inputs):
            return EagerGradient.apply(*inputs)
        return kernel(*inputs)

    return call


def _is_plain_eager(inputs: tuple[Any, ...]) -> bool:
    """No compiler, transform, mode or subclass of tensors wants to see the call."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or forward_ad._current_level >= 0
        or any(
            isinstance(given, Tensor) and type(given) not in PLAIN_TENSORS
            for given in inputs
        )
    )


def _with_gradient(
    operator: Any,
    setup_context: Callable[[Context, tuple[Any, ...], Any], None],
    backward: Callable[..., tuple[Any, ...]],
    jvp: Callable[..., Any],
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
        def backward(ctx: Context, *grads: Tensor | None) -> tuple[Any, ...]:
            return *backward(ctx, *grads), None

        @staticmethod
        def jvp(ctx: Context, *tangents_and_keys: Any) -> Any:
            return jvp(ctx, *tangents_and_keys[:-1])

    record: Any = Gradient

    def call(keys: torch.DispatchKeySet, *inputs: Any) -> Any:
        needs_grad = torch.is_grad_enabled() and torch._C._any_requires_grad(*inputs)
        if not needs_grad and not _has_tangent(inputs):
            return call_kernel(keys, *inputs)
        # The dispatcher gives each transform of torch.func, such as grad, its turn.
        with enable_single_level_autograd_function():
            return record.apply(*inputs, keys)

    return call


def _has_tangent(inputs: tuple[Any, ...]) -> bool:
    """Is a forward-mode derivative asked for, as by `torch.func.jvp`?"""
    if forward_ad._current_level < 0:
        return False
    tensors = (given for given in inputs if isinstance(given, Tensor))
    return any(forward_ad.unpack_dual(one).tangent is not None for one in tensors)


def _refuse_jvp(ctx: Context, *tangents: Any) -> Any:
    raise UserError(
        "This layer has no forward-mode derivative; use reverse mode, such as "
        "torch.func.vjp and torch.func.jacrev."
    )


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
