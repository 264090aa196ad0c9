"""Every kernel in plain torch, for tests."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from unalike.data.csr import CSRMatrix
from unalike.nn.attention import NEGATIVE_SLOPE
from unalike.nn.optim import ADAM_EPS, BETA1, BETA2, AdamWState, AdamWStep
from unalike.nn.sparse import NormalizedCSR

# Attention in plain tensor operations: node by node by head, the oracle.


def gat_forward(
    rows: CSRMatrix,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
) -> tuple[Float[Tensor, "nodes heads width"], Float[Tensor, "nodes heads"]]:
    """What nodes gather along edges that enter them, and the logs of weights' sums.

    Node i gathers sum_j w_ij x_j over the nodes j that point at it and itself, with
    w_ij = exp(e_ij) / sum_j exp(e_ij) and e_ij = LeakyReLU(source_j + target_i).
    """
    kind = torch.promote_types(x.dtype, torch.float32)
    both = source.to(kind) + target.to(kind)[:, None]
    scores = F.leaky_relu(both, NEGATIVE_SLOPE).where(
        dense_mask(rows)[:, :, None], -torch.inf
    )
    found = torch.einsum("ijh,jhd->ihd", scores.softmax(1), x.to(kind))
    return found.to(x.dtype), scores.logsumexp(1)


def dense_mask(rows: CSRMatrix) -> Bool[Tensor, "nodes nodes"]:
    """Does node j point at node i, or is it the same node?"""
    nodes = torch.arange(rows.num_cols, device=rows.indices.device)
    enters = nodes[:, None] == nodes
    enters[rows.indices.long(), nodes.repeat_interleave(rows.degrees)] = True
    return enters


# The kernels in plain tensor operations: slow, obviously right, the oracle.


def spmm(
    rows: CSRMatrix,
    dense: Float[Tensor, "columns width"],
    offset: Float[Tensor, " width"] | None = None,
    out: Float[Tensor, "rows width"] | None = None,
) -> Float[Tensor, "rows width"]:
    """For each row the sum of the dense rows its columns name, times their values.

    The offset is added to every row. Halves are summed as float32, then rounded. The
    sums are written to `out` where it is given.
    """
    lengths = rows.indptr.diff()
    row_of_entry = torch.arange(len(lengths), device=dense.device)
    picked = dense[rows.indices.long()]
    picked = picked.to(torch.promote_types(dense.dtype, torch.float32))
    if rows.values is not None:
        picked = picked * rows.values[:, None]
    total = picked.new_zeros(len(lengths), dense.shape[1])
    if offset is not None:
        total += offset
    rows_of_entries = row_of_entry.repeat_interleave(lengths)
    found = total.index_add(0, rows_of_entries, picked).to(dense.dtype)
    return found if out is None else out.copy_(found)


def normalized_spmm(
    spread: NormalizedCSR,
    dense: Float[Tensor, "nodes width"],
    keep: Float[Tensor, " width"] | None = None,
    start: Float[Tensor, "nodes width"] | None = None,
    multiply: Callable[[CSRMatrix, Tensor], Tensor] = spmm,
) -> Float[Tensor, "nodes width"]:
    """The product with S (A + L) S; some of each column is kept, a start is added."""
    exact = torch.promote_types(dense.dtype, torch.float32)
    scale, added = (
        part[:, None].to(exact) for part in (spread.scale, spread.self_loop_weight)
    )
    scaled = scale * dense
    found = scale * (multiply(spread.csr, scaled) + added * scaled)
    found = found if keep is None else keep.to(exact) * found
    found = found if start is None else found + start
    return found.to(dense.dtype)


def adamw(
    weights: AdamWState, gradient: Float[Tensor, "rows runs width"], step: AdamWStep
) -> None:
    """Keep the best weights, then one step of AdamW (Loshchilov and Hutter 2019)."""
    rate, decay = step.lr[:, None], step.weight_decay[:, None]
    kept = torch.where(step.improved[:, None], weights.weight, weights.best_weight)
    weights.best_weight.copy_(kept)
    weights.exp_avg.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
    weights.exp_avg_sq.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
    scale1, scale2 = step.bias_corrections
    spread = (weights.exp_avg_sq * scale2).sqrt() + ADAM_EPS
    moved = rate * scale1 * weights.exp_avg / spread
    weights.weight.mul_(1 - rate * decay).sub_(moved)
    if weights.weight_bf16 is not None:
        weights.weight_bf16.copy_(weights.weight)


def spmm_adamw(
    weights: AdamWState,
    rows: CSRMatrix,
    gradient: Float[Tensor, "sources runs width"],
    step: AdamWStep,
) -> None:
    """A step of AdamW whose gradient is a gather of what reaches each row."""
    gathered = spmm(rows, gradient.flatten(1).float())
    adamw(weights, gathered.view_as(weights.weight), step)
