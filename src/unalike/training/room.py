"""Room: how many runs to train at once."""

from __future__ import annotations

import torch

from unalike.graph import Graph
from unalike.training.network import Network

CPU_WORK = 2**26
"""Multiplications an epoch past which processor cores gain nothing from a stack."""
CUDA_SHARE = 0.7
"""Share of a card's free memory that a stack may plan to use."""
WEIGHT_COPIES = 6
"""Weights, two moments, the best so far, a gradient, and one copy while stacking."""
ACTIVATION_COPIES = 10
"""Hidden numbers per row and column that a step holds at the same time."""


def runs_at_once(network: Network, graph: Graph, device: torch.device) -> int:
    """A stack that keeps the device busy and fits into its memory."""
    matrices = list(network.inputs(graph).values())
    width = sum(table.shape[1] for table in network.tables.values())
    weights = sum(table.numel() for table in network.tables.values())
    if not network.row_wise:
        matrices.append(graph.adjacency)
        width += hidden_width(network)
    if device.type != "cuda":
        entries = sum(matrix.num_entries for matrix in matrices)
        return max(1, CPU_WORK // max(1, weights + entries * width))
    activations = graph.num_nodes * max(width, 1) * ACTIVATION_COPIES
    needed = 4 * (weights * WEIGHT_COPIES + activations)
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, int(CUDA_SHARE * free / needed))


def hidden_width(network: Network) -> int:
    """Numbers per node behind the tables, by the vectors that add to or weigh them."""
    return sum(p.numel() for p in network.parameters() if p.dim() == 1)
