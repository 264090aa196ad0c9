"""Crossing: a product, norm, ReLU, dropout and a product, of which little is kept."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from unalike.kernels.bridges import Norm, Relu, cuda
from unalike.kernels.matrix_units import padded
from unalike.methods.layers.affine import product_like, times


class Crossing(Function):
    """dropout(relu(norm(x W + b))) V on a card; x is kept, the rest is found again.

    A small product and a pass over memory cost less than the memory they spare.
    Tensors have an axis of runs in front.
    """

    @staticmethod
    def forward(
        x: Float[Tensor, "runs nodes _"],
        into: Float[Tensor, "runs _ width"] | None,
        offset: Float[Tensor, "runs width"],
        gain: Float[Tensor, "runs width"],
        shift: Float[Tensor, "runs width"],
        rate: Float[Tensor, " runs"],
        seed: Tensor,
        out_of: Float[Tensor, "runs width _"] | None,
        relu: Relu,
    ) -> tuple[Tensor, Tensor, Tensor]:
        raw = times(x, into)
        mean, variance = cuda.moments(raw, offset, relu)
        norm = Norm.of(mean, variance, offset, gain, shift, rate, seed)
        crossed = cuda.cross(raw, norm, relu)
        return times(crossed, out_of), mean, variance

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]
    ) -> None:
        x, into, offset, gain, shift, rate, seed, out_of, ctx.relu = inputs
        _, mean, variance = output
        ctx.mark_non_differentiable(mean, variance)
        norm = Norm.of(mean, variance, offset, gain, shift, rate, seed)
        ctx.save_for_backward(x, into, out_of, *norm)

    @staticmethod
    def backward(ctx: Any, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, into, out_of, *vectors = ctx.saved_tensors
        norm = Norm(*vectors)
        raw = times(x, into)
        to_out_of = None
        if out_of is not None:
            crossed = cuda.cross(raw, norm, ctx.relu)
            width, slope = out_of.shape[-1], padded(slope)
            wide = padded(out_of.to(slope.dtype))
            found = product_like(wide, crossed.mT.to(slope.dtype), slope)
            to_out_of = found[..., :width].to(out_of.dtype)
            del crossed
            slope = slope @ wide.mT
        to_raw, *to_vectors = cuda.cross_back(raw, slope, norm, ctx.relu)
        to_into = None
        if into is not None:
            to_into = (x.mT.to(to_raw.dtype) @ to_raw).to(into.dtype)
        to_x = times(to_raw, None if into is None else into.mT).to(x.dtype)
        return to_x, to_into, *to_vectors, None, None, to_out_of, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Runs that one call has in front are joined by those of the stack."""
        stacked = [
            given
            if not isinstance(given, Tensor)
            else (
                given.expand(info.batch_size, *given.shape)
                if dim is None
                else given.movedim(dim, 0)
            ).flatten(0, 1)
            for given, dim in zip(inputs, in_dims, strict=True)
        ]
        found = Crossing.apply(*stacked)
        shape = (info.batch_size, -1)
        return tuple(part.unflatten(0, shape) for part in found), (0, 0, 0)
