"""Room: how many runs to train at once."""

from __future__ import annotations

import torch

from unalike.graph import Graph
from unalike.memory import free_memory
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
    if device.type == "cuda":
        room = CUDA_SHARE * free_memory(device)
        return max(1, int(room / bytes_of_run(network, graph)))
    matrices = list(network.inputs(graph).values())
    if not network.row_wise:
        matrices.append(graph.adjacency)
    entries = sum(matrix.num_entries for matrix in matrices)
    work = num_weights(network) + entries * width_of(network)
    return max(1, CPU_WORK // max(1, work))


def bytes_of_run(network: Network, graph: Graph) -> int:
    """The memory that one more run of a stack needs, about."""
    activations = graph.num_nodes * max(width_of(network), 1) * ACTIVATION_COPIES
    return 4 * (num_weights(network) * WEIGHT_COPIES + activations)


def num_weights(network: Network) -> int:
    """Numbers in the tables of a network."""
    return sum(table.numel() for table in network.tables.values())


def width_of(network: Network) -> int:
    """Numbers that a network holds per node."""
    width = sum(table.shape[1] for table in network.tables.values())
    return width if network.row_wise else width + hidden_width(network)


def hidden_width(network: Network) -> int:
    """Numbers per node behind the tables, by the vectors that add to or weigh them."""
    return sum(p.numel() for p in network.parameters() if p.dim() == 1)
