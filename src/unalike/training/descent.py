"""Descent: the slopes of a loss, and one step along them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.kernels import kernels_of
from unalike.metrics import Metric
from unalike.training.stack import Stack, Stacked
from unalike.training.state import State


@dataclass(frozen=True, eq=False)
class Slopes:
    """Which way the loss of a batch rises, for every weight of a stack."""

    loss: Float[Tensor, " runs"]
    weight: Float[Tensor, " runs"]
    """What the nodes of the batch count for together."""
    rest: Float[Tensor, "runs parameters"]
    inputs: dict[str, Adjacency]
    """The matrix that meets each table."""
    products: Stacked
    """The slope at each product of a matrix and its table."""


def slopes_of(
    stack: Stack,
    batch: Graph,
    weight: Float[Tensor, "runs nodes"],
    first: Stacked,
    metric: Metric,
) -> Slopes:
    """The loss of a batch and its slopes."""
    leaves = {
        name: product.detach().requires_grad_() for name, product in first.items()
    }
    rest = stack.rest.now[0].detach().requires_grad_()
    scores = stack.scores(batch, leaves, rest, stack.buffers, training=True)
    loss = metric.loss(scores, batch.labels, weight)
    slope, *slopes = torch.autograd.grad(
        loss.sum(), [rest, *leaves.values()], materialize_grads=True
    )
    # Stacks are sliced by run; what follows reads by node, more than once.
    products = {n: s.contiguous() for n, s in zip(leaves, slopes, strict=True)}
    for name, wanted in products.items():
        if name in stack.spans:
            slope[:, stack.spans[name]] += total(wanted)
    inputs = stack.inputs(batch)
    return Slopes(loss.detach(), weight.sum(-1), slope, inputs, products)


def descend(state: State, slopes: Slopes) -> None:
    """One step of all weights."""
    step, stack = state.next_step(), state.stack
    for name, matrix in slopes.inputs.items():
        stack.tables[name].move(matrix, slopes.products[name], step)
    kernels_of(slopes.rest.device).adamw(stack.rest, slopes.rest[None], step)


def total(slope: Float[Tensor, "nodes runs hidden"]) -> Float[Tensor, "runs hidden"]:
    """The sum over nodes, as a product, which cards take faster than a sum."""
    ones = slope.new_ones(len(slope))
    return (ones @ slope.flatten(1)).view_as(slope[0])
