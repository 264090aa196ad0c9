"""Initial weights of linear layers; hyperparameters as buffers of a module."""

from __future__ import annotations

import math
from typing import Literal, TypedDict

import torch
from torch import nn

from unalike.nn.weights_on_disk import empty_weights

Init = Literal["linear", "glorot"]
"""Initial weights like those of `nn.Linear`, or like those of a graph convolution."""

CHUNK_NUMEL = 2**20
"""Random numbers that are sampled at a time where they are discarded."""


class LinearOptions(TypedDict, total=False):
    """Options of the layers whose parameters are those of `linear_parameters`."""

    bias: bool
    init: Init
    fan_in: int | None


def linear_parameters(
    in_features: int,
    out_features: int,
    *,
    bias: bool = True,
    init: Init = "linear",
    fan_in: int | None = None,
    local_rows: range | None = None,
) -> tuple[nn.Parameter, nn.Parameter | None]:
    """Weight [in, out] and bias, within 1 / sqrt(fan_in) as those of `nn.Linear`.

    `fan_in` differs from `in_features` where several layers are summed. Of the weight
    only `local_rows` are stored where other processes store the rest.
    """
    bound = 1 / math.sqrt(max(1, fan_in or in_features))
    weight = (
        glorot_uniform(in_features, out_features)
        if init == "glorot"
        else uniform_shard(bound, in_features, out_features, local_rows)
    )
    return weight, uniform(bound, out_features) if bias else None


def glorot_uniform(in_features: int, out_features: int) -> nn.Parameter:
    """A weight within sqrt(6 / (in + out)) (Glorot and Bengio 2010)."""
    bound = math.sqrt(6 / (in_features + out_features))
    return uniform(bound, in_features, out_features)


def uniform(bound: float, *shape: int) -> nn.Parameter:
    """A parameter sampled uniformly from [-bound, bound]."""
    return nn.Parameter(empty_weights(shape).uniform_(-bound, bound))


def uniform_shard(
    bound: float, rows: int, width: int, local_rows: range | None
) -> nn.Parameter:
    """Some rows of what `uniform` samples; the generator advances as for all."""
    local = range(rows) if local_rows is None else local_rows
    _advance_rng(local.start * width)
    weight = uniform(bound, len(local), width)
    _advance_rng((rows - local.stop) * width)
    return weight


def _advance_rng(count: int) -> None:
    """Advance the global generator by some uniform numbers."""
    for begin in range(0, count, CHUNK_NUMEL):
        torch.empty(min(CHUNK_NUMEL, count - begin)).uniform_()


def register_constants(module: nn.Module, **constants: float | list[float]) -> None:
    """Register hyperparameters as buffers, so that the runs of a stack may differ.

    They are float64 and not persistent: the options of a method hold them.
    """
    for name, value in constants.items():
        exact = torch.tensor(value, dtype=torch.float64, device="cpu")
        module.register_buffer(name, exact, persistent=False)
