"""Layers under compile, vmap, autocast, checkpointing, DDP and second gradients."""

import subprocess
import sys
from copy import deepcopy

import pytest
import torch
from pyg_layers import random_edges
from torch import nn
from torch.utils.checkpoint import checkpoint

import unalike.pyg
from unalike import Adjacency, UserError
from unalike.pyg import (
    APPNP,
    LINKX,
    GATConv,
    GATv2Conv,
    GCN2Conv,
    GCNConv,
    GINConv,
    MixHopConv,
    SAGEConv,
    SGConv,
)

NODES = 12

LAYERS = {
    "GCNConv": lambda: GCNConv(4, 3),
    "GATConv": lambda: GATConv(4, 3, heads=2),
    "GATConv with dropout": lambda: GATConv(4, 3, heads=2, dropout=0.5),
    "GATv2Conv": lambda: GATv2Conv(4, 3, heads=2),
    "SAGEConv": lambda: SAGEConv(4, 3),
    "GINConv": lambda: GINConv(nn.Linear(4, 3)),
    "APPNP": lambda: APPNP(2, 0.1),
    "MixHopConv": lambda: MixHopConv(4, 3),
    "SGConv": lambda: SGConv(4, 3, K=2),
    "LINKX": lambda: LINKX(NODES, 4, 5, 3, 2),
}
"""Layers whose `forward` takes features and edges."""


@pytest.fixture
def edge_index():
    return random_edges(5, NODES, NODES, 40)


@pytest.fixture
def x():
    torch.manual_seed(1)
    return torch.randn(NODES, 4)


def output_and_gradients(layer, x, edge_index):
    leaf = x.clone().requires_grad_()
    torch.manual_seed(2)
    out = layer(leaf, edge_index)
    grads = torch.autograd.grad(out.square().sum(), [leaf, *layer.parameters()])
    return out.detach(), *grads


@pytest.mark.parametrize("name", LAYERS)
def test_repeated_calls_give_the_same_bits(name, x, edge_index):
    layer = LAYERS[name]()
    first = output_and_gradients(layer, x, edge_index)
    for edges in (edge_index, edge_index.clone()):
        again = output_and_gradients(layer, x, edges)
        assert all(map(torch.equal, first, again))


@pytest.mark.parametrize("name", LAYERS)
def test_checkpointing_changes_nothing(name, x, edge_index):
    layer = LAYERS[name]()

    class Checkpointed(nn.Module):
        def forward(self, x, edge_index):
            return checkpoint(layer, x, edge_index, use_reentrant=False)

        def parameters(self):
            return layer.parameters()

    expected = output_and_gradients(layer.train(), x, edge_index)
    actual = output_and_gradients(Checkpointed(), x, edge_index)
    assert all(map(torch.equal, actual, expected))


@pytest.mark.parametrize("name", LAYERS)
def test_autocast_computes_in_bfloat16(name, x, edge_index):
    layer = LAYERS[name]().eval()
    expected = output_and_gradients(layer, x, edge_index)
    with torch.autocast("cpu", torch.bfloat16):
        actual = output_and_gradients(layer, x, edge_index)
    for one, other in zip(actual, expected, strict=True):
        scale = float(other.abs().max()) + 1e-3
        assert float((one.float() - other).abs().max()) < 0.05 * scale


def test_features_may_be_float64_and_bfloat16(x, edge_index):
    for layer in (GCNConv(4, 3), GATConv(4, 3, heads=2)):
        expected = layer(x, edge_index)
        exact = layer.double()(x.double(), edge_index)
        torch.testing.assert_close(exact.float(), expected)
        assert layer.bfloat16()(x.bfloat16(), edge_index).dtype == torch.bfloat16


@pytest.mark.parametrize(
    "name", ["GCNConv", "GATConv", "GATv2Conv", "SAGEConv", "APPNP", "SGConv"]
)
def test_vmap_over_features_is_a_loop(name, x, edge_index):
    layer = LAYERS[name]()
    stack = torch.stack([x, x.sin(), x.cos()])
    actual = torch.vmap(lambda one: layer(one, edge_index))(stack)
    expected = torch.stack([layer(one, edge_index) for one in stack])
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("name", ["GCNConv", "GATConv", "GATv2Conv", "SAGEConv"])
def test_gradients_of_stacked_parameters_under_vmap_are_a_loop(name, x, edge_index):
    layers = [LAYERS[name]() for _ in range(3)]
    parameters, _ = torch.func.stack_module_state(layers)

    def forward(given):
        return torch.func.functional_call(layers[0], given, (x, edge_index))

    loss = torch.vmap(forward)(parameters).square().sum()
    grads = torch.autograd.grad(loss, list(parameters.values()))
    for index, layer in enumerate(layers):
        loss_of_one = layer(x, edge_index).square().sum()
        expected = torch.autograd.grad(loss_of_one, list(layer.parameters()))
        for grad, other in zip(grads, expected, strict=True):
            torch.testing.assert_close(grad[index], other)


def test_vmap_over_edge_weights_is_refused_in_one_line(x, edge_index):
    layer = GCNConv(4, 3, normalize=False)
    weights = torch.rand(2, edge_index.shape[1])
    with pytest.raises(UserError, match="vmap over edges or edge weights"):
        torch.vmap(lambda weight: layer(x, edge_index, weight))(weights)


@pytest.mark.parametrize("kind", [GATConv, GATv2Conv])
def test_second_derivatives_of_attention_are_refused_in_one_line(kind, x, edge_index):
    leaf = x.requires_grad_()
    out = kind(4, 3)(leaf, edge_index)
    (grad,) = torch.autograd.grad(out.square().sum(), leaf, create_graph=True)
    with pytest.raises(UserError, match=f"{kind.__name__} has no second derivative"):
        grad.square().sum().backward()


def test_second_derivatives_of_linear_layers_are_exact(x, edge_index):
    layer = GCNConv(4, 3).double()
    leaf = x.double().requires_grad_()
    assert torch.autograd.gradgradcheck(
        lambda x: layer(x, edge_index).tanh(), leaf, atol=1e-6
    )


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("name", ["GCNConv", "SAGEConv", "GINConv", "APPNP", "SGConv"])
def test_forward_mode_derivatives_are_those_of_reverse_mode(name, x, edge_index):
    layer = LAYERS[name]()

    def forward(x):
        return layer(x, edge_index).tanh()

    expected = torch.func.jacrev(forward)(x)
    torch.testing.assert_close(torch.func.jacfwd(forward)(x), expected)
    _, tangent = torch.func.jvp(forward, (x,), (x.sin(),))
    torch.testing.assert_close(tangent, torch.tensordot(expected, x.sin(), dims=2))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_forward_mode_derivatives_of_parameters_are_those_of_reverse_mode(
    x, edge_index
):
    layer = GINConv(nn.Linear(4, 3), train_eps=True)

    def forward(parameters):
        return torch.func.functional_call(layer, parameters, (x, edge_index))

    parameters = {name: part.detach() for name, part in layer.named_parameters()}
    expected = torch.func.jacrev(forward)(parameters)
    torch.testing.assert_close(torch.func.jacfwd(forward)(parameters), expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("kind", [GATConv, GATv2Conv])
def test_forward_mode_derivatives_of_attention_are_refused_in_one_line(
    kind, x, edge_index
):
    layer = kind(4, 3)
    with pytest.raises(UserError, match="has no forward-mode derivative"):
        torch.func.jvp(lambda x: layer(x, edge_index), (x,), (x,))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_forward_mode_derivatives_of_edge_weights_are_refused_in_one_line(
    x, edge_index
):
    layer, weight = GCNConv(4, 3), torch.rand(edge_index.shape[1])
    expected = torch.func.jacrev(lambda x: layer(x, edge_index, weight))(x)
    actual = torch.func.jacfwd(lambda x: layer(x, edge_index, weight))(x)
    torch.testing.assert_close(actual, expected)
    with pytest.raises(UserError, match="Edge weights have no forward-mode"):
        torch.func.jvp(lambda w: layer(x, edge_index, w), (weight,), (weight,))


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_each_of_several_inputs_under_vmap_are_a_loop(name, x, edge_index):
    layer = LAYERS[name]().eval()

    def loss(x):
        return layer(x, edge_index).square().sum()

    stack = torch.stack([x, x.sin()])
    actual = torch.func.vmap(torch.func.grad(loss))(stack)
    expected = torch.stack([torch.func.grad(loss)(one) for one in stack])
    torch.testing.assert_close(actual, expected)
    leaf = x.requires_grad_()
    torch.testing.assert_close(torch.autograd.grad(loss(leaf), leaf)[0], actual[0])


def operator_calls(x, edge_index):
    """Each operator with arguments that need a gradient where it has one."""
    operators = torch.ops.unalike

    leaf, weight = x.clone().requires_grad_(), torch.rand(edge_index.shape[1])
    edges, sizes = (edge_index, None, "coo"), (NODES, NODES)
    learned = weight.clone().requires_grad_()
    plain = ("sum", "none", 1.0, 0.5, 0.0, 1, False)
    yield operators.propagate.default, (leaf, x, *edges, learned, *sizes, *plain)
    steps = ("gcn", "remaining", 1.0, 0.9, 0.1, 3, False)
    yield operators.propagate.default, (leaf, None, *edges, weight, *sizes, *steps)
    yield operators.edge_dots.default, (x, x, *edges, *sizes)
    scores, heads = torch.randn(NODES, 2), torch.randn(NODES, 2, 3)
    vector = torch.randn(2, 3)
    tensors, options = (heads, scores, scores), (-1, 0.2, 1.0)
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    yield operators.gat.default, (*leaves, None, *edges, *options, True)
    saved = (*operators.gat(*tensors, None, *edges, *options, True), heads)
    yield operators.gat_backward.default, (*tensors, None, *saved, *edges, *options)
    tensors, options = (heads, heads, vector), (NODES, 0.2, 1.0)
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    yield operators.gatv2.default, (*leaves, None, *edges, *options, True)
    saved = (*operators.gatv2(*tensors, None, *edges, *options, True), heads)
    yield operators.gatv2_backward.default, (*tensors, None, *saved, *edges, *options)


def test_operators_pass_the_checks_of_torch_library(x, edge_index):
    for operator, arguments in operator_calls(x, edge_index):
        torch.library.opcheck(operator, arguments)


@pytest.mark.parametrize("name", LAYERS)
def test_copies_of_a_layer_give_the_same(name, x, edge_index, tmp_path):
    layer = LAYERS[name]().eval()
    expected = layer(x, edge_index)
    torch.save(layer, tmp_path / "layer.pt")
    loaded = torch.load(tmp_path / "layer.pt", weights_only=False)
    for other in (deepcopy(layer), loaded):
        assert torch.equal(other(x, edge_index), expected)


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "LINKX"])
@pytest.mark.parametrize("nodes", [0, 1, 5])
def test_graphs_without_edges_give_finite_outputs(name, nodes):
    x, edge_index = torch.randn(nodes, 4), torch.zeros(2, 0, dtype=torch.long)
    out, *grads = output_and_gradients(LAYERS[name](), x, edge_index)
    assert len(out) == nodes
    assert all(tensor.isfinite().all() for tensor in (out, *grads))


@pytest.mark.parametrize("name", ["GCNConv", "GATConv", "GATv2Conv", "SAGEConv"])
def test_features_that_are_no_rows_of_nodes_are_refused(name, x, edge_index):
    with pytest.raises(UserError, match=r"x has the shape \[2, 12, "):
        LAYERS[name]()(torch.stack([x, x]), edge_index)
    with pytest.raises(UserError, match="x is on cpu, but the edges are on meta"):
        LAYERS[name]()(x, edge_index.to("meta"))


def test_a_weight_for_each_edge_is_asked_for(x, edge_index):
    count = edge_index.shape[1]
    with pytest.raises(UserError, match=rf"shape \[{count + 1}\]; it must be"):
        GCNConv(4, 3)(x, edge_index, torch.rand(count + 1))


def test_attention_weights_that_are_not_asked_for_are_no_error(x, edge_index):
    layer = GATConv(4, 3)
    out = layer(x, edge_index, return_attention_weights=False)
    assert torch.equal(out, layer(x, edge_index))


COMPILED = """
import torch
from torch import nn
from unalike import Adjacency
from unalike.pyg import GCNConv, GATConv, GATv2Conv, SAGEConv, GINConv, GCN2Conv
from unalike.pyg import APPNP, MixHopConv, SGConv, LINKX

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([
            GCNConv(4, 4), GATConv(4, 2, heads=2), GATv2Conv(4, 2, heads=2),
            SAGEConv(4, 4), GINConv(nn.Linear(4, 4)), APPNP(2, 0.1), SGConv(4, 4),
            MixHopConv(4, 4, powers=[1]), GATConv(4, 4, dropout=0.5),
        ])
        self.gcn2, self.linkx = GCN2Conv(4, 0.1), LINKX(12, 4, 5, 3, 2)

    def forward(self, x, edge_index):
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return self.linkx(self.gcn2(x, x, edge_index), edge_index)

torch.manual_seed(0)
model, x = Model(), torch.randn(12, 4)
edge_index = torch.randint(12, (2, 40))
adjacency = Adjacency.from_edges(*edge_index, shape=(12, 12))

def gradients(function, edges):
    torch.manual_seed(1)
    out = function(x, edges)
    return out, *torch.autograd.grad(out.square().sum(), list(model.parameters()))

compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
for edges in (edge_index, adjacency):
    for one, other in zip(gradients(compiled, edges), gradients(model, edges)):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
learned = torch.rand(40, requires_grad=True)
layer = GCNConv(4, 4)
both = (torch.compile(layer, fullgraph=True, backend="aot_eager"), layer)
first, second = (
    torch.autograd.grad(one(x, edge_index, learned).square().sum(), learned)[0]
    for one in both
)
torch.testing.assert_close(first, second)

exported = torch.export.export(layer, (x, edge_index)).module()
torch.testing.assert_close(exported(x, edge_index), layer(x, edge_index))

counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
dynamic = torch.compile(GCNConv(4, 4), fullgraph=True, dynamic=True, backend=counter)
for nodes in (9, 14, 21, 30):
    edge_index = torch.randint(nodes, (2, 3 * nodes))
    x = torch.randn(nodes, 4, requires_grad=True)
    dynamic(x, edge_index).sum().backward()
    assert x.grad.isfinite().all()
assert counter.frame_count <= 2, counter.frame_count
"""
"""A process of its own: the checks of types that tests install cannot be traced."""


@pytest.mark.long
def test_compiled_models_are_one_graph_and_give_the_same():
    run = [sys.executable, "-W", "ignore", "-c", COMPILED]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


DISTRIBUTED = """
import sys, torch
from torch import distributed, nn
from unalike.pyg import GCNConv, GATConv

rank, file = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=file, rank=rank, world_size=2)
torch.manual_seed(0)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(4, 8), GATConv(8, 2)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)

model = Model()
x = [torch.randn(12, 4) for _ in range(2)]
edge_index = [torch.randint(12, (2, 40)) for _ in range(2)]
losses = [model(*pair).square().mean() for pair in zip(x, edge_index)]
expected = torch.autograd.grad(sum(losses) / 2, list(model.parameters()))
parallel = nn.parallel.DistributedDataParallel(model)
parallel(x[rank], edge_index[rank]).square().mean().backward()
for parameter, grad in zip(model.parameters(), expected):
    torch.testing.assert_close(parameter.grad, grad)
distributed.destroy_process_group()
"""


@pytest.mark.long
def test_data_parallel_gradients_are_means_over_processes(tmp_path):
    file = (tmp_path / "store").as_uri()
    runs = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", DISTRIBUTED, str(rank), file],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    errors = [run.communicate(timeout=300)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], errors


def test_layers_need_no_torch_geometric():
    code = (
        "import sys, torch, unalike.pyg as pyg; "
        "[getattr(pyg, name) for name in pyg.EXPORTS]; "
        "pyg.GCNConv(2, 2)(torch.ones(2, 2), torch.tensor([[0], [1]])); "
        "print('torch_geometric' in sys.modules)"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_public_names_are_declared_for_type_checkers():
    assert set(unalike.pyg.EXPORTS) <= set(dir(unalike.pyg))
    with pytest.raises(AttributeError, match=r"'unalike\.pyg' has no attribute 'GNC'"):
        _ = unalike.pyg.GNC


def test_gcn2_takes_an_adjacency(x, edge_index):
    source, target = edge_index
    adj_t = Adjacency.from_edges(
        target, source, shape=(NODES, NODES), values=torch.ones(len(source))
    )
    layer = GCN2Conv(4, 0.2)
    torch.testing.assert_close(layer(x, x, adj_t), layer(x, x, edge_index))
