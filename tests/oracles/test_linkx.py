"""LINKX, LINK and LINK-concat against other ways to compute the same."""

import pytest
import torch
from graphs import suiting
from message_passing_models import entry_of
from pyg_models import Peer
from torch import nn

from unalike.methods.link import LINK
from unalike.methods.link_concat import LINKConcat
from unalike.methods.linkx import LINKX
from unalike.nn.linear import ConcatResidual, DeferredLinear

FEATURES = ("dense", "sparse", "one-hot", "half")


def graph_of(features, directed=True):
    return suiting(nodes=40, classes=3, features=features, directed=directed)


def unsettle(network):
    """Give every batch norm statistics and scales as if it had been trained."""
    for part in network.modules():
        if isinstance(part, nn.BatchNorm1d):
            for tensor in (part.weight.data, part.bias.data, part.running_mean):
                tensor.uniform_(-1, 1)
            part.running_var.uniform_(0.5, 2)
    return network.eval()


@torch.no_grad()
def copy_linear(to, weight, offset):
    to.weight.copy_(weight)
    to.bias.copy_(offset)


def copy_mlp(to, linears, norms):
    for mine, other in zip(linears, to.lins, strict=True):
        copy_linear(other, *mine)
    for mine, other in zip(norms, to.norms, strict=True):
        other.module.load_state_dict(mine.state_dict())


def parts(sequence, kind):
    return [part for part in sequence.modules() if isinstance(part, kind)]


def linears(sequence):
    return [(part.weight, part.bias) for part in parts(sequence, nn.Linear)]


@torch.no_grad()
def copied(network, other):
    """Move the weights of our network into that of PyTorch Geometric."""
    first = network.mlp_a.first
    copy_linear(other.edge_lin, first.weight, first.bias)
    if other.edge_mlp is not None:
        norm, *norms = parts(network.mlp_a.layers, nn.BatchNorm1d)
        other.edge_norm.load_state_dict(norm.state_dict())
        copy_mlp(other.edge_mlp, linears(network.mlp_a.layers), norms)
    weight, offset = entry_of(network)
    maps = [(weight.T, offset), *linears(network.mlp_x.layers)]
    copy_mlp(other.node_mlp, maps, parts(network.mlp_x.layers, nn.BatchNorm1d))
    for_a, for_x = network.combine.linear.weight.chunk(2, 1)
    bias = network.combine.linear.bias
    copy_linear(other.cat_lin1, for_a, bias / 2)
    copy_linear(other.cat_lin2, for_x, bias / 2)
    norms = parts(network.mlp_f, nn.BatchNorm1d)
    copy_mlp(other.final_mlp, linears(network.mlp_f), norms)
    return other.eval()


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("inner", [1, 2])
@pytest.mark.parametrize("layers", [1, 3])
def test_linkx_is_that_of_pytorch_geometric(features, inner, layers):
    graph = graph_of(features)
    method = LINKX(hidden=8, layers=layers, edge_layers=inner, feature_layers=inner)
    network = unsettle(method.network(graph))
    sizes = (graph.num_nodes, graph.num_features, 8, graph.num_classes, layers)
    other = copied(network, Peer(*sizes, inner, inner))
    data = graph.to_pyg()
    wanted = other(data.x.float(), data.edge_index.flip(0))
    torch.testing.assert_close(network(graph), wanted)


@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_gradients_are_those_of_pytorch_geometric(features):
    graph = graph_of(features)
    network = unsettle(LINKX(hidden=8, layers=2).network(graph))
    other = copied(network, Peer(graph.num_nodes, graph.num_features, 8, 3, 2, 1, 1))
    data = graph.to_pyg()
    grad = torch.randn(graph.num_nodes, 3)
    network(graph).backward(grad)
    other(data.x, data.edge_index.flip(0)).backward(grad)
    weight, offset = entry_of(network)
    for_a, for_x = network.combine.linear.weight.grad.chunk(2, 1)
    close = torch.testing.assert_close
    close(network.mlp_a.first.weight.grad, other.edge_lin.weight.grad)
    close(network.mlp_a.first.bias.grad, other.edge_lin.bias.grad)
    close(weight.grad.T, other.node_mlp.lins[0].weight.grad)
    close(offset.grad, other.node_mlp.lins[0].bias.grad)
    close(for_a, other.cat_lin1.weight.grad)
    close(for_x, other.cat_lin2.weight.grad)


def written_out(mix, a, x):
    """What Mix is said to be."""
    return torch.relu(mix.linear(torch.cat([a, x], 1)) + a + x)


@pytest.mark.parametrize("taken", [False, True])
def test_the_shortcut_of_the_mixture_is_the_formula(taken):
    mix, rows = ConcatResidual(5, 0.0, activation=False), torch.randn(7, 3)
    given = [torch.randn(7, 5), torch.randn(3, 5), torch.randn(5)]
    grad = torch.randn(7, 5)

    def shortcut(a, x):
        return mix(a, x.materialize() if taken else x)

    def formula(a, x):
        return written_out(mix, a, x.materialize())

    answers = []
    for way in (shortcut, formula):
        a, weight, offset = (one.clone().requires_grad_() for one in given)
        found = way(a, DeferredLinear(rows, weight, offset))
        sources = [a, weight, offset, *mix.parameters()]
        answers.append([found.detach(), *torch.autograd.grad(found, sources, grad)])
    for mine, wanted in zip(*answers, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-4, atol=1e-5)


def test_the_inner_activation_is_where_it_is_said_to_be():
    mix = ConcatResidual(5, 0.9, activation=True).eval()
    a, x = torch.randn(2, 7, 5)
    product = torch.relu(mix.linear(torch.cat([a, x], 1)))
    torch.testing.assert_close(mix(a, x), torch.relu(product + a + x))


def test_link_is_a_linear_map_of_dense_rows():
    graph = graph_of("dense")
    network = LINK().network(graph)
    wanted = graph.adjacency.to_dense() @ network.linear.weight
    wanted = wanted + network.linear.bias
    torch.testing.assert_close(network(graph), wanted)


DIRECTIONS = {
    "out": lambda dense: dense,
    "in": lambda dense: dense.T,
    "both": lambda dense: torch.cat([dense, dense.T], 1),
    "undirected": lambda dense: torch.maximum(dense, dense.T),
}


@pytest.mark.parametrize("method", [LINK, LINKConcat, LINKX])
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_directions(method, directions):
    graph = graph_of("dense")
    prepared = method(directions=directions).prepare(graph)
    wanted = DIRECTIONS[directions](graph.adjacency.to_dense())
    assert torch.equal(prepared.adjacency.to_dense(), wanted)
    scores = method(directions=directions).network(prepared).eval()(prepared)
    assert scores.shape == (graph.num_nodes, graph.num_classes)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("binarised", [False, True])
def test_link_concat_is_an_mlp_on_both(features, binarised):
    graph = graph_of(features)
    method = LINKConcat(hidden=8, layers=3, binarised=binarised)
    prepared = method.prepare(graph)
    network = unsettle(method.network(prepared))
    dense = graph.features.to_dense().float()
    inputs = torch.cat(
        [graph.adjacency.to_dense(), (dense != 0).float() if binarised else dense], 1
    )
    weight, offset = entry_of(network)
    assert offset is None
    hidden = inputs @ torch.cat([network.first_a.weight, weight])
    hidden = hidden + network.first_a.bias
    torch.testing.assert_close(network(prepared), network.mlp(hidden))
    bound = (graph.num_nodes + graph.num_features) ** -0.5
    for table in (network.first_a.weight, weight):
        assert 0.5 * bound < float(table.detach().abs().max()) <= bound


def test_the_features_of_link_concat_are_left_alone():
    graph = graph_of("dense")
    before = graph.features.clone()
    LINKConcat().prepare(graph)
    assert torch.equal(graph.features, before)
    assert LINKConcat(binarised=False).prepare(graph).features is graph.features
