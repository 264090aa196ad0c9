"""Message-passing methods against PyTorch Geometric and against dense algebra."""

import warnings
from dataclasses import replace

import pytest
import scipy.sparse
import torch
from graphs import tasks_of
from torch.nn import functional as F

from unalike import METHODS, Graph, Split, Task, Training, UserError, random_splits
from unalike.adjacency import Adjacency
from unalike.kernels.two_hop import likely_entries, most_entries
from unalike.methods.gpr_gnn import page_rank
from unalike.methods.h2gcn import bytes_of, far_from
from unalike.methods.layers.jumping import JUMPS
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing, solve_stack
from unalike.metrics import ACCURACY
from unalike.training.room import hidden_width

with warnings.catch_warnings():
    # Importing it compiles a script, which torch has come to warn of.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric import nn as pyg

NODES, FEATURES, CLASSES = 23, 6, 3
PASSING = [name for name in METHODS if issubclass(METHODS[name], MessagePassing)]

close = torch.testing.assert_close


def make_graph(*, directed, weighted=False, sparse=False):
    """Some nodes have a loop, the last two have nothing else or nothing at all."""
    torch.manual_seed(5)
    source, target = torch.randint(NODES - 2, (2, 60))
    loops = torch.tensor([0, 3, 7, NODES - 2])
    source, target = torch.cat([source, loops]), torch.cat([target, loops])
    rows = Adjacency.from_edges(
        source,
        target,
        shape=(NODES, NODES),
        values=torch.rand(len(source)) + 0.5 if weighted else None,
    )
    features = torch.randn(NODES, FEATURES)
    if sparse:
        features = features * (torch.rand_like(features) < 0.4)
        features = Adjacency.from_scipy(scipy.sparse.csr_array(features.numpy()))
    return Graph.build(
        rows if directed else rows.symmetric(),
        features=features,
        labels=torch.randint(CLASSES, (NODES,)),
        num_classes=CLASSES,
        directed=directed,
    )


KINDS = [
    {"directed": False},
    {"directed": True},
    {"directed": True, "weighted": True},
    {"directed": False, "weighted": True, "sparse": True},
]


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(k for k in kind if kind[k]))
def graph(request):
    return make_graph(**request.param)


def network_of(name, graph, **options):
    """An untrained network, ready to score."""
    torch.manual_seed(1)
    method = METHODS[name](**options)
    return method.network(method.prepare(graph)).eval()


def scatter(network):
    """Move every parameter, so that none is at a value that hides a mistake."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        for name, buffer in network.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.randn_like(buffer))
            if name.endswith("running_var"):
                buffer.copy_(torch.rand_like(buffer) + 0.5)
    return network


def ends_and_weights(graph):
    told = graph.to_pyg()
    weight = told.edge_weight if "edge_weight" in told else None
    return told.x, told.edge_index, weight


def entry_of(network):
    """The first weight and offset, from the module or from the tables."""
    if network.entry.sparse:
        offsets = dict(network.offsets)
        return network.tables["features"], offsets.get("features")
    return network.entry.weight, network.entry.offset


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
    found = Normalised.of(graph.adjacency, loops=loops) @ x
    close(found, dense_normalised(graph.adjacency, loops) @ x)


def test_normalised_is_that_of_pyg(graph):
    _, ends, weight = ends_and_weights(graph)
    x = torch.randn(NODES, 4)
    plain = pyg.SGConv(4, 4, bias=False)
    plain.lin.weight.data = torch.eye(4)
    close(Normalised.of(graph.adjacency) @ x, plain(x, ends, weight))


@pytest.mark.parametrize("hops", [1, 2])
def test_sgc_in_the_order_of_wu(graph, hops):
    network = scatter(network_of("sgc", graph, hops=hops, propagate_bias=False))
    oracle = pyg.SGConv(FEATURES, CLASSES, K=hops)
    oracle.lin.weight.data = entry_of(network)[0].T
    oracle.lin.bias.data = network.late
    close(network.score(graph), oracle(*ends_and_weights(graph)))


@pytest.mark.parametrize("hops", [1, 2])
def test_sgc_propagates_its_bias(graph, hops):
    network = scatter(network_of("sgc", graph, hops=hops))
    weight, offset = entry_of(network)
    spread = torch.linalg.matrix_power(dense_normalised(graph.adjacency), hops)
    linear = graph.features.to_dense() @ weight + offset
    close(network.score(graph), spread @ linear)


def convolve(network, graph):
    """What the convolutions of PyG give, layer by layer, with the same weights."""
    x, ends, edge_weight = ends_and_weights(graph)
    parts = network.convolutions
    weights = [entry_of(network)[0], *parts.weights]
    outputs = []
    for layer, weight in enumerate(weights):
        oracle = pyg.GCNConv(*weight.shape)
        oracle.lin.weight.data = weight.T
        if layer == len(weights) - 1:
            oracle.bias.data = parts.last.offset
        x = oracle(x, ends, edge_weight)
        if layer < len(weights) - 1:
            x = torch.relu(parts.bridges[layer].norm(x))
        outputs.append(x)
    return outputs


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gcn_is_that_of_pyg(graph, layers):
    network = scatter(network_of("gcn", graph, hidden=5, layers=layers))
    close(network.score(graph), convolve(network, graph)[-1])


def attend(network, graph, heads):
    """What the attention of PyG gives, layer by layer, with the same weights."""
    x, ends, _ = ends_and_weights(graph)
    parts = network.attentions
    weights = [entry_of(network)[0], *parts.weights]
    outputs = []
    for layer, weight in enumerate(weights):
        last = layer == len(weights) - 1
        inputs, width = weight.shape[0], weight.shape[1] // heads
        oracle = pyg.GATConv(inputs, width, heads, concat=not (last and parts.averaged))
        oracle.lin.weight.data = weight.T
        if last:
            oracle.bias.data = parts.last.offset
        oracle.att_src.data = parts.sources[layer].view(1, heads, width)
        oracle.att_dst.data = parts.targets[layer].view(1, heads, width)
        x = oracle(x, ends)
        if not last:
            x = F.elu(parts.norms[layer](x))
        outputs.append(x)
    return outputs


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gat_is_that_of_pyg(graph, layers, heads):
    options = {"hidden": 5, "layers": layers, "heads": heads}
    network = scatter(network_of("gat", graph, **options))
    outputs = attend(network, graph, heads)
    assert len(outputs) == max(layers, 2)
    close(network.score(graph), outputs[-1])


def joined_by_pyg(network, jump, outputs):
    """What the jumping knowledge of PyG makes of outputs, with the same weights."""
    oracle = pyg.JumpingKnowledge(jump, outputs[0].shape[1], len(outputs))
    if oracle.lstm is not None:
        ours = network.join
        oracle.att.weight.data = ours.score.weight
        for part, end in ((ours.there, ""), (ours.back, "_reverse")):
            for name, weight in (
                ("weight_ih", part.inward.T),
                ("weight_hh", part.onward.T),
                ("bias_ih", part.offset),
                ("bias_hh", torch.zeros_like(part.offset)),
            ):
                getattr(oracle.lstm, f"{name}_l0{end}").data = weight.contiguous()
    return oracle(outputs)


@pytest.mark.parametrize("jump", JUMPS)
def test_gcn_jk_is_that_of_pyg(graph, jump):
    network = scatter(network_of("gcn-jk", graph, hidden=5, layers=3, jump=jump))
    joined = joined_by_pyg(network, jump, convolve(network, graph))
    close(network.score(graph), network.final(joined))


@pytest.mark.parametrize("jump", JUMPS)
def test_gat_jk_is_that_of_pyg(graph, jump):
    options = {"hidden": 3, "layers": 3, "heads": 2, "jump": jump}
    network = scatter(network_of("gat-jk", graph, **options))
    joined = joined_by_pyg(network, jump, attend(network, graph, 2))
    close(network.score(graph), network.final(joined))


def perceptron(network, graph):
    weight, offset = entry_of(network)
    return network.rest(graph.features.to_dense() @ weight + offset)


def test_appnp_is_that_of_pyg(graph):
    network = scatter(network_of("appnp", graph, hidden=5, alpha=0.2))
    _, ends, weight = ends_and_weights(graph)
    wanted = pyg.APPNP(K=10, alpha=0.2)(perceptron(network, graph), ends, weight)
    close(network.score(graph), wanted)


def test_gpr_gnn_is_its_formula(graph):
    network = scatter(network_of("gpr-gnn", graph, hidden=5, hops=4))
    spread, start = dense_normalised(graph.adjacency), perceptron(network, graph)
    wanted = sum(
        gamma * torch.linalg.matrix_power(spread, power) @ start
        for power, gamma in enumerate(network.gamma)
    )
    close(network.score(graph), wanted)


def test_gpr_gnn_begins_as_appnp(graph):
    ours, theirs = (
        network_of(name, graph, hidden=5, alpha=0.3) for name in ("gpr-gnn", "appnp")
    )
    close(page_rank(0.3, 10).sum(), torch.tensor(1.0))
    close(ours.score(graph), theirs.score(graph))


def test_mixhop_is_that_of_pyg(graph):
    network = scatter(network_of("mixhop", graph, hidden=4, layers=3))
    x, ends, edge_weight = ends_and_weights(graph)
    weight, offset = entry_of(network)
    linears = [(weight.T, offset)]
    linears += [(it.linear.weight, it.linear.bias) for it in network.further]
    ones = Normalised.of(graph.adjacency)
    for layer, (weight, offset) in enumerate(linears):
        if layer:
            x = network.further[layer - 1].bridge(x)
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
    close(network.score(graph), network.final(x))


def test_gcnii_is_that_of_pyg(graph):
    network = scatter(network_of("gcnii", graph, hidden=5, layers=4, theta=1.5))
    x, ends, edge_weight = ends_and_weights(graph)
    start = x = torch.relu(x @ entry_of(network)[0] + entry_of(network)[1])
    norms = [bridge.norm for bridge in network.bridges]
    layers = zip(network.weights, norms, strict=True)
    for layer, (weight, norm) in enumerate(layers, start=1):
        oracle = pyg.GCN2Conv(5, alpha=0.1, theta=1.5, layer=layer)
        oracle.weight1.data = weight
        x = torch.relu(norm(oracle(x, start, ends, edge_weight)))
    dense = replace(graph, features=graph.features.to_dense())
    close(network.score(dense), network.final(x))


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
    close(network.score(graph), network.final(torch.cat(rounds, 1)))


@pytest.mark.parametrize("hops", [1, 2])
def test_label_propagation_is_its_formula(graph, hops):
    split = random_splits(graph.labels, count=1)[0]
    task = Task.hide(graph, split, ACCURACY)
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
    task = Task.hide(graph, Split(ids[:9], ids[9:15], ids[15:]), ACCURACY)
    oracle = pyg.LabelPropagation(num_layers=50, alpha=0.7)
    ends = graph.to_pyg().edge_index
    wanted = oracle(graph.labels, ends, mask=ids < 9, post_step=lambda y: y)
    close(METHODS["label-propagation"](alpha=0.7).solve(task).scores, wanted)


def test_label_propagation_goes_both_ways_unless_told():
    graph = make_graph(directed=True)
    split = random_splits(graph.labels, count=1)[0]
    method = METHODS["label-propagation"](alpha=0.9)
    directed = Task.hide(graph, split, ACCURACY)
    both = Task.hide(graph.symmetric(), split, ACCURACY)
    assert torch.equal(method.solve(directed).scores, method.solve(both).scores)
    one_way = replace(method, symmetrised=False).solve(directed).scores
    assert not torch.equal(one_way, method.solve(both).scores)


@pytest.mark.parametrize("name", PASSING)
def test_gradients_are_slopes(name):
    graph = make_graph(directed=True, weighted=True)
    network = scatter(network_of(name, graph)).double()
    names, values = zip(*network.named_parameters(), strict=True)
    pull = torch.randn(NODES, CLASSES, dtype=torch.float64)

    def objective(*parameters):
        weights = dict(zip(names, parameters, strict=True))
        found = torch.func.functional_call(network, weights, (graph, {}))
        return (found * pull).sum()

    slopes = torch.autograd.grad(objective(*values), values)
    directions = [torch.randn_like(value) for value in values]
    for place, (slope, direction) in enumerate(zip(slopes, directions, strict=True)):
        moved = [
            objective(
                *values[:place], values[place] + step * direction, *values[place + 1 :]
            )
            for step in (1e-6, -1e-6)
        ]
        seen = (moved[0] - moved[1]).item() / 2e-6
        assert seen == pytest.approx((slope * direction).sum().item(), rel=1e-4)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["gcn", "gcn-jk"])
def test_convolutions_begin_as_glorot_says(name, sparse):
    graph = make_graph(directed=False, sparse=sparse)
    network = network_of(name, graph, hidden=64)
    weight, offset = entry_of(network)
    bound = (6 / (FEATURES + 64)) ** 0.5
    assert 0.9 * bound < weight.abs().max() <= bound
    assert offset is None
    assert not network.convolutions.last.offset.any()


@pytest.mark.parametrize("name", ["gat", "gat-jk"])
def test_attention_begins_as_glorot_says(name):
    network = network_of(name, make_graph(directed=False), hidden=64, heads=4)
    parts = network.attentions
    bound = (6 / (FEATURES + 4 * 64)) ** 0.5
    assert 0.9 * bound < entry_of(network)[0].abs().max() <= bound
    bound = (6 / (4 + 64)) ** 0.5
    for vector in (parts.sources[0], parts.targets[0]):
        assert 0.9 * bound < vector.abs().max() <= bound
    assert not parts.last.offset.any()


def test_room_is_made_for_every_head():
    graph = make_graph(directed=False)
    one, four = (
        hidden_width(network_of("gat", graph, heads=heads)) for heads in (1, 4)
    )
    averaged = CLASSES
    assert four - averaged == 4 * (one - averaged)


def test_attention_has_heads():
    with pytest.raises(UserError, match="0 heads"):
        network_of("gat", make_graph(directed=False), heads=0)


@pytest.mark.parametrize("name", ["gcn-jk", "gat-jk"])
def test_lstms_train_in_a_stack(name):
    graph = make_graph(directed=True)
    splits = random_splits(graph.labels, count=2)
    tasks = [Task.hide(graph, s, ACCURACY, i) for i, s in enumerate(splits)]
    options = {"dropout": 0.0, "hidden": 4, "jump": "lstm"}
    method = METHODS[name](training=Training(epochs=4), **options)
    for task, solution in zip(tasks, solve_stack([method] * 2, tasks), strict=True):
        wanted = plain_losses(method, task, 4)
        assert solution.curve.losses == pytest.approx(wanted, rel=1e-3)


def plain_losses(method, task, epochs):
    """The losses of an ordinary loop with torch's AdamW."""
    torch.manual_seed(task.seed)
    graph = method.prepare(task.graph)
    network = method.network(graph)
    adamw = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=1e-3)
    losses = []
    for _ in range(epochs):
        adamw.zero_grad()
        scores = network.score(graph)[task.train]
        loss = F.cross_entropy(scores, graph.labels[task.train])
        loss.backward()
        adamw.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", PASSING)
def test_a_stack_trains_as_plain_loops_do(name, sparse):
    graph = make_graph(directed=True, sparse=sparse)
    splits = random_splits(graph.labels, count=2)
    tasks = [Task.hide(graph, s, ACCURACY, i) for i, s in enumerate(splits)]
    options = {} if name == "sgc" else {"dropout": 0.0}
    method = METHODS[name](training=Training(epochs=4), **options)
    found = solve_stack([method] * 2, tasks)
    for task, solution in zip(tasks, found, strict=True):
        wanted = plain_losses(method, task, 4)
        assert solution.curve.losses == pytest.approx(wanted, rel=1e-3)


def test_too_large_a_two_hop_graph_is_refused(monkeypatch):
    (task,) = tasks_of(make_graph(directed=True))
    monkeypatch.setattr("unalike.methods.h2gcn.free_memory", lambda device: 100)
    with pytest.raises(UserError, match=r"needs about .* GB; .* free on the cpu"):
        METHODS["h2gcn"]().solve(task)
    assert "two_hop" not in vars(task.graph.adjacency)


def test_what_fits_by_its_estimate_is_not_refused(monkeypatch):
    graph = make_graph(directed=False)
    once = graph.adjacency.to_scipy().astype(bool)
    room = bytes_of(likely_entries(once))
    assert room < bytes_of(most_entries(once))
    monkeypatch.setattr("unalike.methods.h2gcn.free_memory", lambda device: room)
    assert far_from(graph.adjacency) is graph.adjacency.two_hop


def test_too_many_features_are_not_made_dense(monkeypatch):
    monkeypatch.setattr("unalike.methods.gcnii.MOST_DENSE_NUMBERS", 10)
    graph = make_graph(directed=False, sparse=True)
    with pytest.raises(UserError, match="--no-drop-features"):
        METHODS["gcnii"]().prepare(graph)
    assert METHODS["gcnii"](drop_features=False).prepare(graph) is graph
