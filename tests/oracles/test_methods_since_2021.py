"""Methods since 2021 against dense algebra and the layers of PyTorch Geometric."""

import warnings

import numpy as np
import pytest
import reference_kernels as reference
import scipy.special
import torch
from graphs import suiting, tasks_of
from message_passing_models import make_graph, network_of, scatter
from torch import Tensor, nn
from torch.nn import functional as F

from unalike import METHODS, Training
from unalike.data.graph import Graph
from unalike.methods.poly import chebyshev_interpolation
from unalike.nn import optim
from unalike.training import step

with warnings.catch_warnings():
    # Importing it compiles a script, which torch has come to warn of.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric import nn as pyg

close = torch.testing.assert_close


@pytest.fixture(params=["undirected", "directed", "sparse"])
def graph(request):
    kind = request.param
    return make_graph(directed=kind != "undirected", sparse=kind == "sparse")


def ends(graph):
    return graph.to_pyg().edge_index


def weight_of(linear):
    """The weight [in, out] of a linear layer of any kind."""
    return linear.weight.T if isinstance(linear, nn.Linear) else linear.weight


def residual_logits(network, graph, convolve):
    """The layers written out, with a convolution of PyG without bias."""
    x = graph.features.to_dense()
    if network.before is not None:
        x = x @ weight_of(network.before) + network.before.bias
    outputs = []
    for layer, linear in enumerate(network.linears):
        z = convolve(layer, weight_of(linear), x)
        if network.skips:
            skip = network.skips[layer]
            z = z + x @ weight_of(skip) + (0 if skip.bias is None else skip.bias)
        z = network.biases[layer](z)
        x = torch.relu(network.blocks[layer].norm(z))
        outputs.append(x)
    return network.final(network.jump(outputs))


OPTIONS = [
    {"residual": True},
    {"layer_norm": True},
    {"linear_before": True, "batch_norm": False},
    {"linear_after": True, "batch_norm": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda one: "-".join(one))
@pytest.mark.parametrize("jump", [None, "sum"])
def test_residual_gcn_has_the_convolutions_of_pyg(graph, options, jump):
    name, more = ("gcn", {}) if jump is None else ("gcn-jk", {"jump": jump})
    network = scatter(network_of(name, graph, hidden=5, layers=3, **options, **more))

    def convolve(layer, weight, x):
        oracle = pyg.GCNConv(*weight.shape, bias=False)
        oracle.lin.weight.data = weight.T
        return oracle(x, ends(graph))

    close(network(graph), residual_logits(network, graph, convolve))


def test_separate_self_has_no_self_loops(graph):
    options = {"hidden": 5, "layers": 2, "separate_self": True}
    network = scatter(network_of("gcn", graph, **options))
    a = graph.adjacency.to_dense().T.clone().fill_diagonal_(0)
    degrees = a.sum(1)
    scale = torch.where(degrees > 0, degrees.rsqrt(), 0.0)
    spread = scale[:, None] * a * scale

    def convolve(layer, weight, x):
        return spread @ x @ weight

    close(network(graph), residual_logits(network, graph, convolve))


@pytest.mark.parametrize("options", OPTIONS[:3], ids=lambda one: "-".join(one))
def test_residual_gat_has_the_convolutions_of_pyg(graph, options):
    settings = {"hidden": 3, "heads": 2, "layers": 2, **options}
    network = scatter(network_of("gat", graph, **settings))

    def convolve(layer, weight, x):
        oracle = pyg.GATConv(weight.shape[0], 3, 2, bias=False)
        oracle.lin.weight.data = weight.T
        own = network.convs[layer]
        oracle.att_src.data = own.att_src.view(1, 2, 3)
        oracle.att_dst.data = own.att_dst.view(1, 2, 3)
        return oracle(x, ends(graph))

    close(network(graph), residual_logits(network, graph, convolve))


def test_sage_has_the_convolutions_of_pyg(graph):
    network = scatter(network_of("sage", graph, hidden=5, layers=3, norm="layer"))
    x = graph.features.to_dense()
    for linear, skip, block in zip(
        network.linears, network.skips, network.blocks, strict=True
    ):
        oracle = pyg.SAGEConv(x.shape[1], 5)
        oracle.lin_l.weight.data, oracle.lin_l.bias.data = (
            weight_of(linear).T,
            skip.bias,
        )
        oracle.lin_r.weight.data = weight_of(skip).T
        x = torch.relu(block.norm(oracle(x, ends(graph))))
    close(network(graph), network.final(x))


def directed_pair(graph, exponent):
    """P = D_out^-e A D_in^-e and its transpose, written out."""
    a = graph.adjacency.to_dense()
    out, into = (
        torch.where(sums > 0, sums**-exponent, 0.0) for sums in (a.sum(1), a.sum(0))
    )
    p = out[:, None] * a * into
    return p, p.T


def test_dir_gnn_is_its_formula(graph):
    options = {"cocitation": 0.3, "two_hop": 0.9, "own": True, "exponent": 0.25}
    more = {"layers": 2, "hidden": 4, "alpha": 0.7, "normalize": True}
    network = scatter(network_of("dir-gnn", graph, **options, **more))
    p, q = directed_pair(graph, 0.25)
    operators = [0.7 * p, 0.3 * q, 0.3 * p @ q, 0.7 * q @ p, 0.9 * p @ p, 0.1 * q @ q]
    operators.append(torch.eye(len(p)))
    x, outputs = graph.features.to_dense(), []
    for linear, bias in zip(
        [network.first, *network.linears], network.biases, strict=True
    ):
        parts = (x @ weight_of(linear)).chunk(len(operators), 1)
        z = sum(m @ part for m, part in zip(operators, parts, strict=True)) + bias
        x = F.normalize(torch.relu(z), dim=1)
        outputs.append(x)
    close(network(graph), network.final(torch.stack(outputs).amax(0)))


def test_dir_gnn_has_the_layer_of_pyg_on_an_undirected_graph():
    """PyG divides by the in-degrees on both sides, also on a directed graph."""
    graph = make_graph(directed=False)
    options = {"layers": 1, "hidden": 4, "alpha": 0.7, "own": True, "jump": "last"}
    network = scatter(network_of("dir-gnn", graph, **options))
    x = graph.features.to_dense()
    out, into, own = weight_of(network.first).chunk(3, 1)
    oracle = pyg.DirGNNConv(pyg.GCNConv(x.shape[1], 4, bias=False), alpha=0.7)
    oracle.conv_out.lin.weight.data, oracle.conv_in.lin.weight.data = out.T, into.T
    oracle.lin.weight.data, oracle.lin.bias.data = own.T, network.biases[0]
    close(network(graph), network.final(torch.relu(oracle(x, ends(graph)))))


def test_complex_weights_are_those_of_fabernet(graph):
    options = {"complex_weights": True, "activation": "abs", "exponent": 0.25}
    more = {"layers": 2, "hidden": 4, "normalize": True}
    network = scatter(network_of("dir-gnn", graph, **options, **more))
    p, q = directed_pair(graph, 0.25)
    x = graph.features.to_dense()
    w, v = weight_of(network.first).chunk(2, 1)
    b = network.biases

    def stream(z):
        return F.normalize(z.abs(), dim=1)

    real, imag = stream(q @ x @ w + b[0][:4]), stream(p @ x @ v + b[0][4:])
    w, v = weight_of(network.linears[0]).chunk(2, 1)
    last = torch.cat(
        [
            stream(q @ (real @ w - imag @ v) + b[1][:4]),
            stream(p @ real @ v + q @ imag @ w + b[1][4:]),
        ],
        1,
    )
    outputs = torch.stack([torch.cat([real, imag], 1), last])
    close(network(graph), network.final(outputs.amax(0)))


@pytest.mark.parametrize("normalized", [False, True], ids=["raw", "normalized"])
def test_fsgnn_is_its_formula(graph, normalized):
    options = {"hop_norm": normalized, "normalize_features": normalized}
    method = METHODS["fsgnn"](hops=2, hidden=4, **options)
    prepared = method.prepare(graph)
    network = scatter(method.network(prepared).eval())
    x = graph.features.to_dense()
    if normalized:
        sums = x.sum(1, keepdim=True)
        x = x / torch.where(sums == 0, 1.0, sums)
    matrices = [x]
    for loops in (False, True):
        a = graph.adjacency.to_dense()
        if loops:
            a = a.clone().fill_diagonal_(1)
        sums = a.sum(1)
        scale = torch.where(sums > 0, sums, 1.0).rsqrt()
        s = scale[:, None] * a * scale
        matrices += [s @ x, s @ s @ x]
    shares = network.a().softmax(0)
    parts = []
    for m, linear in enumerate(network.maps.linears):
        u = matrices[m] @ linear.weight + linear.bias
        parts.append(shares[m] * (F.normalize(u, dim=1) if normalized else u))
    close(network(prepared), network.final(torch.relu(torch.cat(parts, 1))))


def test_nodes_without_outgoing_edges_are_read_by_fsgnn():
    """The published program divides by the root of 1 where an out-degree is 0."""
    features, labels = torch.eye(3), torch.tensor([0, 1, 0])
    graph = Graph.from_edges(
        [0, 1], [1, 2], features=features, labels=labels, directed=True
    )
    method = METHODS["fsgnn"](hops=2, operators="no-loops")
    _, one, two = method.prepare(graph).features.split(3, 1)
    close(one, torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    close(two, torch.tensor([[0.0, 0, 1], [0, 0, 0], [0, 0, 0]]))


@pytest.mark.parametrize("runs", [1, 2])
def test_scalars_of_fsgnn_have_their_own_lr_and_decay(runs, monkeypatch):
    """As in Adam with parameter groups."""
    monkeypatch.setattr(reference, "ADAM_EPS", 1e-12)
    for module in (step, optim):
        monkeypatch.setattr(module, "backend", lambda device: reference)
    tasks = tasks_of(suiting())[:1] * runs
    training = Training(epochs=12, lr=0.01, weight_decay=0.0, coupled_decay=True)
    method = METHODS["fsgnn"](
        hops=2, dropout=0.0, scalar_lr=4.0, scalar_decay=0.3, training=training
    )
    task = tasks[0]
    prepared = method.prepare(task.graph)
    torch.manual_seed(task.seed)
    plain = METHODS["fsgnn"](hops=2, dropout=0.0).network(prepared).train()
    groups = [
        {"params": plain.a.parameters(), "lr": 0.04, "weight_decay": 0.3},
        {"params": [*plain.maps.parameters(), *plain.final.parameters()], "lr": 0.01},
    ]
    adam, wanted = torch.optim.Adam(groups, eps=1e-12), []
    for _ in range(12):
        adam.zero_grad()
        logits = plain(prepared)[task.train]
        loss = F.cross_entropy(logits, task.graph.labels[task.train])
        loss.backward()
        adam.step()
        wanted.append(float(loss.detach()))
    for solution in method.solve_all(tasks):
        assert solution.curve.losses == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("view_norm", [False, True])
def test_a2dug_is_its_formula(graph, view_norm):
    options = {"hops": 2, "hidden": 4, "layers": 2, "view_norm": view_norm}
    method = METHODS["a2dug"](**options)
    prepared = method.prepare(graph)
    network = scatter(method.network(prepared).eval())
    a, x = graph.adjacency.to_dense(), graph.features.to_dense()
    both = graph.to_undirected().adjacency.to_dense()
    sums = both.sum(1)
    scale = torch.where(sums > 0, sums.rsqrt(), 0.0)
    s = scale[:, None] * both * scale
    matrices = [
        x,
        *(m for p in (s, *directed_pair(graph, 0.5)) for m in (p @ x, p @ p @ x)),
    ]
    views = [
        a @ network.outgoing.weight + network.outgoing.bias,
        a.T @ network.incoming.weight + network.incoming.bias,
        *(
            matrix @ linear.weight + linear.bias
            for matrix, linear in zip(matrices, network.maps.linears, strict=True)
        ),
    ]
    if view_norm:
        views = [F.normalize(view, dim=1) for view in views]
    close(network(prepared), network.mlp(torch.relu(torch.cat(views, 1))))


def eigen(graph):
    """Eigenvalues and vectors of D^-1/2 A D^-1/2 without self-loops."""
    a = graph.to_undirected().adjacency.to_dense().double().fill_diagonal_(0)
    sums = a.sum(1)
    scale = torch.where(sums > 0, sums.rsqrt(), 0.0)
    return torch.linalg.eigh(scale[:, None] * a * scale)


FUNCTIONS = {
    "monomial": lambda k, z: z**k,
    "bernstein": lambda k, z: (
        scipy.special.comb(5, k) / 32 * (1 + z) ** (5 - k) * (1 - z) ** k
    ),
    "chebyshev": lambda k, z: scipy.special.eval_chebyt(k, -z),
    "jacobi": lambda k, z: scipy.special.eval_jacobi(k, 0.5, -0.25, z),
}


@pytest.mark.parametrize("basis", FUNCTIONS)
def test_bases_are_polynomials_of_the_spectrum(graph, basis):
    method = METHODS["poly"](basis=basis, hops=5, jacobi_a=0.5, jacobi_b=-0.25)
    found = method.prepare(graph).features.chunk(6, 1)
    values, vectors = eigen(graph)
    x = graph.features.to_dense().double()
    for k, matrix in enumerate(found):
        function = torch.from_numpy(FUNCTIONS[basis](k, values.numpy()))
        wanted = vectors @ (function[:, None] * (vectors.T @ x))
        close(matrix.double(), wanted, rtol=1e-4, atol=1e-4)


def test_the_optimal_basis_is_orthonormal_and_spans_the_powers(graph):
    bases = METHODS["poly"](basis="optimal", hops=3).prepare(graph).features
    columns = bases.unflatten(1, (4, -1)).double() / len(bases) ** 0.5
    values, vectors = eigen(graph)
    s = vectors @ torch.diag(values) @ vectors.T
    for column in range(columns.shape[2]):
        h = columns[:, :, column]
        close(h.T @ h, torch.eye(4).double(), rtol=1e-3, atol=1e-3)
        x = graph.features.to_dense()[:, column].double()
        power = s @ s @ s @ x
        close(h @ (h.T @ power), power, rtol=1e-3, atol=1e-3)


def test_chebyshev_coefficients_interpolate():
    values = torch.randn(6)
    nodes = np.cos((np.arange(6) + 0.5) * np.pi / 6)
    c = (chebyshev_interpolation(5) @ values).numpy()
    found = sum(c[k] * scipy.special.eval_chebyt(k, nodes) for k in range(6))
    np.testing.assert_allclose(found, values.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("basis", [*FUNCTIONS, "optimal"])
def test_poly_weighs_its_bases(graph, basis):
    method = METHODS["poly"](basis=basis, hops=3, layers=1)
    prepared = method.prepare(graph)
    network = scatter(method.network(prepared).eval())
    theta = network.theta
    theta.data[1] = -0.7
    if basis == "bernstein":
        theta = torch.relu(theta)
    if basis == "chebyshev":
        theta = chebyshev_interpolation(3) @ theta
    matrices = prepared.features.chunk(4, 1)
    x = sum(own * matrix for own, matrix in zip(theta, matrices, strict=True))
    close(network(prepared), x @ network.weight + network.bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("relu_first", [False, True])
@pytest.mark.parametrize("structure", [False, True])
def test_acm_gcn_is_its_formula(graph, relu_first, structure):
    options = {"relu_first": relu_first, "structure": structure, "residual": True}
    method = METHODS["acm-gcn"](hidden=4, mixing_norm=True, **options)
    prepared = method.prepare(graph)
    network = scatter(method.network(prepared).eval())
    a = graph.adjacency.to_dense().T.clone()
    a.diagonal()[a.diagonal() == 0] = 1
    p = a / a.sum(1, keepdim=True)
    relu = torch.relu

    def layer(mix, x, structures):
        low, high, own = x.chunk(3, 1)
        channels = [relu(p @ low), relu(high - p @ high), relu(own)]
        if relu_first:
            channels = [p @ relu(low), relu(high) - p @ relu(high), relu(own)]
        channels += structures
        r = torch.stack(
            [
                (mix.norms[c](h) @ mix.vectors[c]).sigmoid()
                for c, h in enumerate(channels)
            ],
            1,
        )
        alpha = (r @ mix.mix / len(channels)).softmax(1)
        total = sum(alpha[:, [c]] * h for c, h in enumerate(channels))
        return total if structure else 3 * total

    x = graph.features.to_dense()
    rows = graph.adjacency.to_dense()
    extra = [[relu(rows @ it.weight)] for it in network.structure] or [[], []]
    hidden = relu(layer(network.mixes[0], x @ network.first.weight, extra[0]))
    hidden = hidden + relu(x @ network.skip.weight + network.skip.bias)
    wanted = layer(network.mixes[1], hidden @ network.second, extra[1])
    close(network(prepared), wanted)


@pytest.mark.parametrize("plus_plus", [False, True], ids=["glognn", "glognn++"])
@pytest.mark.parametrize("delta", [0.0, 0.4, 1.0])
def test_glognn_is_the_minimum_written_out(graph, delta, plus_plus):
    """Z of nodes x nodes, by its own inverse; ++ weighs the classes inside of it."""
    options = {"norm_weight": 0.5, "hops_weight": 2.0, "gamma": 0.3, "delta": delta}
    method = METHODS["glognn"](hidden=4, class_weights_learned=plus_plus, **options)
    prepared = method.prepare(graph)
    network = method.network(prepared).eval()
    t = torch.ones(3).double()
    with torch.no_grad():
        network.hops.copy_(torch.tensor([0.6, -0.3]))
        if plus_plus:
            t = torch.tensor([0.5, -0.8, 1.3]).double()
            network.class_weights.copy_(t)
    p = prepared.adjacency.to_dense().double()
    close(p.sum(1), torch.ones(len(p)).double(), rtol=1e-5, atol=1e-5)
    inputs = {"features": graph.features.to_dense(), "adjacency": p.float()}
    u = sum(
        share * (inputs[source] @ linear.weight + linear.bias)
        for linear, (source, share) in zip(network.first, network.shares, strict=True)
    )
    h0 = h = network.final(torch.relu(u)).double()
    walks = 0.6 * p - 0.3 * p @ p
    for _ in range(2):
        left = (0.7 * h - 0.3 * 0.7 * h0) @ (t[:, None] * h.T) + 2 * walks
        z = left @ torch.linalg.inv(0.49 * h @ h.T + 2.5 * torch.eye(len(h)))
        h = 0.7 * z @ (h * t) + 0.3 * h0
    close(network(prepared).double(), h, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("beta", [0.4, -1.0])
def test_polynormer_has_the_layers_of_pyg(graph, beta):
    options = {"hidden": 3, "heads": 2, "layers": 2, "beta": beta}
    network = scatter(network_of("polynormer", graph, **options))

    def beta_of(layer):
        return layer.beta.weight if beta > 0 else layer.beta.weight.sigmoid()

    x = graph.features.to_dense() @ network.first.weight + network.first.bias
    total = 0
    for layer in network.local:
        oracle = pyg.GATConv(6, 3, 2, bias=False)
        oracle.lin.weight.data = layer.linear.weight
        oracle.att_src.data = layer.attention.att_src.view(1, 2, 3)
        oracle.att_dst.data = layer.attention.att_dst.view(1, 2, 3)
        a = torch.relu(oracle(x, ends(graph)) + layer.skip(x))
        h = torch.relu(layer.gate(x))
        x = (1 - beta_of(layer)) * layer.norm(h * a) + beta_of(layer) * a
        total = total + x
    g = network.norm(total)
    (layer,) = network.attention
    k, v = layer.key(g).sigmoid(), layer.value(g)
    u = torch.zeros_like(g)
    for head in range(2):
        own = slice(head, None, 2)
        weights = k[:, own] @ k[:, own].T
        u[:, own] = weights / weights.sum(1, keepdim=True) @ v[:, own]
    g = torch.relu(network.out(layer.norm(u) * (layer.gate(g) + beta_of(layer))))
    close(network(graph), network.final(g), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("input_dropout", [0.0, 0.5])
def test_polynormer_drops_features_in_training(graph, input_dropout):
    options = {"hidden": 3, "heads": 2, "dropout": 0.0, "input_dropout": input_dropout}
    network = network_of("polynormer", graph, **options).train()
    is_dropped = input_dropout > 0 and isinstance(graph.features, Tensor)
    assert torch.equal(network(graph), network(graph)) != is_dropped


def test_polynormer_begins_with_its_local_phase():
    (task,) = tasks_of(suiting(nodes=60))
    method = METHODS["polynormer"](local_epochs=3, training=Training(epochs=5))
    network = method.network(task.graph)
    network.steps.fill_(2)
    local = network.eval()(task.graph)
    network.steps.fill_(4)
    assert not torch.allclose(local, network(task.graph))
    assert len(method.solve(task).curve.losses) == 5


@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_coupled_decay_is_that_of_adam(features, monkeypatch):
    monkeypatch.setattr(reference, "ADAM_EPS", 1e-3)
    for module in (step, optim):
        monkeypatch.setattr(module, "backend", lambda device: reference)
    (task,) = tasks_of(suiting(features=features))
    training = Training(epochs=10, lr=0.05, weight_decay=0.2, coupled_decay=True)
    method = METHODS["gcn"](hidden=8, dropout=0.0, training=training)
    torch.manual_seed(task.seed)
    network = method.network(task.graph).train()
    adam = torch.optim.Adam(network.parameters(), lr=0.05, weight_decay=0.2, eps=1e-3)
    wanted = []
    for _ in range(10):
        adam.zero_grad()
        logits = network(task.graph)[task.train]
        loss = F.cross_entropy(logits, task.graph.labels[task.train])
        loss.backward()
        adam.step()
        wanted.append(float(loss.detach()))
    assert method.solve(task).curve.losses == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(
    "name", ["gcn", "mlp", "link", "fsgnn", "a2dug", "dir-gnn", "glognn"]
)
def test_sharpening_adds_the_difference_of_entropies(name):
    (task,) = tasks_of(suiting())
    options = {"dropout": 0.0} if name != "link" else {}
    method = METHODS[name](training=Training(epochs=1, sharpening=0.7), **options)
    prepared = method.prepare(task.graph)
    torch.manual_seed(task.seed)
    p = method.network(prepared).train()(prepared)
    loss = F.cross_entropy(p[task.train], task.graph.labels[task.train])
    entropy = 1 - p.softmax(1).square().sum(1)
    trained = torch.zeros(len(p), dtype=torch.bool)
    trained[task.train] = True
    loss = loss + 0.7 * (entropy[~trained].mean() - entropy[trained].mean())
    assert method.solve(task).curve.losses[0] == pytest.approx(loss.item(), rel=1e-4)


def test_propagation_dropout_drops_before_propagation(graph):
    options = {"hidden": 5, "hops": 4, "dropout": 0.0, "propagation_dropout": 0.6}
    network = scatter(network_of("gpr-gnn", graph, **options)).train()
    dropped = []
    network.dropout.register_forward_hook(lambda *call: dropped.append(call[2]))
    found = network(graph)
    (z,) = dropped
    assert 0.3 < (z == 0).float().mean() < 0.9
    a = graph.adjacency.to_dense().T.clone()
    a.diagonal()[a.diagonal() == 0] = 1
    scale = a.sum(1).rsqrt()
    spread = scale[:, None] * a * scale
    powers = enumerate(network.gamma)
    close(found, sum(c * torch.linalg.matrix_power(spread, k) @ z for k, c in powers))
