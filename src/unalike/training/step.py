"""Gradients and optimizer step of a stack, and its inference in row batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.data.metrics import MIN_WEIGHT, Metric, weighted_mean
from unalike.errors import UserError
from unalike.nn.optim import AdamWState, AdamWStep, LazyAdamW
from unalike.nn.sparse import backend
from unalike.training.stack import Stack, StackedProducts
from unalike.training.state import State


@dataclass(frozen=True, eq=False)
class Gradients:
    """The loss of a batch for each run of a stack, and its gradients."""

    loss: Float[Tensor, " runs"]
    weight: Float[Tensor, " runs"]
    """Sum of the loss weights of the nodes of the batch."""
    params: Float[Tensor, "runs parameters"]
    inputs: dict[str, Adjacency]
    """The sparse input of each `SparseLinear` layer."""
    products: StackedProducts
    """The gradient of the output of each `SparseLinear` layer."""


def compute_gradients(
    state: State,
    batch: Graph,
    weight: Float[Tensor, "runs nodes"],
    products: StackedProducts,
    metric: Metric,
) -> Gradients:
    """The loss of a batch and its gradients."""
    stack = state.stack
    leaves = {
        name: product.detach().requires_grad_() for name, product in products.items()
    }
    params = stack.params.weight[0].detach().requires_grad_()
    logits = stack.forward(batch, leaves, params, stack.buffers, training=True)
    loss = metric.loss(logits, batch.labels, weight)
    if state.sharpening:
        loss = loss + state.sharpening * entropy_gap(logits, weight)
    grad_params, *grads = torch.autograd.grad(
        loss.sum(), [params, *leaves.values()], materialize_grads=True
    )
    # Under vmap gradients are strided by run; they are read by node, more than once.
    grad_products = {
        name: grad.contiguous() for name, grad in zip(leaves, grads, strict=True)
    }
    for name, bias in stack.bias_slices.items():
        grad_params[:, bias] += sum_over_nodes(grad_products[name])
    return Gradients(
        loss.detach(), weight.sum(-1), grad_params, stack.inputs(batch), grad_products
    )


def optimizer_step(state: State, gradients: Gradients) -> None:
    """One optimizer step of all weights."""
    step, stack = state.next_step(), state.stack
    if state.coupled_decay:
        coupled_step(stack, gradients, step)
        return
    for name, matrix in gradients.inputs.items():
        stack.sparse_weights[name].step(matrix, gradients.products[name], step)
    kernels = backend(gradients.params.device)
    kernels.adamw(stack.params, gradients.params[None], step)


def coupled_step(stack: Stack, gradients: Gradients, step: AdamWStep) -> None:
    """One step of Adam with an L2 penalty: the decay is a part of the gradient."""
    kernels, decay = backend(gradients.params.device), step.weight_decay[:, None]
    without = replace(step, weight_decay=torch.zeros_like(step.weight_decay))
    for name, matrix in gradients.inputs.items():
        weights = stack.sparse_weights[name]
        if isinstance(weights, LazyAdamW) or not isinstance(weights, AdamWState):
            raise UserError("--coupled-decay works with --tables adamw only.")
        grad = sparse_weight_gradient(matrix, gradients.products[name])
        kernels.adamw(weights, grad + decay * weights.weight, without)
    grad_params = gradients.params + decay * stack.params.weight[0]
    kernels.adamw(stack.params, grad_params[None], without)


def sparse_weight_gradient(
    matrix: Adjacency, grad: Float[Tensor, "nodes runs hidden"]
) -> Float[Tensor, "rows runs hidden"]:
    """The gradient of a sparse weight from that of its product with a matrix."""
    spmm = backend(grad.device).spmm
    product: Tensor = spmm(matrix.T, grad.flatten(1).float())
    return product.unflatten(1, grad.shape[1:])


def entropy_gap(
    logits: Float[Tensor, "runs nodes classes"], weight: Float[Tensor, "runs nodes"]
) -> Float[Tensor, " runs"]:
    """The mean Gini entropy 1 - |p|² of other nodes minus that of trained nodes."""
    entropy = 1 - logits.softmax(-1).square().sum(-1)
    trained = (weight > 0).float()
    others, own = (
        weighted_mean(entropy, part, min_weight=MIN_WEIGHT)
        for part in (1 - trained, trained)
    )
    return others - own


def sum_over_nodes(
    x: Float[Tensor, "nodes runs hidden"],
) -> Float[Tensor, "runs hidden"]:
    """The sum over nodes, as a product, which is faster on a GPU."""
    ones = x.new_ones(len(x))
    return (ones @ x.flatten(1)).view_as(x[0])


# Inference.


MAX_NUMEL = {"cpu": 2**26, "cuda": 2**28}
"""Elements of the product of one sparse layer in a batch of inference.

Free memory cannot decide: processes that train together need equal batches.
"""
MAX_NNZ = 2**25
"""Entries of the adjacency in a batch of inference."""


@torch.no_grad()
def predict_into(
    state: State,
    batches: Iterable[Graph],
    scores: Float[Tensor, "runs rows classes"],
    *,
    best: bool,
    row_of_node: Ids | None = None,
) -> Float[Tensor, "runs rows classes"]:
    """Fill in the logits of batches, by the current or the best weights.

    `scores` has a row for each node, or the rows that `row_of_node` gives.
    """
    stack = state.stack
    params = stack.params.best_weight if best else stack.params.weight
    buffers = state.best_buffers if best else stack.buffers
    for batch in batches:
        local = batch.to(params.device)
        products = stack.sparse_products(local, best=best)
        logits = stack.forward(local, products, params[0], buffers, training=False)
        rows = batch.ids.to(scores.device)
        rows = rows if row_of_node is None else row_of_node[rows]
        scores[:, rows] = logits.to(scores.device)
    return scores


def copy_to_cpu(state: State) -> State:
    """A copy in main memory, for inference that does not fit on the GPU."""
    stack = state.stack
    on_cpu = replace(
        stack,
        sparse_weights={name: w.cpu() for name, w in stack.sparse_weights.items()},
        params=stack.params.cpu(),
        buffers={name: buffer.cpu() for name, buffer in stack.buffers.items()},
        constants={name: buffer.cpu() for name, buffer in stack.constants.items()},
        bf16=False,
    )
    best = {name: buffer.cpu() for name, buffer in state.best_buffers.items()}
    return replace(state, stack=on_cpu, best_buffers=best)


def inference_rows(state: State, graph: Graph, ids: Ids) -> Iterator[Graph]:
    """Batches of rows of bounded size for the inference of a stack."""
    weights = state.stack.sparse_weights.values()
    width = sum(weight.weight[0].numel() for weight in weights)
    return row_batches(graph, ids, width, state.stack.params.weight.device)


def row_batches(
    graph: Graph, ids: Ids, width: int, device: torch.device
) -> Iterator[Graph]:
    """Batches of rows with a bounded nnz and product, for a known output width."""
    degrees = graph.adjacency.global_degrees[ids.to(graph.labels.device)].cpu()
    numel = (width + 128) * torch.arange(1, len(ids) + 1) / MAX_NUMEL[device.type]
    batch_of_row = torch.maximum(numel, degrees.cumsum(0) / MAX_NNZ).long()
    sizes = batch_of_row.bincount()
    for part in ids.split(sizes[sizes > 0].tolist()):
        yield graph.select_rows(part.to(graph.labels.device))
