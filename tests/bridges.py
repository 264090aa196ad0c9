"""Bridges as torch takes them: product, norm, ReLU and product, one by one."""

import torch


def one_by_one(bridge, x, into=None, offset=None, out_of=None):
    """What crosses a bridge that drops nothing."""
    x = x if into is None else x @ into
    x = x if offset is None else x + offset
    x = torch.relu(x) if bridge.relu == "before" else x
    x = bridge.norm(x)
    x = torch.relu(x) if bridge.relu == "after" else x
    return x if out_of is None else x @ out_of
