"""Batch norm, ReLU and the products around them as separate torch operations."""

import torch

from unalike.nn.linear import DeferredLinear


def between(block, x, weight_in=None, bias_in=None, weight_out=None):
    """The output of a `NormActDrop` block between two linear layers."""
    return block._between(DeferredLinear(x, weight_in, bias_in), weight_out)


def unfused(block, x, weight_in=None, bias_in=None, weight_out=None):
    """The output of a `NormActDrop` block without dropout."""
    x = x if weight_in is None else x @ weight_in
    x = x if bias_in is None else x + bias_in
    x = torch.relu(x) if block.relu == "before" else x
    x = block.norm(x)
    x = torch.relu(x) if block.relu == "after" else x
    return x if weight_out is None else x @ weight_out
