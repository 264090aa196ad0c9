"""Turns: processes learn from a batch each, and take the same step.

This is what torch's `DistributedDataParallel` does, and tests compare the two. It wraps
a module and averages what autograd leaves in its parameters. Here there is none: the
weights of a stack of runs are the rows of one matrix, so that there are no buckets to
send early, and a table moves while its gradient is gathered, so that in one process no
gradient is ever kept. It also weighs all batches alike, by which a train node in a
small batch would count for more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.metrics import MIN_WEIGHT
from unalike.nn.sparse import backend
from unalike.samplers.base import Batch, LazyBatch
from unalike.training.distributed import World
from unalike.training.step import Gradients


def local_batches(drawn: Iterable[LazyBatch], world: World) -> Iterator[Batch]:
    """The batches of this process, one for each step.

    Where the last step has fewer batches than there are processes, those left over
    work on one that another process counts, so that all take equally many steps.
    """
    coming = iter(drawn)
    while step := list(islice(coming, world.size)):
        batch = step[world.rank % len(step)]()
        yield replace(batch, counts_in_loss=world.rank < len(step))


def all_reduce_gradients(own: Gradients, world: World, *, counts: bool) -> Gradients:
    """The slopes of the loss over the batches of all processes, in one message.

    A loss is a mean by weight, so that of all batches is the mean of theirs.
    """
    if world.size == 1:
        return own
    gradients = [
        sparse_weight_gradient(matrix, own.sparse_products[name])
        for name, matrix in own.inputs.items()
    ]
    weight = counts * own.weight[:, None]
    means = [own.loss[:, None], own.params, *gradients]
    weighed, *sums = all_reduce_flat(
        [weight, *(weight * mean for mean in means)], world
    )
    loss, rest, *tables = (part / weighed.clamp(min=MIN_WEIGHT) for part in sums)
    return Gradients(
        loss=loss[:, 0],
        weight=weighed[:, 0],
        params=rest,
        inputs={
            name: identity(table)
            for name, table in zip(own.inputs, tables, strict=True)
        },
        sparse_products=dict(zip(own.inputs, tables, strict=True)),
    )


def average_buffers(
    buffers: Iterable[Shaped[Tensor, "runs ..."]], world: World
) -> None:
    """Average the running statistics by which nodes are scored.

    In float64 a number that is alike everywhere stays the same.
    """
    for buffer in buffers:
        total = buffer.double()
        world.all_reduce(total)
        buffer.copy_(total / world.size)


def all_reduce_flat(parts: list[Tensor], world: World) -> list[Tensor]:
    """The sums of tensors over all processes."""
    numbers = torch.cat([part.flatten() for part in parts])
    world.all_reduce(numbers)
    pieces = numbers.split([part.numel() for part in parts])
    return [piece.view_as(part) for piece, part in zip(pieces, parts, strict=True)]


def sparse_weight_gradient(
    matrix: Adjacency, slope: Float[Tensor, "nodes runs hidden"]
) -> Float[Tensor, "rows runs hidden"]:
    """The slope at a table, from that at its product with a matrix."""
    gather = backend(slope.device).spmm
    found: Tensor = gather(matrix.T, slope.flatten(1).float())
    return found.unflatten(1, slope.shape[1:])


def identity(table: Float[Tensor, "rows runs hidden"]) -> Adjacency:
    """The matrix whose product with a table is the table itself."""
    rows = torch.arange(len(table) + 1, device=table.device)
    return Adjacency(rows, rows[:-1], len(table))
