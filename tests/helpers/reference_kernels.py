"""Reference kernels in plain torch, which define what the CPU and CUDA kernels do."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from unalike.data.csr import CSRMatrix
from unalike.nn.attention import NEGATIVE_SLOPE, Heads, Scores
from unalike.nn.optim import ADAM_EPS, BETA1, BETA2, AdamWState, AdamWStep
from unalike.nn.sparse import Dense, NormalizedCSR, Vector


def spmm(
    rows: CSRMatrix, dense: Dense, bias: Vector | None = None, out: Dense | None = None
) -> Dense:
    """The product of a CSR matrix and a dense one, plus a bias, written to `out`.

    bfloat16 and float16 are summed as float32, then rounded.
    """
    degrees = rows.indptr.diff()
    row_indices = torch.arange(len(degrees), device=dense.device)
    terms = dense[rows.indices.long()]
    terms = terms.to(torch.promote_types(dense.dtype, torch.float32))
    if rows.values is not None:
        terms = terms * rows.values[:, None]
    total = terms.new_zeros(len(degrees), dense.shape[1])
    if bias is not None:
        total += bias
    row_indices = row_indices.repeat_interleave(degrees)
    result = total.index_add(0, row_indices, terms).to(dense.dtype)
    return result if out is None else out.copy_(result)


def normalized_spmm(
    adjacency: NormalizedCSR,
    dense: Dense,
    column_scale: Vector | None = None,
    residual: Dense | None = None,
) -> Dense:
    """column_scale * S (A + L) S dense + residual."""
    dtype = torch.promote_types(dense.dtype, torch.float32)
    scale = adjacency.scale[:, None].to(dtype)
    self_loop_weight = adjacency.self_loop_weight[:, None].to(dtype)
    scaled = scale * dense
    out = scale * (spmm(adjacency.csr, scaled) + self_loop_weight * scaled)
    out = out if column_scale is None else column_scale.to(dtype) * out
    out = out if residual is None else out + residual
    return out.to(dense.dtype)


def gat_forward(
    rows: CSRMatrix, x: Heads, source: Scores, target: Scores
) -> tuple[Heads, Scores]:
    """The attention-weighted sums over incoming edges, with their logsumexp.

    out_i = sum_j w_ij x_j over the nodes j that point at i and i itself, with
    w_ij = exp(e_ij) / sum_j exp(e_ij) and e_ij = LeakyReLU(source_j + target_i).
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    scores = F.leaky_relu(
        source.to(dtype) + target.to(dtype)[:, None], NEGATIVE_SLOPE
    ).where(dense_mask(rows)[:, :, None], -torch.inf)
    out = torch.einsum("ijh,jhd->ihd", scores.softmax(1), x.to(dtype))
    return out.to(x.dtype), scores.logsumexp(1)


def dense_mask(rows: CSRMatrix) -> Bool[Tensor, "nodes nodes"]:
    """Entry [i, j]: does node j point at node i, or is it the same node?"""
    nodes = torch.arange(rows.num_cols, device=rows.indices.device)
    mask = nodes[:, None] == nodes
    mask[rows.indices.long(), nodes.repeat_interleave(rows.degrees)] = True
    return mask


def adamw(
    state: AdamWState, grad: Float[Tensor, "rows runs width"], step: AdamWStep
) -> None:
    """Save the best weights, then take an AdamW step (Loshchilov and Hutter 2019)."""
    lr, weight_decay = step.lr[:, None], step.weight_decay[:, None]
    best = torch.where(step.improved[:, None], state.weight, state.best_weight)
    state.best_weight.copy_(best)
    state.exp_avg.mul_(BETA1).add_(grad, alpha=1 - BETA1)
    state.exp_avg_sq.mul_(BETA2).addcmul_(grad, grad, value=1 - BETA2)
    correction1, correction2 = step.bias_corrections
    denominator = (state.exp_avg_sq * correction2).sqrt() + ADAM_EPS
    update = lr * correction1 * state.exp_avg / denominator
    state.weight.mul_(1 - lr * weight_decay).sub_(update)
    if state.weight_bf16 is not None:
        state.weight_bf16.copy_(state.weight)


def spmm_adamw(
    state: AdamWState,
    rows: CSRMatrix,
    grad_out: Float[Tensor, "sources runs width"],
    step: AdamWStep,
) -> None:
    """An AdamW step along the gradient rows @ grad_out."""
    grad = spmm(rows, grad_out.flatten(1).float())
    adamw(state, grad.view_as(state.weight), step)
