"""Batch norm, ReLU and dropout blocks in evaluation against separate operations."""

import itertools
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap
from unfused_norm import between, unfused

from unalike.nn.linear import DeferredLinear, Dropout, value
from unalike.nn.mlp import MLP
from unalike.nn.norm import NormActDrop, NormActDropLinear

NODES, WIDTH = 40, 6
SHAPES = {
    "weight_in": (WIDTH, WIDTH),
    "bias_in": (WIDTH,),
    "weight_out": (WIDTH, WIDTH),
}
SUBSETS = [
    names
    for count in range(len(SHAPES) + 1)
    for names in itertools.combinations(SHAPES, count)
]


class Between(nn.Module):
    """A block whose call between two linear layers is its forward pass."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x, **weights):
        return between(self.block, x, **weights)


def trained_block(relu):
    """A block whose batch norm has running statistics of other inputs."""
    block = NormActDrop(nn.BatchNorm1d(WIDTH), 0.5, relu=relu).double()
    nn.init.normal_(block.norm.weight)
    nn.init.normal_(block.norm.bias)
    block(3 * torch.randn(NODES, WIDTH).double() + 1)
    return block.eval()


@pytest.mark.parametrize("relu", ["before", "after", "none"])
@pytest.mark.parametrize("names", SUBSETS)
def test_a_block_equals_its_parts(relu, names):
    torch.manual_seed(0)
    block = trained_block(relu)
    weights = {name: torch.randn(SHAPES[name]).double() for name in names}
    x = torch.randn(NODES, WIDTH).double()
    expected = unfused(block, x, **weights)
    torch.testing.assert_close(between(block, x, **weights), expected)


@pytest.mark.parametrize("relu", ["before", "after", "none"])
@pytest.mark.parametrize("names", SUBSETS)
def test_runs_under_vmap_are_independent(relu, names):
    torch.manual_seed(0)
    blocks = [trained_block(relu) for _ in range(3)]
    weights = {name: torch.randn(3, *SHAPES[name]).double() for name in names}
    x = torch.randn(3, NODES, WIDTH).double()
    state = {
        name: torch.stack([block.state_dict()[name] for block in blocks])
        for name in blocks[0].state_dict()
    }

    called = Between(blocks[0])

    def forward(state, x, weights):
        inner = {f"block.{name}": tensor for name, tensor in state.items()}
        return functional_call(called, inner, (x,), weights)

    actual = vmap(forward)(state, x, weights)
    for run, block in enumerate(blocks):
        own = {name: stacked[run] for name, stacked in weights.items()}
        torch.testing.assert_close(actual[run], unfused(block, x[run], **own))


@pytest.mark.parametrize("relu", ["before", "after"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("defer", [False, True])
def test_product_after_a_block_may_be_deferred(relu, training, defer):
    torch.manual_seed(0)
    layer = NormActDropLinear(WIDTH, 4, 0.0, act=relu, defer=defer).double()
    layer.norm_act_drop = trained_block(relu)
    layer.norm_act_drop.dropout = Dropout(0.0)
    layer.train(training)
    before = DeferredLinear(
        *(torch.randn(size).double() for size in ((NODES, 3), (3, WIDTH)))
    )
    before = replace(before, bias=torch.randn(WIDTH).double())
    further = torch.randn(4, 2).double()
    twin = deepcopy(layer)
    hidden = unfused(twin.norm_act_drop, before.x, before.weight, before.bias)
    expected = twin.linear(hidden)
    actual = layer.defer(before)
    torch.testing.assert_close(actual.materialize(), expected)
    torch.testing.assert_close(actual.times(further).materialize(), expected @ further)
    assert (actual.weight is None) == (not defer)


@pytest.mark.parametrize("defer_last", [False, True])
def test_only_an_mlp_with_defer_last_leaves_its_last_product(defer_last):
    mlp = MLP(nn.Identity(), [WIDTH, WIDTH, 4], 0.0, defer_last=defer_last)
    out = mlp(torch.randn(NODES, WIDTH))
    assert isinstance(out, DeferredLinear) == defer_last
    assert not defer_last or out.weight is not None
    assert value(out).shape == (NODES, 4)
