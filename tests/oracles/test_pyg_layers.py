"""Our layers against those of PyTorch Geometric: outputs and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pyg_layers import output_and_gradients, pair, pyg_nn, random_edges
from torch import nn

import unalike.pyg

BOUND = {"rtol": 1e-5, "atol": 1e-5}

WEIGHTED = [
    ("GCNConv", (5, 3), {}),
    ("GCNConv", (5, 8), {"improved": True}),
    ("GCNConv", (5, 3), {"add_self_loops": False, "bias": False}),
    ("GCNConv", (5, 3), {"normalize": False}),
    ("GCNConv", (5, 3), {"cached": True}),
    ("SGConv", (5, 3), {"K": 3}),
    ("SGConv", (5, 3), {"add_self_loops": False, "bias": False}),
    ("MixHopConv", (5, 3), {}),
    ("MixHopConv", (5, 3), {"powers": [0, 2], "add_self_loops": False, "bias": False}),
    ("APPNP", (3, 0.1), {}),
    ("APPNP", (2, 0.5), {"add_self_loops": False}),
    ("APPNP", (2, 0.5), {"normalize": False}),
    ("GCN2Conv", (5, 0.3), {}),
    ("GCN2Conv", (5, 0.3), {"theta": 0.5, "layer": 2, "shared_weights": False}),
    ("GCN2Conv", (5, 0.3), {"normalize": False}),
    ("LINKX", (9, 5, 6, 3, 2), {}),
    ("LINKX", (9, 5, 6, 3, 1), {"num_edge_layers": 3, "num_node_layers": 2}),
]
UNWEIGHTED = [
    ("SAGEConv", (5, 3), {}),
    ("SAGEConv", (5, 8), {"aggr": "sum", "bias": False}),
    ("SAGEConv", (5, 3), {"project": True, "normalize": True}),
    ("SAGEConv", (5, 3), {"root_weight": False}),
    ("GINConv", (nn.Linear(5, 4),), {"eps": 0.5}),
    ("GINConv", (nn.Sequential(nn.Linear(5, 4), nn.ReLU()),), {"train_eps": True}),
    ("GATConv", (5, 3), {}),
    ("GATConv", (5, 3), {"heads": 3, "residual": True}),
    ("GATConv", (5, 3), {"heads": 2, "concat": False, "negative_slope": 0.05}),
    ("GATConv", (5, 3), {"heads": 2, "add_self_loops": False, "bias": False}),
    ("GATv2Conv", (5, 3), {}),
    ("GATv2Conv", (5, 3), {"heads": 3, "residual": True, "share_weights": True}),
    ("GATv2Conv", (5, 3), {"heads": 2, "concat": False, "negative_slope": 0.05}),
    ("GATv2Conv", (5, 3), {"heads": 2, "add_self_loops": False, "bias": False}),
]
BIPARTITE = [
    ("SAGEConv", ((5, 4), 3), {}),
    ("SAGEConv", ((5, 4), 8), {"aggr": "add"}),
    ("GATConv", ((5, 4), 3), {"heads": 2}),
    ("GATConv", ((5, 4), 3), {"add_self_loops": False, "residual": True}),
    ("GATv2Conv", ((5, 4), 3), {"heads": 2}),
    ("GATv2Conv", ((5, 4), 3), {"add_self_loops": False}),
]


def case_id(value):
    return value if isinstance(value, str) else None


def call_square(edge_index):
    def call(layer, inputs, weight):
        (x,) = inputs
        rest = (edge_index,) if weight is None else (edge_index, weight)
        if "GCN2" in type(layer).__name__:
            return layer(x, x.sin(), *rest)
        return layer(x, *rest)

    return call


def assert_same(theirs, ours, call, inputs, weight=None):
    expected = output_and_gradients(theirs, call, inputs, weight)
    actual = output_and_gradients(ours, call, inputs, weight)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **BOUND)


@pytest.mark.parametrize(("name", "arguments", "options"), WEIGHTED, ids=case_id)
@settings(max_examples=12)
@given(seed=st.integers(0, 999), count=st.integers(0, 40), weighted=st.booleans())
def test_weighted_layers_agree(name, arguments, options, seed, count, weighted):
    edge_index = random_edges(seed, 9, 9, count)
    torch.manual_seed(seed)
    x, weight = torch.randn(9, 5), torch.rand(edge_index.shape[1]) + 0.1
    layers = pair(name, *arguments, **options)
    if name == "LINKX":  # batch norms of few rows amplify rounding
        layers = [layer.double() for layer in layers]
        x, weight = x.double(), weight.double()
    call = call_square(edge_index)
    assert_same(*layers, call, [x], weight if weighted else None)


@pytest.mark.parametrize(("name", "arguments", "options"), UNWEIGHTED, ids=case_id)
@settings(max_examples=12)
@given(seed=st.integers(0, 999), count=st.integers(0, 40))
def test_unweighted_layers_agree(name, arguments, options, seed, count):
    edge_index = random_edges(seed, 9, 9, count)
    torch.manual_seed(seed)
    theirs, ours = pair(name, *arguments, **options)
    assert_same(theirs, ours, call_square(edge_index), [torch.randn(9, 5)])


@pytest.mark.parametrize(("name", "arguments", "options"), BIPARTITE, ids=case_id)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 999),
    count=st.integers(0, 40),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_bipartite_layers_agree(name, arguments, options, seed, count, sizes):
    edge_index = random_edges(seed, *sizes, count)
    torch.manual_seed(seed)
    theirs, ours = pair(name, *arguments, **options)
    inputs = [torch.randn(sizes[0], 5), torch.randn(sizes[1], 4)]

    def call(layer, inputs, _):
        return layer(tuple(inputs), edge_index)

    assert_same(theirs, ours, call, inputs)


@pytest.mark.parametrize("name", ["SAGEConv", "GINConv", "GATConv"])
def test_bipartite_graphs_without_target_features_agree(name):
    arguments = (nn.Linear(5, 3),) if name == "GINConv" else (5, 3)
    options = {"add_self_loops": False} if name == "GATConv" else {}
    theirs, ours = pair(name, *arguments, **options)
    edge_index = random_edges(3, 7, 4, 12)

    def call(layer, inputs, _):
        return layer((inputs[0], None), edge_index, size=(7, 4))

    assert_same(theirs, ours, call, [torch.randn(7, 5)])


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor:UserWarning")
@pytest.mark.parametrize("name", ["GCNConv", "SAGEConv", "GATConv", "GATv2Conv"])
def test_sparse_features_give_what_dense_ones_give(name):
    ours = getattr(unalike.pyg, name)(5, 8)
    edge_index, x = random_edges(3, 9, 9, 30), torch.randn(9, 5).relu()
    expected, actual = (
        output_and_gradients(ours, lambda layer, _, __, x=x: layer(x, edge_index), [])
        for x in (x, x.to_sparse_csr())
    )
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **BOUND)


def test_edge_weights_may_be_a_column():
    theirs, ours = pair("GCNConv", 5, 3)
    edge_index, x = random_edges(3, 9, 9, 30), torch.randn(9, 5)
    weight = torch.rand(edge_index.shape[1], 1)
    assert_same(theirs, ours, call_square(edge_index), [x], weight)


ALL = [*WEIGHTED, *UNWEIGHTED, *BIPARTITE]


@pytest.mark.parametrize(("name", "arguments", "options"), ALL, ids=case_id)
def test_parameters_are_drawn_as_in_pyg_and_load_both_ways(name, arguments, options):
    layers = []
    for package in (pyg_nn, unalike.pyg):
        torch.manual_seed(3)
        layers.append(getattr(package, name)(*arguments, **options))
    theirs, ours = layers
    for one, other in zip(theirs.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    theirs.load_state_dict(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())


def test_the_last_of_several_self_loops_counts():
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 1, 1, 0]])
    weight = torch.tensor([0.5, 0.25, 3.0, 2.0])
    theirs, ours = pair("GCNConv", 5, 3)
    x = torch.randn(3, 5)
    for given_weight in (None, weight):
        actual = ours(x, edge_index, given_weight)
        torch.testing.assert_close(actual, theirs(x, edge_index, given_weight), **BOUND)
    learned = weight.clone().requires_grad_()
    torch.testing.assert_close(ours(x, edge_index, learned), actual, **BOUND)


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("layer", ["GATConv", "GATv2Conv"])
def test_attention_dropout_has_the_mean_of_the_output(layer, add_self_loops):
    torch.manual_seed(0)
    edge_index = random_edges(1, 9, 9, 40)
    _, ours = pair(layer, 5, 3, heads=2, add_self_loops=add_self_loops, dropout=0.4)
    x = torch.randn(9, 5)
    mean = torch.stack([ours(x, edge_index) for _ in range(2000)]).mean(0)
    torch.testing.assert_close(mean, ours.eval()(x, edge_index), rtol=0.1, atol=0.1)


def test_appnp_dropout_has_the_mean_of_the_output():
    torch.manual_seed(0)
    ours = unalike.pyg.APPNP(1, 0.2, dropout=0.4)
    x, edge_index = torch.randn(9, 5), random_edges(1, 9, 9, 40)
    mean = torch.stack([ours(x, edge_index) for _ in range(2000)]).mean(0)
    torch.testing.assert_close(mean, ours.eval()(x, edge_index), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
def test_gradients_of_attention_with_dropout_are_those_of_the_output(
    kind, add_self_loops
):
    edge_index = random_edges(1, 9, 9, 30)
    layer = getattr(unalike.pyg, kind)(
        5, 3, heads=2, dropout=0.5, add_self_loops=add_self_loops
    ).double()
    names = [name for name, _ in layer.named_parameters() if name.startswith("att")]

    def forward(x, *vectors):
        torch.manual_seed(4)
        given = dict(zip(names, vectors, strict=True))
        return torch.func.functional_call(layer, given, (x, edge_index))

    leaves = [torch.randn(9, 5), *(torch.randn(1, 2, 3) for _ in names)]
    leaves = [leaf.double().requires_grad_() for leaf in leaves]
    assert torch.autograd.gradcheck(forward, leaves)
