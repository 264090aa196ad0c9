"""Bridges that score: batch norm and ReLU as torch takes them one by one."""

import pytest
import torch
from bridges import one_by_one
from torch import nn
from torch.func import functional_call, vmap

from unalike.methods.layers.bridge import Bridge

NODES, WIDTH = 40, 6


def trained_bridge(relu):
    """A bridge whose batch norm has seen other numbers before."""
    bridge = Bridge(nn.BatchNorm1d(WIDTH), 0.5, relu=relu).double()
    nn.init.normal_(bridge.norm.weight)
    nn.init.normal_(bridge.norm.bias)
    bridge(3 * torch.randn(NODES, WIDTH).double() + 1)
    return bridge.eval()


@pytest.mark.parametrize("relu", ["before", "after", "none"])
@pytest.mark.parametrize("names", [(), ("into",), ("out_of",), ("into", "out_of")])
def test_a_bridge_scores_as_its_parts_do(relu, names):
    torch.manual_seed(0)
    bridge = trained_bridge(relu)
    weights = {name: torch.randn(WIDTH, WIDTH).double() for name in names}
    x = torch.randn(NODES, WIDTH).double()
    wanted = one_by_one(bridge, x, **weights)
    torch.testing.assert_close(bridge(x, **weights), wanted)


@pytest.mark.parametrize("relu", ["before", "after", "none"])
@pytest.mark.parametrize("names", [(), ("into",), ("out_of",), ("into", "out_of")])
def test_the_runs_of_a_stack_score_apart(relu, names):
    torch.manual_seed(0)
    bridges = [trained_bridge(relu) for _ in range(3)]
    weights = {name: torch.randn(3, WIDTH, WIDTH).double() for name in names}
    x = torch.randn(3, NODES, WIDTH).double()
    state = {
        name: torch.stack([bridge.state_dict()[name] for bridge in bridges])
        for name in bridges[0].state_dict()
    }

    def score(state, x, weights):
        return functional_call(bridges[0], state, (x,), weights)

    found = vmap(score)(state, x, weights)
    for run, bridge in enumerate(bridges):
        own = {name: stacked[run] for name, stacked in weights.items()}
        torch.testing.assert_close(found[run], one_by_one(bridge, x[run], **own))
