"""Gradients, optimizer step, and inference of a stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.nn.optim import WeightState
from unalike.nn.sparse import backend
from unalike.training.stack import Stack, Stacked
from unalike.training.state import State

# Descent: the slopes of a loss, and one step along them.


@dataclass(frozen=True, eq=False)
class Gradients:
    """Which way the loss of a batch rises, for every weight of a stack."""

    loss: Float[Tensor, " runs"]
    weight: Float[Tensor, " runs"]
    """What the nodes of the batch count for together."""
    params: Float[Tensor, "runs parameters"]
    inputs: dict[str, Adjacency]
    """The matrix that meets each table."""
    sparse_products: Stacked
    """The slope at each product of a matrix and its table."""


def compute_gradients(
    stack: Stack,
    batch: Graph,
    weight: Float[Tensor, "runs nodes"],
    first: Stacked,
    metric: Metric,
) -> Gradients:
    """The loss of a batch and its slopes."""
    leaves = {
        name: product.detach().requires_grad_() for name, product in first.items()
    }
    rest = stack.params.weight[0].detach().requires_grad_()
    scores = stack.forward(batch, leaves, rest, stack.buffers, training=True)
    loss = metric.loss(scores, batch.labels, weight)
    slope, *slopes = torch.autograd.grad(
        loss.sum(), [rest, *leaves.values()], materialize_grads=True
    )
    # Stacks are sliced by run; what follows reads by node, more than once.
    products = {n: s.contiguous() for n, s in zip(leaves, slopes, strict=True)}
    for name, wanted in products.items():
        if name in stack.bias_slices:
            slope[:, stack.bias_slices[name]] += sum_over_nodes(wanted)
    inputs = stack.inputs(batch)
    return Gradients(loss.detach(), weight.sum(-1), slope, inputs, products)


def optimizer_step(state: State, slopes: Gradients) -> None:
    """One step of all weights."""
    step, stack = state.next_step(), state.stack
    for name, matrix in slopes.inputs.items():
        stack.sparse_weights[name].step(matrix, slopes.sparse_products[name], step)
    backend(slopes.params.device).adamw(stack.params, slopes.params[None], step)


def sum_over_nodes(
    slope: Float[Tensor, "nodes runs hidden"],
) -> Float[Tensor, "runs hidden"]:
    """The sum over nodes, as a product, which cards take faster than a sum."""
    ones = slope.new_ones(len(slope))
    return (ones @ slope.flatten(1)).view_as(slope[0])


# Scoring: what a stack of runs says of nodes, a piece of the graph at a time.


Kind = TypeVar("Kind", bound=WeightState)

MAX_NUMEL = {"cpu": 2**26, "cuda": 2**28}
"""Numbers that scoring may hold of one table at a time.

Processes that train together must cut alike, so what is free cannot decide.
"""
MAX_NNZ = 2**25
"""Entries of an adjacency that scoring may cut out at a time."""


@torch.no_grad()
def predict_into(
    state: State,
    batches: Iterable[Graph],
    scores: Float[Tensor, "runs nodes classes"],
    *,
    best: bool,
) -> Float[Tensor, "runs nodes classes"]:
    """Fill in the scores of batches, by the present weights or the best."""
    stack = state.stack
    rest = stack.params.best_weight if best else stack.params.weight
    buffers = state.best_buffers if best else stack.buffers
    for batch in batches:
        there = batch.to(rest.device)
        first = stack.sparse_products(there, best=best)
        found = stack.forward(there, first, rest[0], buffers, training=False)
        scores[:, batch.ids.to(scores.device)] = found.to(scores.device)
    return scores


def copy_to_cpu(state: State) -> State:
    """A copy in main memory, to score what a card has no room for."""
    stack = state.stack
    host = replace(
        stack,
        sparse_weights={
            name: _on_host(table) for name, table in stack.sparse_weights.items()
        },
        params=_on_host(stack.params),
        buffers={name: buffer.cpu() for name, buffer in stack.buffers.items()},
        constants={name: buffer.cpu() for name, buffer in stack.constants.items()},
        bf16=False,
    )
    kept = {name: buffer.cpu() for name, buffer in state.best_buffers.items()}
    return replace(state, stack=host, best_buffers=kept)


def _on_host(weights: Kind) -> Kind:
    parts = {name: t.cpu() for name, t in vars(weights).items() if t is not None}
    return replace(weights, **{**parts, "weight_bf16": None})


def inference_rows(state: State, graph: Graph, ids: Ids) -> Iterator[Graph]:
    """Some rows, a bounded number of them and of their entries at a time."""
    width = sum(
        table.weight[0].numel() for table in state.stack.sparse_weights.values()
    )
    return row_batches(graph, ids, width, state.stack.params.weight.device)


def row_batches(
    graph: Graph, ids: Ids, width: int, device: torch.device
) -> Iterator[Graph]:
    """The same for tables of a known width, scored on a device."""
    degrees = graph.adjacency.global_degrees[ids.to(graph.labels.device)].cpu()
    most = MAX_NUMEL[device.type]
    numbers = (width + 128) * torch.arange(1, len(ids) + 1) / most
    filled = torch.maximum(numbers, degrees.cumsum(0) / MAX_NNZ)
    sizes = filled.long().bincount()
    for part in ids.split(sizes[sizes > 0].tolist()):
        yield graph.select_rows(part.to(graph.labels.device))
