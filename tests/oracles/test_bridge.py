"""Bridges that score: batch norm and ReLU as torch takes them one by one."""

import itertools
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from bridges import one_by_one
from torch import nn
from torch.func import functional_call, vmap

from unalike.nn.dropout import Dropout
from unalike.nn.linear import DeferredLinear, value
from unalike.nn.mlp import MLP
from unalike.nn.norm import NormActDrop, NormActDropLinear

NODES, WIDTH = 40, 6
SHAPES = {
    "weight_in": (WIDTH, WIDTH),
    "bias_in": (WIDTH,),
    "weight_out": (WIDTH, WIDTH),
}
GIVEN = [
    names
    for count in range(len(SHAPES) + 1)
    for names in itertools.combinations(SHAPES, count)
]


class Between(nn.Module):
    """A block whose call between two linear layers is its forward pass."""

    def __init__(self, bridge):
        super().__init__()
        self.bridge = bridge

    def forward(self, x, **weights):
        return self.bridge._between(x, **weights)


def trained_bridge(relu):
    """A bridge whose batch norm has seen other numbers before."""
    bridge = NormActDrop(nn.BatchNorm1d(WIDTH), 0.5, relu=relu).double()
    nn.init.normal_(bridge.norm.weight)
    nn.init.normal_(bridge.norm.bias)
    bridge(3 * torch.randn(NODES, WIDTH).double() + 1)
    return bridge.eval()


@pytest.mark.parametrize("relu", ["before", "after", "none"])
@pytest.mark.parametrize("names", GIVEN)
def test_a_bridge_scores_as_its_parts_do(relu, names):
    torch.manual_seed(0)
    bridge = trained_bridge(relu)
    weights = {name: torch.randn(SHAPES[name]).double() for name in names}
    x = torch.randn(NODES, WIDTH).double()
    wanted = one_by_one(bridge, x, **weights)
    torch.testing.assert_close(bridge._between(x, **weights), wanted)


@pytest.mark.parametrize("relu", ["before", "after", "none"])
@pytest.mark.parametrize("names", GIVEN)
def test_the_runs_of_a_stack_score_apart(relu, names):
    torch.manual_seed(0)
    bridges = [trained_bridge(relu) for _ in range(3)]
    weights = {name: torch.randn(3, *SHAPES[name]).double() for name in names}
    x = torch.randn(3, NODES, WIDTH).double()
    state = {
        name: torch.stack([bridge.state_dict()[name] for bridge in bridges])
        for name in bridges[0].state_dict()
    }

    called = Between(bridges[0])

    def score(state, x, weights):
        inner = {f"bridge.{name}": tensor for name, tensor in state.items()}
        return functional_call(called, inner, (x,), weights)

    found = vmap(score)(state, x, weights)
    for run, bridge in enumerate(bridges):
        own = {name: stacked[run] for name, stacked in weights.items()}
        torch.testing.assert_close(found[run], one_by_one(bridge, x[run], **own))


@pytest.mark.parametrize("relu", ["before", "after"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("joined", [False, True])
def test_a_map_behind_a_bridge_may_be_taken_later(relu, training, joined):
    torch.manual_seed(0)
    layer = NormActDropLinear(WIDTH, 4, 0.0, act=relu, defer=joined).double()
    layer.norm_act_drop = trained_bridge(relu)
    layer.norm_act_drop.dropout = Dropout(0.0)
    layer.train(training)
    before = DeferredLinear(
        *(torch.randn(size).double() for size in ((NODES, 3), (3, WIDTH)))
    )
    before = replace(before, offset=torch.randn(WIDTH).double())
    further = torch.randn(4, 2).double()
    twin = deepcopy(layer)
    crossed = one_by_one(twin.norm_act_drop, before.rows, before.weight, before.offset)
    wanted = twin.linear(crossed)
    found = layer.defer(before)
    torch.testing.assert_close(found.value(), wanted)
    torch.testing.assert_close(found.times(further).value(), wanted @ further)
    assert (found.weight is None) == (not joined and (training or relu == "after"))


@pytest.mark.parametrize("joined", [False, True])
def test_only_a_perceptron_that_is_joined_leaves_its_last_product(joined):
    perceptron = MLP(nn.Identity(), [WIDTH, WIDTH, 4], 0.0, defer_last=joined)
    found = perceptron(torch.randn(NODES, WIDTH))
    assert isinstance(found, DeferredLinear) == joined
    assert not joined or found.weight is not None
    assert value(found).shape == (NODES, 4)
