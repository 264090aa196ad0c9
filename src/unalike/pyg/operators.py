"""Custom operators of torch: weighted sums over incoming edges, with gradients.

They take the tensors of the edges as they are given and find the CSR arrays by the
identity of these tensors, so that `torch.compile` sees one operator and no conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unalike.errors import InputError, UserError
from unalike.nn.sparse import NormalizedCSR, backend, runs_to_columns
from unalike.pyg.custom_operator import (
    Context,
    no_second_derivative,
    refuse_batched,
    register_operator,
)
from unalike.pyg.edges import EdgeRows, Edges, Layout, MessageGraph, message_graph

NO_SELF_LOOPS = "none"


def propagate(
    x: Tensor,
    edges: Edges,
    num_targets: int,
    norm: str,
    self_loops: str = NO_SELF_LOOPS,
    fill: float = 1.0,
    *,
    scale: float = 1.0,
    residual: Tensor | None = None,
    restart: float = 0.0,
    steps: int = 1,
) -> Tensor:
    """scale * A x + residual, where A holds the incoming edges, normalised by `norm`.

    `norm` is one of `NORMS`. With several `steps`, each multiplies what the one before
    gave and adds `restart` times the first x.
    """
    check_features(x)
    if x.layout != torch.strided:
        raise InputError(
            "x is a torch.sparse tensor, which this layer does not propagate; give a "
            "dense tensor."
        )
    check_device(x, edges)
    return propagate_op(
        x,
        residual,
        edges.indices,
        edges.indptr,
        edges.layout,
        edges.weight,
        x.shape[0],
        num_targets,
        norm,
        self_loops,
        fill,
        scale,
        restart,
        steps,
        False,
    )


def check_features(x: Tensor) -> None:
    """Refuse features that are not a row for each node."""
    if x.dim() != 2:
        raise InputError(
            f"x has the shape {list(x.shape)}; give [nodes, columns], and use "
            "torch.vmap for several x on one graph."
        )


def check_device(x: Tensor, edges: Edges) -> None:
    """Refuse features and edges on different devices."""
    for what, tensor in (("edges", edges.indices), ("edge weights", edges.weight)):
        if tensor is not None and tensor.device != x.device:
            raise InputError(
                f"x is on {x.device}, but the {what} are on {tensor.device}; move them "
                "to one device."
            )


def _propagate(
    x: Tensor,
    residual: Tensor | None,
    index: Tensor,
    indptr: Tensor | None,
    layout: Layout,
    weight: Tensor | None,
    num_sources: int,
    num_targets: int,
    norm: str,
    self_loops: str,
    fill: float,
    scale: float,
    restart: float,
    steps: int,
    transposed: bool,
) -> Tensor:
    """Steps of scale * A x + residual with the incoming edges A, or the transpose."""
    graph = message_graph(layout, index, indptr, num_sources, num_targets)
    if restart != 0:
        residual = restart * x
    if x.is_cuda and norm in FUSED_ON_CUDA:
        matrix = gcn_matrix(graph, weight, x.dtype, self_loops, fill, transposed)
        factors = None if scale == 1 else x.new_full((x.shape[1],), scale)
        for _ in range(steps):
            x = backend(x.device).normalized_spmm(matrix, x, factors, residual)
        return x
    options = (graph, weight, x.dtype, transposed, self_loops, fill)
    rows, before, after = FACTORS[norm](*options)
    if scale != 1:
        exact = torch.promote_types(x.dtype, torch.float32)
        ones = x.new_ones(len(rows.degrees), dtype=exact)
        after = scale * (ones if after is None else after)
    for _ in range(steps):
        x = x if before is None else x * before[:, None].to(x.dtype)
        x = backend(x.device).spmm(rows, x, scale=after, residual=residual)
    return x


def _propagate_fake(
    x: Tensor,
    residual: Tensor | None,
    index: Tensor,
    indptr: Tensor | None,
    layout: Layout,
    weight: Tensor | None,
    num_sources: int,
    num_targets: int,
    norm: str,
    self_loops: str,
    fill: float,
    scale: float,
    restart: float,
    steps: int,
    transposed: bool,
) -> Tensor:
    return x.new_empty(num_sources if transposed else num_targets, x.shape[1])


def _propagate_context(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, residual, index, indptr, ctx.layout, weight, *ctx.arguments = inputs
    ctx.residual_dtype = None if residual is None else residual.dtype
    needs_x = weight is not None and ctx.needs_input_grad[5]
    ctx.save_for_backward(index, indptr, weight, x if needs_x else None)
    ctx.save_for_forward(index, indptr, weight)
    ctx.set_materialize_grads(False)  # a tangent that is not given is None


def _propagate_backward(ctx: Context, grad_out: Tensor | None) -> tuple[Any, ...]:
    if grad_out is None:
        return (None,) * 15
    index, indptr, weight, x = ctx.saved_tensors
    *others, transposed = ctx.arguments
    grad_x = grad_residual = grad_weight = None
    if ctx.needs_input_grad[0]:
        edges = (index, indptr, ctx.layout, weight)
        grad_x = propagate_op(grad_out, None, *edges, *others, not transposed)
    if ctx.residual_dtype is not None and ctx.needs_input_grad[1]:
        grad_residual = grad_out.to(ctx.residual_dtype)
    if x is not None:
        num_sources, num_targets, _, _, _, scale, _, steps = others
        assert steps == 1
        pair = (x, grad_out) if transposed else (grad_out, x)
        sizes = (num_sources, num_targets)
        dots = edge_dots_op(*pair, index, indptr, ctx.layout, *sizes)
        grad_weight = (scale * dots).to(weight.dtype)
    return grad_x, grad_residual, None, None, None, grad_weight, *[None] * 9


def _propagate_jvp(
    ctx: Context, x: Tensor | None, residual: Tensor | None, *others: Tensor | None
) -> Tensor:
    """The operator is linear in x and residual."""
    index, indptr, weight, *_ = ctx.saved_tensors
    if any(tangent is not None for tangent in others):
        raise UserError(
            "Edge weights have no forward-mode derivative; use reverse mode, such as "
            "torch.func.vjp and torch.func.jacrev."
        )
    if x is None:
        assert residual is not None
        return residual.clone()
    edges = (index, indptr, ctx.layout, weight)
    tangent: Tensor = propagate_op(x, residual, *edges, *ctx.arguments)
    return tangent


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


propagate_op = register_operator(
    "propagate(Tensor x, Tensor? residual, Tensor index, Tensor? indptr, str layout, "
    "Tensor? weight, SymInt num_sources, SymInt num_targets, str norm, str self_loops, "
    "float fill, float scale, float restart, int steps, bool transposed) -> Tensor",
    _propagate,
    fake=_propagate_fake,
    setup_context=_propagate_context,
    backward=_propagate_backward,
    vmap=_propagate_vmap,
    jvp=_propagate_jvp,
)


def _edge_dots(
    x: Tensor,
    y: Tensor,
    index: Tensor,
    indptr: Tensor | None,
    layout: Layout,
    num_sources: int,
    num_targets: int,
) -> Tensor:
    """The inner product of x at the target and y at the source of each edge."""
    graph = message_graph(layout, index, indptr, num_sources, num_targets)
    dots = backend(x.device).sddmm(graph.incoming, x, y)
    return graph.in_edge_order(dots)


def _edge_dots_fake(x: Tensor, y: Tensor, index: Tensor, *_: Any) -> Tensor:
    dtype = torch.promote_types(x.dtype, torch.float32)
    return x.new_empty(index.shape[-1], dtype=dtype)


edge_dots_op = register_operator(
    "edge_dots(Tensor x, Tensor y, Tensor index, Tensor? indptr, str layout, "
    "SymInt num_sources, SymInt num_targets) -> Tensor",
    _edge_dots,
    fake=_edge_dots_fake,
    **no_second_derivative("A layer with gradients of edge weights"),
)


# A matrix of the edges, and vectors that scale the rows before and after the product
# with it. On a GPU, one kernel scales while it adds.

Factors = tuple[EdgeRows, Tensor | None, Tensor | None]


def _sum_factors(
    graph: MessageGraph,
    weight: Tensor | None,
    dtype: torch.dtype,
    transposed: bool,
    *_: Any,
) -> Factors:
    return graph.rows(weight, transposed=transposed), None, None


def _mean_factors(
    graph: MessageGraph,
    weight: Tensor | None,
    dtype: torch.dtype,
    transposed: bool,
    *_: Any,
) -> Factors:
    rows = graph.rows(weight, transposed=transposed)
    exact = torch.promote_types(dtype, torch.float32)
    counts = graph.incoming.degrees.clamp(min=1)
    scale = graph.cached(None, ("mean", exact), lambda: counts.to(exact).reciprocal())
    return (rows, scale, None) if transposed else (rows, None, scale)


def _gcn_factors(
    graph: MessageGraph,
    weight: Tensor | None,
    dtype: torch.dtype,
    transposed: bool,
    self_loops: str,
    fill: float,
) -> Factors:
    exact = torch.promote_types(dtype, torch.float32)
    rows = gcn_rows(graph, weight, exact, self_loops, fill, transposed)
    return rows, None, None


FACTORS: dict[str, Callable[..., Factors]] = {
    "sum": _sum_factors,
    "mean": _mean_factors,
    "gcn": _gcn_factors,
}
NORMS = tuple(FACTORS)
"""A x; A x divided by the number of edges; D^-1/2 (A + L) D^-1/2 x."""
FUSED_ON_CUDA = ("gcn",)
"""Norms with a kernel on a GPU that needs no value for each entry."""


# Symmetric normalisation.


def gcn_rows(
    graph: MessageGraph,
    weight: Tensor | None,
    dtype: torch.dtype,
    self_loops: str,
    fill: float,
    transposed: bool,
) -> EdgeRows:
    """The normalised matrix with a value for each entry, or its transpose.

    The sums of the CPU take weights in the same time, which saves the passes over all
    columns before and after.
    """
    key = ("gcn rows", dtype, self_loops, fill, transposed)

    def compute() -> EdgeRows:
        scale, added = gcn_scale(graph, weight, dtype, self_loops, fill)
        rows = graph.rows(weight, transposed=transposed)
        row_ids = torch.arange(len(scale)).repeat_interleave(rows.degrees)
        values = scale[row_ids] * scale[rows.indices.long()]
        if rows.values is not None:
            values *= rows.values
        rows = rows.with_values(values)
        if self_loops == NO_SELF_LOOPS:
            return rows
        return append_self_loops(rows, row_ids, scale * added * scale)

    return graph.cached(weight, key, compute)


def append_self_loops(rows: EdgeRows, row_ids: Tensor, weight: Tensor) -> EdgeRows:
    """A matrix with one more entry at the end of each row, which is its self-loop."""
    assert rows.values is not None
    nodes = torch.arange(len(weight) + 1)
    indptr = rows.indptr + nodes
    entries, loops = torch.arange(len(row_ids)) + row_ids, indptr[1:] - 1
    indices = rows.indices.new_empty(len(entries) + len(loops))
    values = weight.new_empty(len(indices))
    indices[entries], values[entries] = rows.indices, rows.values
    indices[loops], values[loops] = nodes[:-1].to(indices.dtype), weight
    return EdgeRows(indptr, indices, rows.num_cols, values)


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

    return graph.cached(weight, key, compute)


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
