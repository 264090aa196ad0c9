"""Message-passing methods against PyTorch Geometric and against dense algebra."""

import warnings
from dataclasses import replace

import pytest
import scipy.sparse
import torch
from graphs import suiting
from message_passing_models import (
    CLASSES,
    FEATURES,
    NODES,
    entry_of,
    make_graph,
    network_of,
    scatter,
)
from torch import nn
from torch.nn import functional as F

from unalike import METHODS, Adjacency, Split, Task, random_splits
from unalike.data.metrics import ACCURACY
from unalike.methods.gpr_gnn import ppr_coefficients
from unalike.nn.normalized_adjacency import GCNNorm

with warnings.catch_warnings():
    # Importing it compiles a script, which torch has come to warn of.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric import nn as pyg

close = torch.testing.assert_close

KINDS = [
    {"directed": False},
    {"directed": True},
    {"directed": True, "weighted": True},
    {"directed": False, "weighted": True, "sparse": True},
]


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(k for k in kind if kind[k]))
def graph(request):
    return make_graph(**request.param)


def ends_and_weights(graph):
    data = graph.to_pyg()
    weight = data.edge_weight if "edge_weight" in data else None
    return data.x, data.edge_index, weight


def dense_normalised(adjacency, loops="all"):
    """D^-1/2 (A + I)^T D^-1/2 written out; rows are the nodes that gather."""
    matrix = adjacency.to_dense().double()
    diagonal = matrix.diagonal()
    if loops == "all":
        diagonal[diagonal == 0] = 1
    if loops == "none":
        diagonal.zero_()
    degree = matrix.sum(0)
    scale = torch.where(degree > 0, degree**-0.5, 0)
    return (scale[:, None] * matrix * scale).T.float()


@pytest.mark.parametrize("loops", ["all", "kept", "none"])
def test_normalised_is_its_formula(graph, loops):
    x = torch.randn(NODES, 4)
    found = GCNNorm.of(graph.adjacency, self_loops=loops) @ x
    close(found, dense_normalised(graph.adjacency, loops) @ x)


def test_normalised_is_that_of_pyg(graph):
    _, ends, weight = ends_and_weights(graph)
    x = torch.randn(NODES, 4)
    plain = pyg.SGConv(4, 4, bias=False)
    plain.lin.weight.data = torch.eye(4)
    close(GCNNorm.of(graph.adjacency) @ x, plain(x, ends, weight))


@pytest.mark.parametrize("hops", [1, 2])
def test_sgc_in_the_order_of_wu(graph, hops):
    network = scatter(network_of("sgc", graph, hops=hops, propagate_bias=False))
    oracle = pyg.SGConv(FEATURES, CLASSES, K=hops)
    oracle.lin.weight.data = entry_of(network)[0].T
    oracle.lin.bias.data = network.bias
    close(network(graph), oracle(*ends_and_weights(graph)))


@pytest.mark.parametrize("hops", [1, 2])
def test_sgc_propagates_its_bias(graph, hops):
    network = scatter(network_of("sgc", graph, hops=hops))
    weight, offset = entry_of(network)
    spread = torch.linalg.matrix_power(dense_normalised(graph.adjacency), hops)
    linear = graph.features.to_dense() @ weight + offset
    close(network(graph), spread @ linear)


def convolve(network, graph):
    """What the convolutions of PyG give, layer by layer, with the same weights."""
    x, ends, edge_weight = ends_and_weights(graph)
    weights = [entry_of(network)[0], *(it.linear.weight for it in network.blocks)]
    outputs = []
    for layer, weight in enumerate(weights):
        oracle = pyg.GCNConv(*weight.shape)
        oracle.lin.weight.data = weight.T
        bias = [*network.conv_biases, network.bias][layer]
        if not isinstance(bias, nn.Identity):
            oracle.bias.data = bias.bias
        x = oracle(x, ends, edge_weight)
        if layer < len(weights) - 1:
            x = torch.relu(network.blocks[layer].norm_act_drop.norm(x))
        outputs.append(x)
    return outputs


@pytest.mark.parametrize("conv_bias", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gcn_is_that_of_pyg(graph, layers, conv_bias):
    options = {"hidden": 5, "layers": layers, "conv_bias": conv_bias}
    network = scatter(network_of("gcn", graph, **options))
    close(network(graph), convolve(network, graph)[-1])


def attend(network, graph, heads):
    """What the attention of PyG gives, layer by layer, with the same weights."""
    x, ends, _ = ends_and_weights(graph)
    parts = network.layers
    weights = [entry_of(network)[0], *parts.weights]
    outputs = []
    for layer, weight in enumerate(weights):
        last = layer == len(weights) - 1
        inputs, width = weight.shape[0], weight.shape[1] // heads
        oracle = pyg.GATConv(
            inputs, width, heads, concat=not (last and parts.mean_last_heads)
        )
        oracle.lin.weight.data = weight.T
        bias = [*parts.conv_biases, parts.bias][layer]
        if not isinstance(bias, nn.Identity):
            oracle.bias.data = bias.bias
        oracle.att_src.data = parts.att_src[layer].view(1, heads, width)
        oracle.att_dst.data = parts.att_dst[layer].view(1, heads, width)
        x = oracle(x, ends)
        if not last:
            x = F.elu(parts.norms[layer](x))
        outputs.append(x)
    return outputs


@pytest.mark.parametrize("conv_bias", [False, True])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gat_is_that_of_pyg(graph, layers, heads, conv_bias):
    options = {
        "hidden": 5,
        "layers": layers,
        "heads": heads,
        "conv_bias": conv_bias,
    }
    network = scatter(network_of("gat", graph, **options))
    outputs = attend(network, graph, heads)
    assert len(outputs) == max(layers, 2)
    close(network(graph), outputs[-1])


PYG_JUMPS = ("max", "cat", "lstm")
"""Jumping knowledge that PyG has too."""


def joined_by_pyg(network, jump, outputs):
    """What the jumping knowledge of PyG makes of outputs, with the same weights."""
    oracle = pyg.JumpingKnowledge(jump, outputs[0].shape[1], len(outputs))
    if oracle.lstm is not None:
        ours = network.jump
        oracle.att.weight.data = ours.score.weight
        for part, end in ((ours.forward_lstm, ""), (ours.backward_lstm, "_reverse")):
            for name, weight in (
                ("weight_ih", part.weight_ih.T),
                ("weight_hh", part.weight_hh.T),
                ("bias_ih", part.bias),
                ("bias_hh", torch.zeros_like(part.bias)),
            ):
                getattr(oracle.lstm, f"{name}_l0{end}").data = weight.contiguous()
    return oracle(outputs)


@pytest.mark.parametrize("conv_bias", [False, True])
@pytest.mark.parametrize("jump", PYG_JUMPS)
def test_gcn_jk_is_that_of_pyg(graph, jump, conv_bias):
    options = {"hidden": 5, "layers": 3, "jump": jump, "conv_bias": conv_bias}
    network = scatter(network_of("gcn-jk", graph, **options))
    joined = joined_by_pyg(network, jump, convolve(network, graph))
    close(network(graph), network.final(joined))


@pytest.mark.parametrize("conv_bias", [False, True])
@pytest.mark.parametrize("jump", PYG_JUMPS)
def test_gat_jk_is_that_of_pyg(graph, jump, conv_bias):
    options = {"hidden": 3, "layers": 3, "heads": 2, "jump": jump}
    options["conv_bias"] = conv_bias
    network = scatter(network_of("gat-jk", graph, **options))
    joined = joined_by_pyg(network, jump, attend(network, graph, 2))
    close(network(graph), network.final(joined))


@pytest.mark.parametrize("name", ["gcn", "gat", "gcn-jk", "gat-jk"])
def test_conv_bias_adds_one_bias_for_each_feature_of_a_batch_norm(name):
    plain, biased = (
        network_of(name, suiting(), hidden=4, layers=3, conv_bias=use)
        for use in (False, True)
    )
    norms = [part for part in plain.modules() if isinstance(part, nn.BatchNorm1d)]
    assert norms
    sizes = [sum(p.numel() for p in it.parameters()) for it in (plain, biased)]
    assert sizes[1] - sizes[0] == sum(norm.num_features for norm in norms)


def mlp_logits(network, graph):
    weight, offset = entry_of(network)
    hidden = graph.features.to_dense() @ weight + offset
    for layer in network.mlp.layers:
        hidden = layer(hidden)
    return hidden


def test_appnp_is_that_of_pyg(graph):
    network = scatter(network_of("appnp", graph, hidden=5, alpha=0.2))
    _, ends, weight = ends_and_weights(graph)
    wanted = pyg.APPNP(K=10, alpha=0.2)(mlp_logits(network, graph), ends, weight)
    close(network(graph), wanted)


def test_gpr_gnn_is_its_formula(graph):
    network = scatter(network_of("gpr-gnn", graph, hidden=5, hops=4))
    spread, start = dense_normalised(graph.adjacency), mlp_logits(network, graph)
    wanted = sum(
        gamma * torch.linalg.matrix_power(spread, power) @ start
        for power, gamma in enumerate(network.gamma)
    )
    close(network(graph), wanted)


def test_gpr_gnn_begins_as_appnp(graph):
    ours, theirs = (
        network_of(name, graph, hidden=5, alpha=0.3) for name in ("gpr-gnn", "appnp")
    )
    close(ppr_coefficients(0.3, 10).sum(), torch.tensor(1.0))
    close(ours(graph), theirs(graph))


def test_mixhop_is_that_of_pyg(graph):
    network = scatter(network_of("mixhop", graph, hidden=4, layers=3))
    x, ends, edge_weight = ends_and_weights(graph)
    weight, offset = entry_of(network)
    linears = [(weight.T, offset)]
    linears += [(it.linear.weight, it.linear.bias) for it in network.blocks]
    ones = GCNNorm.of(graph.adjacency)
    for layer, (weight, offset) in enumerate(linears):
        if layer:
            x = network.blocks[layer - 1].norm_act_drop(x)
        oracle = pyg.MixHopConv(x.shape[1], len(weight) // 3, powers=[0, 1, 2])
        for linear, part in zip(oracle.lins, weight.chunk(3), strict=True):
            linear.weight.data = part
        oracle.bias.data.zero_()
        # PyG adds the bias after propagating; the paper's program propagates it.
        shift = [
            ones.power(power, part.expand(NODES, -1))
            for power, part in enumerate(offset.chunk(3))
        ]
        x = oracle(x, ends, edge_weight) + torch.cat(shift, 1)
    close(network(graph), network.final(x))


def test_gcnii_is_that_of_pyg(graph):
    network = scatter(network_of("gcnii", graph, hidden=5, layers=4, theta=1.5))
    x, ends, edge_weight = ends_and_weights(graph)
    start = x = torch.relu(x @ entry_of(network)[0] + entry_of(network)[1])
    norms = [block.norm for block in network.blocks]
    layers = zip(network.weights, norms, strict=True)
    for layer, (weight, norm) in enumerate(layers, start=1):
        oracle = pyg.GCN2Conv(5, alpha=0.1, theta=1.5, layer=layer)
        oracle.weight1.data = weight
        x = torch.relu(norm(oracle(x, start, ends, edge_weight)))
    dense = replace(graph, features=graph.features.to_dense())
    close(network(dense), network.final(x))


@pytest.mark.parametrize("loops", ["kept", "none"])
@pytest.mark.parametrize("layers", [1, 2])
def test_h2gcn_is_its_formula(graph, layers, loops):
    options = {"hidden": 4, "layers": layers, "loops": loops}
    network = scatter(network_of("h2gcn", graph, **options))
    once = graph.adjacency.to_dense() > 0
    twice = (once.float() @ once.float() > 0) & ~once
    far = Adjacency.from_scipy(scipy.sparse.csr_array(twice.float().numpy()))
    spreads = [dense_normalised(rows, loops) for rows in (graph.adjacency, far)]
    weight, offset = entry_of(network)
    rounds = [torch.relu(graph.features.to_dense() @ weight + offset)]
    for layer in range(layers):
        x = torch.cat([spread @ rounds[-1] for spread in spreads], 1)
        rounds.append(network.norms[layer](x) if layer < layers - 1 else x)
    close(network(graph), network.final(torch.cat(rounds, 1)))


@pytest.mark.parametrize("hops", [1, 2])
def test_label_propagation_is_its_formula(graph, hops):
    split = random_splits(graph.labels, count=1)[0]
    task = Task.from_split(graph, split, ACCURACY)
    method = METHODS["label-propagation"](alpha=0.6, hops=hops, symmetrised=False)
    spread = torch.linalg.matrix_power(dense_normalised(graph.adjacency), hops)
    known = torch.zeros(NODES, CLASSES)
    known[split.train] = F.one_hot(graph.labels[split.train], CLASSES).float()
    wanted = known
    for _ in range(50):
        wanted = 0.6 * spread @ wanted + 0.4 * known
    close(method.solve(task).scores, wanted)


def test_label_propagation_is_that_of_pyg():
    graph = make_graph(directed=False)
    looped = graph.adjacency.to_dense()
    looped.fill_diagonal_(1)
    rows = Adjacency.from_scipy(scipy.sparse.csr_array(looped.numpy()))
    graph = replace(graph, adjacency=rows)
    ids = torch.arange(NODES)
    task = Task.from_split(graph, Split(ids[:9], ids[9:15], ids[15:]), ACCURACY)
    oracle = pyg.LabelPropagation(num_layers=50, alpha=0.7)
    ends = graph.to_pyg().edge_index
    wanted = oracle(graph.labels, ends, mask=ids < 9, post_step=lambda y: y)
    close(METHODS["label-propagation"](alpha=0.7).solve(task).scores, wanted)


def test_label_propagation_is_undirected_by_default():
    graph = make_graph(directed=True)
    split = random_splits(graph.labels, count=1)[0]
    method = METHODS["label-propagation"](alpha=0.9)
    directed = Task.from_split(graph, split, ACCURACY)
    both = Task.from_split(graph.to_undirected(), split, ACCURACY)
    assert torch.equal(method.solve(directed).scores, method.solve(both).scores)
    one_way = replace(method, symmetrised=False).solve(directed).scores
    assert not torch.equal(one_way, method.solve(both).scores)
