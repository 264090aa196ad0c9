"""Room: how many runs to train at once."""

from __future__ import annotations

import torch
from torch import nn

from unalike.graph import Graph
from unalike.memory import free_memory
from unalike.training.sparse_linear import sparse_layers

CPU_WORK = 2**26
"""Multiplications an epoch past which processor cores gain nothing from a stack."""
CUDA_SHARE = 0.7
"""Share of a card's free memory that a stack may plan to use."""
WEIGHT_COPIES = 6
"""Weights, two moments, the best so far, a gradient, and one copy while stacking."""
ACTIVATION_COPIES = 10
"""Hidden numbers per row and column that a step holds at the same time."""


def runs_at_once(
    network: nn.Module, graph: Graph, device: torch.device, *, row_wise: bool
) -> int:
    """The size of a stack that keeps the device busy and fits into its memory."""
    if device.type == "cuda":
        room = CUDA_SHARE * free_memory(device)
        needed = bytes_of_run(network, graph, row_wise=row_wise)
        return max(1, int(room / needed))
    layers = sparse_layers(network).values()
    matrices = [getattr(graph, layer.source) for layer in layers]
    if not row_wise:
        matrices.append(graph.adjacency)
    entries = sum(matrix.num_entries for matrix in matrices)
    work = num_weights(network) + entries * width_of(network, row_wise=row_wise)
    return max(1, CPU_WORK // max(1, work))


def bytes_of_run(network: nn.Module, graph: Graph, *, row_wise: bool) -> int:
    """The memory that one more run of a stack needs, about."""
    width = max(width_of(network, row_wise=row_wise), 1)
    activations = graph.num_nodes * width * ACTIVATION_COPIES
    return 4 * (num_weights(network) * WEIGHT_COPIES + activations)


def num_weights(network: nn.Module) -> int:
    """Numbers in the weights of `SparseLinear` layers."""
    return sum(layer.weight.numel() for layer in sparse_layers(network).values())


def width_of(network: nn.Module, *, row_wise: bool) -> int:
    """Activations per node."""
    width = sum(layer.out_features for layer in sparse_layers(network).values())
    if row_wise and width:
        return width
    return width + hidden_width(network)


def hidden_width(network: nn.Module) -> int:
    """Activations per node behind the input.

    By the size of biases and norms, or of weights where layers have no bias.
    """
    sparse = {id(layer.weight) for layer in sparse_layers(network).values()}
    own = [p for p in network.parameters() if id(p) not in sparse]
    vectors = sum(p.numel() for p in own if p.dim() == 1)
    return max(vectors, sum(min(p.shape) for p in own if p.dim() == 2))
