"""Bridges as torch takes them: product, norm, ReLU and product, one by one."""

import torch


def one_by_one(bridge, x, weight_in=None, bias_in=None, weight_out=None):
    """What crosses a bridge that drops nothing."""
    x = x if weight_in is None else x @ weight_in
    x = x if bias_in is None else x + bias_in
    x = torch.relu(x) if bridge.relu == "before" else x
    x = bridge.norm(x)
    x = torch.relu(x) if bridge.relu == "after" else x
    return x if weight_out is None else x @ weight_out
