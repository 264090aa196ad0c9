"""Custom operators of torch: weighted sums over incoming edges, with gradients.

They take the tensors of the edges as they are given and find the CSR arrays by the
identity of these tensors, so that `torch.compile` sees one operator and no conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from unalike.errors import UserError
from unalike.nn.sparse import NormalizedCSR, backend, runs_to_columns
from unalike.pyg.edges import Edges, MessageGraph, message_graph, number_of_edges

NO_SELF_LOOPS = "none"


def propagate(
    x: Tensor,
    edges: Edges,
    num_targets: int,
    norm: str,
    self_loops: str = NO_SELF_LOOPS,
    fill: float = 1.0,
    scale: float = 1.0,
    residual: Tensor | None = None,
) -> Tensor:
    """scale * A x + residual, where A holds the incoming edges, normalised by `norm`.

    `norm` is one of `NORMS`.
    """
    return propagate_op(
        x,
        residual,
        edges.tensors,
        edges.layout,
        edges.weight,
        x.shape[0],
        num_targets,
        norm,
        self_loops,
        fill,
        scale,
        False,
    )


@custom_op(
    "unalike::propagate",
    mutates_args=(),
    schema="(Tensor x, Tensor? residual, Tensor[] edges, str layout, Tensor? weight, "
    "SymInt num_sources, SymInt num_targets, str norm, str self_loops, float fill, "
    "float scale, bool transposed) -> Tensor",
)
def propagate_op(
    x: Tensor,
    residual: Tensor | None,
    edges: list[Tensor],
    layout: str,
    weight: Tensor | None,
    num_sources: int,
    num_targets: int,
    norm: str,
    self_loops: str,
    fill: float,
    scale: float,
    transposed: bool,
) -> Tensor:
    """scale * A x + residual with the incoming edges A, or with their transpose."""
    graph = message_graph(layout, edges, num_sources, num_targets)
    if norm not in SUMS:
        matrix = gcn_matrix(graph, weight, x.dtype, self_loops, fill, transposed)
        factors = None if scale == 1 else x.new_full((x.shape[1],), scale)
        return backend(x.device).normalized_spmm(matrix, x, factors, residual)
    out = SUMS[norm](graph, weight, x, transposed)
    if scale != 1:
        out.mul_(scale)
    return out if residual is None else out.add_(residual)


@propagate_op.register_fake
def _propagate_fake(
    x: Tensor,
    residual: Tensor | None,
    edges: list[Tensor],
    layout: str,
    weight: Tensor | None,
    num_sources: int,
    num_targets: int,
    norm: str,
    self_loops: str,
    fill: float,
    scale: float,
    transposed: bool,
) -> Tensor:
    return x.new_empty(num_sources if transposed else num_targets, x.shape[1])


def _propagate_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, residual, edges, layout, weight, *ctx.arguments = inputs
    ctx.layout, ctx.num_edge_tensors = layout, len(edges)
    ctx.residual_dtype = None if residual is None else residual.dtype
    ctx.has_weight = weight is not None
    ctx.weight_needs_grad = weight is not None and ctx.needs_input_grad[4]
    needed = (weight if ctx.has_weight else None, x if ctx.weight_needs_grad else None)
    ctx.save_for_backward(*edges, *needed)


def _propagate_backward(ctx: Any, grad_out: Tensor) -> tuple[Any, ...]:
    *edges, weight, x = ctx.saved_tensors
    num_sources, num_targets, norm, self_loops, fill, scale, transposed = ctx.arguments
    grad_x = grad_residual = grad_weight = None
    if ctx.needs_input_grad[0]:
        grad_x = propagate_op(
            grad_out,
            None,
            edges,
            ctx.layout,
            weight,
            num_sources,
            num_targets,
            norm,
            self_loops,
            fill,
            scale,
            not transposed,
        )
    if ctx.residual_dtype is not None and ctx.needs_input_grad[1]:
        grad_residual = grad_out.to(ctx.residual_dtype)
    if ctx.weight_needs_grad:
        by_target, by_source = (x, grad_out) if transposed else (grad_out, x)
        dots = edge_dots_op(
            by_target, by_source, edges, ctx.layout, num_sources, num_targets
        )
        grad_weight = (scale * dots).to(weight.dtype)
    no_grads = [None] * len(edges)
    return grad_x, grad_residual, no_grads, None, grad_weight, *[None] * 7


def _propagate_vmap(
    info: Any, in_dims: tuple[Any, ...], x: Tensor, residual: Tensor | None, *rest: Any
) -> tuple[Tensor, int]:
    """A stack of inputs is one input with more columns."""
    refuse_batched(in_dims[2:])
    runs = info.batch_size
    columns = runs_to_columns(x, in_dims[0], runs)
    if residual is not None:
        residual = runs_to_columns(residual, in_dims[1], runs)
    return propagate_op(columns, residual, *rest).unflatten(1, (runs, -1)), 1


def refuse_batched(in_dims: tuple[Any, ...]) -> None:
    """Raise one clear line if `torch.vmap` maps over edges or their weights."""
    flat = torch.utils._pytree.tree_leaves(in_dims, is_leaf=lambda dim: dim is None)
    if any(dim is not None for dim in flat):
        raise UserError(
            "torch.vmap over edges or edge weights is not supported; map over the "
            "features or the parameters."
        )


propagate_op.register_autograd(_propagate_backward, setup_context=_propagate_context)
propagate_op.register_vmap(_propagate_vmap)


@custom_op(
    "unalike::edge_dots",
    mutates_args=(),
    schema="(Tensor x, Tensor y, Tensor[] edges, str layout, SymInt num_sources, "
    "SymInt num_targets) -> Tensor",
)
def edge_dots_op(
    x: Tensor,
    y: Tensor,
    edges: list[Tensor],
    layout: str,
    num_sources: int,
    num_targets: int,
) -> Tensor:
    """The inner product of x at the target and y at the source of each edge."""
    graph = message_graph(layout, edges, num_sources, num_targets)
    dots = backend(x.device).sddmm(graph.incoming, x, y)
    return graph.in_edge_order(dots)


@edge_dots_op.register_fake
def _edge_dots_fake(
    x: Tensor,
    y: Tensor,
    edges: list[Tensor],
    layout: str,
    num_sources: int,
    num_targets: int,
) -> Tensor:
    count = number_of_edges(layout, edges)
    return x.new_empty(count, dtype=torch.promote_types(x.dtype, torch.float32))


def refuse_double_backward(operator: Any, layer: str) -> None:
    """Let the gradient of an operator's output raise one clear line."""

    def refuse(ctx: Any, *grads: Tensor) -> None:
        raise UserError(f"{layer} has no second derivative.")

    operator.register_autograd(refuse)


refuse_double_backward(edge_dots_op, "A layer with gradients of edge weights")


# Plain sums and means.


def _sum(
    graph: MessageGraph, weight: Tensor | None, x: Tensor, transposed: bool
) -> Tensor:
    rows = graph.rows(weight, transposed=transposed)
    return backend(x.device).spmm(rows, x)


def _mean(
    graph: MessageGraph, weight: Tensor | None, x: Tensor, transposed: bool
) -> Tensor:
    key = ("mean", x.dtype)
    if key not in graph.cache:
        counts = graph.incoming.degrees.clamp(min=1).to(x.dtype)
        graph.cache[key] = counts.reciprocal()[:, None]
    scale = graph.cache[key]
    if transposed:
        return _sum(graph, weight, x * scale, transposed)
    return _sum(graph, weight, x, transposed).mul_(scale)


SUMS: dict[str, Callable[[MessageGraph, Tensor | None, Tensor, bool], Tensor]] = {
    "sum": _sum,
    "mean": _mean,
}
NORMS = (*SUMS, "gcn")
"""A x; A x divided by the number of edges; D^-1/2 (A + L) D^-1/2 x."""


# Symmetric normalisation.


def gcn_matrix(
    graph: MessageGraph,
    weight: Tensor | None,
    dtype: torch.dtype,
    self_loops: str,
    fill: float,
    transposed: bool,
) -> NormalizedCSR:
    """D^-1/2 (A + L) D^-1/2 or its transpose, computed once for each weight."""
    dtype = torch.promote_types(dtype, torch.float32)
    key = ("gcn", dtype, self_loops, fill, transposed)

    def compute() -> NormalizedCSR:
        scale, added = gcn_scale(graph, weight, dtype, self_loops, fill)
        rows = graph.rows(weight, transposed=transposed)
        return NormalizedCSR(rows, scale, added)

    if weight is not None:
        return graph.weights.get(weight, key, compute)
    if key not in graph.cache:
        graph.cache[key] = compute()
    return graph.cache[key]


def gcn_scale(
    graph: MessageGraph,
    weight: Tensor | None,
    dtype: torch.dtype,
    self_loops: str,
    fill: float,
) -> tuple[Tensor, Tensor]:
    """D^-1/2, and the weight that is added to the self-loops that are there."""
    rows, kernels = graph.rows(weight, transposed=False), backend(graph.targets.device)
    ones = torch.ones(rows.num_cols, 1, dtype=dtype, device=rows.indices.device)
    if rows.values is None:
        values, degrees = (
            torch.ones_like(rows.indices, dtype=dtype),
            rows.degrees.to(dtype),
        )
        fill = 1.0 if self_loops == "remaining" else fill  # as in PyG
    else:
        values, degrees = rows.values.to(dtype), kernels.spmm(rows, ones)[:, 0]
    is_loop = rows.indices == graph.targets
    loops = rows.with_values(torch.where(is_loop, values, 0))
    own = kernels.spmm(loops, ones)[:, 0]
    # With several self-loops, that of the last edge counts.
    entries = is_loop.nonzero()[:, 0]
    last = torch.full_like(rows.degrees, -1)
    last = last.scatter_reduce(0, graph.targets[entries], entries, "amax")
    has_loop = last >= 0
    kept = torch.full_like(own, fill)
    kept[has_loop] = values[last[has_loop]]
    added = {
        NO_SELF_LOOPS: torch.zeros_like(own),
        "remaining": kept - own,
        "added": torch.full_like(own, fill),
        "filled": fill - own,
    }[self_loops]
    scale = (degrees + added).pow(-0.5)
    return scale.masked_fill(scale == torch.inf, 0), added
