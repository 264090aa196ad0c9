"""Layers of PyTorch Geometric and ours side by side, and random graphs for them."""

import warnings

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_geometric.nn as pyg_nn

import unalike.pyg


def pair(name, *arguments, seed=0, **options):
    """PyG's layer and ours with the same weights, both in float64."""
    layers = []
    for package in (pyg_nn, unalike.pyg):
        torch.manual_seed(seed)
        layers.append(getattr(package, name)(*arguments, **options))
    theirs, ours = layers
    assert list(theirs.state_dict()) == list(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def random_edges(seed, sources, targets, count):
    """A directed edge_index in which loops and edges that are given twice occur.

    The last node of each side is isolated, and no node has two self-loops: for those
    PyG's gradient is that of a weight it does not use.
    """
    generator = torch.Generator().manual_seed(seed)
    ends = [
        torch.randint(max(size - 1, 1), (count,), generator=generator)
        for size in (sources, targets)
    ]
    edge_index = torch.stack(ends)
    if count > 3:
        edge_index[:, 1] = edge_index[:, 0]
    loops = edge_index[0] == edge_index[1]
    first = {}
    for edge in loops.nonzero()[:, 0].tolist():
        first.setdefault(int(edge_index[0, edge]), edge)
    kept = ~loops
    kept[list(first.values())] = True
    return edge_index[:, kept]


def output_and_gradients(layer, call, inputs, weight=None):
    """The output, and the gradients of all inputs, of the weight and of parameters."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    given = None if weight is None else weight.clone().requires_grad_()
    out = call(layer, leaves, given)
    generator = torch.Generator().manual_seed(7)
    grad_out = torch.randn(out.shape, generator=generator, dtype=out.dtype)
    wanted = [*leaves, *layer.parameters()]
    wanted += [] if given is None else [given]
    grads = torch.autograd.grad(out, wanted, grad_out, allow_unused=True)
    return [
        out.detach(),
        *(
            torch.zeros_like(tensor) if grad is None else grad
            for grad, tensor in zip(grads, wanted, strict=True)
        ),
    ]
