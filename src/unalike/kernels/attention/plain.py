"""Attention in plain tensor operations: node by node by head, the oracle."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from unalike.kernels.attention import LEAK
from unalike.kernels.rows import Rows


def attend(
    rows: Rows,
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
    scores = F.leaky_relu(both, LEAK).where(_enters(rows)[:, :, None], -torch.inf)
    found = torch.einsum("ijh,jhd->ihd", scores.softmax(1), x.to(kind))
    return found.to(x.dtype), scores.logsumexp(1)


def _enters(rows: Rows) -> Bool[Tensor, "nodes nodes"]:
    """Does node j point at node i, or is it the same node?"""
    nodes = torch.arange(rows.width, device=rows.columns.device)
    enters = nodes[:, None] == nodes
    enters[rows.columns.long(), nodes.repeat_interleave(rows.degrees)] = True
    return enters
