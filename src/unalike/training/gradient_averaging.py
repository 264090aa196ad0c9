"""Data parallel training: average the gradients of all processes, as DDP does.

Tests compare it with torch's `DistributedDataParallel`. That wraps a module and
averages the gradients of its parameters, which do not exist here: the parameters of a
stack are the rows of one matrix, and a sparse weight is updated while its gradient is
computed. DDP also weighs all batches equally, so that a train node in a small batch
would weigh more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import torch
from jaxtyping import Shaped
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.metrics import MIN_WEIGHT
from unalike.samplers.base import Batch, LazyBatch
from unalike.training.distributed import World
from unalike.training.step import Gradients, sparse_weight_gradient


def local_batches(batches: Iterable[LazyBatch], world: World) -> Iterator[Batch]:
    """The batches of this process, one for each step.

    If the last step has fewer batches than processes, the other processes compute one
    that does not count for them, so that all take equally many steps.
    """
    remaining = iter(batches)
    while step := list(islice(remaining, world.size)):
        batch = step[world.rank % len(step)]()
        yield replace(batch, counts_in_loss=world.rank < len(step))


def all_reduce_gradients(local: Gradients, world: World, *, counts: bool) -> Gradients:
    """The gradients of the loss over the batches of all processes, in one message.

    A loss is a weighted mean, so that of all batches is the weighted mean of theirs.
    """
    if world.size == 1:
        return local
    weight_gradients = [
        sparse_weight_gradient(matrix, local.products[name])
        for name, matrix in local.inputs.items()
    ]
    weight = counts * local.weight[:, None]
    means = [local.loss[:, None], local.params, *weight_gradients]
    total, *sums = all_reduce_flat([weight, *(weight * mean for mean in means)], world)
    loss, params, *averaged = (part / total.clamp(min=MIN_WEIGHT) for part in sums)
    products = dict(zip(local.inputs, averaged, strict=True))
    return Gradients(
        loss=loss[:, 0],
        weight=total[:, 0],
        params=params,
        inputs={
            name: identity(len(product), product.device)
            for name, product in products.items()
        },
        products=products,
    )


def average_buffers(
    buffers: Iterable[Shaped[Tensor, "runs ..."]], world: World
) -> None:
    """Average the running statistics of batch norm over all processes.

    In float64, so that a value that is equal everywhere stays the same.
    """
    for buffer in buffers:
        total = buffer.double()
        world.all_reduce(total)
        buffer.copy_(total / world.size)


def all_reduce_flat(tensors: list[Tensor], world: World) -> list[Tensor]:
    """The sums of tensors over all processes, in one message."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    world.all_reduce(flat)
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]


def identity(size: int, device: torch.device) -> Adjacency:
    """The identity matrix: the gradient of its product is that of the weight."""
    indptr = torch.arange(size + 1, device=device)
    return Adjacency(indptr, indptr[:-1], size)
