"""accelerate: layers of PyTorch Geometric replaced in place, parameters shared."""

import pytest
import torch
from pyg_layers import pyg_nn, random_edges
from torch import nn

from unalike import UserError
from unalike.pyg import accelerate

NODES = 9
LAYERS = {
    "GCNConv": lambda: pyg_nn.GCNConv(4, 4, improved=True),
    "GATConv": lambda: pyg_nn.GATConv(4, 2, heads=2, residual=True),
    "GATv2Conv": lambda: pyg_nn.GATv2Conv(4, 4, share_weights=True),
    "SAGEConv": lambda: pyg_nn.SAGEConv(4, 4, aggr="sum", bias=False),
    "GINConv": lambda: pyg_nn.GINConv(nn.Linear(4, 4), eps=0.3, train_eps=True),
    "APPNP": lambda: pyg_nn.APPNP(2, 0.1),
    "MixHopConv": lambda: pyg_nn.MixHopConv(4, 2, powers=[0, 1]),
    "SGConv": lambda: pyg_nn.SGConv(4, 4, K=2, bias=False),
    "LINKX": lambda: pyg_nn.LINKX(NODES, 4, 5, 4, 2, num_edge_layers=2),
}


class Model(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x, edge_index):
        for layer in self.layers:
            x = layer(x, edge_index)
        return x


@pytest.mark.parametrize("name", LAYERS)
def test_a_replaced_layer_gives_the_same_with_the_same_parameters(name):
    torch.manual_seed(0)
    model = Model(LAYERS[name]()).eval()
    x, edge_index = torch.randn(NODES, 4), random_edges(1, NODES, NODES, 30)
    expected, parameters = model(x, edge_index), list(model.parameters())
    keys = list(model.state_dict())
    report = accelerate(model)
    assert report.replaced == {"layers.0": name}
    assert not report.kept
    assert type(model.layers[0]).__module__.startswith("unalike.pyg")
    assert not model.layers[0].training
    assert list(model.state_dict()) == keys
    now = list(model.parameters())
    assert [id(parameter) for parameter in now] == [id(one) for one in parameters]
    torch.testing.assert_close(model(x, edge_index), expected)


def test_gcn2_keeps_its_beta():
    layer = pyg_nn.GCN2Conv(4, 0.1, theta=0.5, layer=3, shared_weights=False)
    model = nn.ModuleDict({"conv": layer})
    x, edge_index = torch.randn(NODES, 4), random_edges(1, NODES, NODES, 30)
    expected = layer(x, x, edge_index)
    accelerate(model)
    torch.testing.assert_close(model["conv"](x, x, edge_index), expected)


def test_an_optimizer_made_before_trains_the_new_layers():
    model = Model(pyg_nn.GCNConv(4, 4), pyg_nn.GATConv(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    accelerate(model)
    x, edge_index = torch.randn(NODES, 4), random_edges(1, NODES, NODES, 30)
    before = model.layers[0].lin.weight.detach().clone()
    model(x, edge_index).square().sum().backward()
    optimizer.step()
    assert not torch.equal(before, model.layers[0].lin.weight)


class OwnGCN(pyg_nn.GCNConv):
    """A layer whose methods may differ."""


def test_layers_that_stay_are_named_with_the_reason():
    hooked = pyg_nn.GCNConv(4, 4)
    hooked.register_forward_hook(lambda *_: None)
    model = Model(
        pyg_nn.GATConv(4, 4, edge_dim=2),
        OwnGCN(4, 4),
        pyg_nn.TAGConv(4, 4),
        pyg_nn.GCNConv(-1, 4),
        hooked,
        pyg_nn.GCNConv(4, 4),
    )
    before = list(model.layers)
    report = accelerate(model)
    assert report.replaced == {"layers.5": "GCNConv"}
    assert report.kept == {
        "layers.0": "unalike's GATConv does not support edge_dim.",
        "layers.1": "OwnGCN is a subclass of GCNConv.",
        "layers.2": "unalike has no TAGConv.",
        "layers.3": "its parameters are not initialised; call the model first.",
        "layers.4": "hooks are registered on it.",
    }
    assert list(model.layers)[:5] == before[:5]
    text = report.summary().to_html()
    assert "unalike.pyg.GCNConv" in text
    assert "not replaced: OwnGCN is a subclass" in text


def test_a_layer_that_is_used_twice_stays_one_layer():
    layer = pyg_nn.GCNConv(4, 4)
    model = Model(layer, layer)
    assert len(accelerate(model).replaced) == 2
    assert model.layers[0] is model.layers[1]


def test_models_of_pyg_are_accelerated():
    model = pyg_nn.GAT(4, 8, num_layers=2, out_channels=3, heads=2).eval()
    x, edge_index = torch.randn(NODES, 4), random_edges(1, NODES, NODES, 30)
    expected = model(x, edge_index)
    assert accelerate(model).replaced == {"convs.0": "GATConv", "convs.1": "GATConv"}
    torch.testing.assert_close(model(x, edge_index), expected)


def test_a_layer_alone_is_refused_in_one_line():
    with pytest.raises(UserError, match="The model is itself a GCNConv"):
        accelerate(pyg_nn.GCNConv(4, 4))


@pytest.mark.parametrize("v2", [False, True])
def test_lazy_layers_of_a_heterogeneous_model_are_replaced_after_a_call(v2):
    attention = pyg_nn.GATv2Conv if v2 else pyg_nn.GATConv
    kinds = {
        ("a", "to", "b"): pyg_nn.SAGEConv((-1, -1), 4),
        ("b", "to", "a"): attention((-1, -1), 4, add_self_loops=False),
        ("a", "to", "a"): pyg_nn.GCNConv(-1, 4),
    }
    sizes = {"a": 5, "b": 6}
    x = {"a": torch.randn(5, 4), "b": torch.randn(6, 3)}
    edges = {key: random_edges(1, sizes[key[0]], sizes[key[2]], 10) for key in kinds}
    model = nn.ModuleList([pyg_nn.HeteroConv(kinds)])
    expected = model[0](x, edges)
    report = accelerate(model)
    assert len(report.replaced) == 3 and not report.kept
    torch.testing.assert_close(model[0](x, edges), expected)


def test_models_by_to_hetero_are_accelerated():
    class TwoLayers(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = pyg_nn.SAGEConv((-1, -1), 4)
            self.second = pyg_nn.SAGEConv((-1, -1), 4)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    edges = {
        ("a", "to", "b"): random_edges(1, 5, 6, 10),
        ("b", "to", "a"): random_edges(2, 6, 5, 10),
    }
    x = {"a": torch.randn(5, 4), "b": torch.randn(6, 3)}
    model = pyg_nn.to_hetero(TwoLayers(), (["a", "b"], list(edges)))
    expected = model(x, edges)
    assert len(accelerate(model).replaced) == 4
    torch.testing.assert_close(model(x, edges), expected)


def test_layers_with_parametrizations_or_inner_hooks_stay():
    normed, hooked = pyg_nn.GCNConv(4, 4), pyg_nn.GCNConv(4, 4)
    nn.utils.parametrizations.weight_norm(normed.lin)
    hooked.lin.register_forward_hook(lambda *_: None)
    assert accelerate(Model(normed, hooked)).kept == {
        "layers.0": "its parameters are not those of a GCNConv.",
        "layers.1": "hooks are registered on it.",
    }
