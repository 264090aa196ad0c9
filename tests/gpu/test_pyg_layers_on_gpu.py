"""Layers for PyTorch Geometric on a GPU: those of the CPU, same bits, CUDA graphs."""

import pytest
import torch
from torch import nn

from unalike.pyg import (
    APPNP,
    LINKX,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    MixHopConv,
    SAGEConv,
    SGConv,
    attention,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

NODES, EDGES = 500, 6000
LAYERS = {
    "GCNConv": lambda: GCNConv(16, 24),
    "GCNConv narrows": lambda: GCNConv(16, 8),
    "GATConv": lambda: GATConv(16, 8, heads=4),
    "GATConv with another negative_slope": lambda: GATConv(16, 8, negative_slope=0.05),
    "GATConv without loops": lambda: GATConv(16, 8, heads=2, add_self_loops=False),
    "GATConv with more heads than a program takes": lambda: GATConv(16, 3, heads=20),
    "GATv2Conv": lambda: GATv2Conv(16, 8, heads=2),
    "GATv2Conv without loops": lambda: GATv2Conv(16, 5, heads=3, add_self_loops=False),
    "SAGEConv": lambda: SAGEConv(16, 8),
    "GINConv": lambda: GINConv(nn.Linear(16, 8)),
    "APPNP": lambda: APPNP(3, 0.1),
    "MixHopConv": lambda: MixHopConv(16, 8),
    "SGConv": lambda: SGConv(16, 8, K=2),
    "LINKX": lambda: LINKX(NODES, 16, 8, 3, 2).eval(),
}


def output_and_gradients(layer, x, edge_index, weight=None):
    leaf = x.clone().requires_grad_()
    rest = () if weight is None else (weight.clone().requires_grad_(),)
    out = layer(leaf, edge_index, *rest)
    wanted = [leaf, *layer.parameters(), *rest]
    return out.detach(), *torch.autograd.grad(out.square().sum(), wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_on_a_gpu_are_those_on_the_cpu(name):
    torch.manual_seed(0)
    layer, x = LAYERS[name](), torch.randn(NODES, 16)
    edge_index = torch.randint(NODES - 1, (2, EDGES))
    expected = output_and_gradients(layer, x, edge_index)
    actual = output_and_gradients(layer.cuda(), x.cuda(), edge_index.cuda())
    for one, other in zip(actual, expected, strict=True):
        error = float((one.cpu() - other).norm())
        assert error <= 1e-4 * max(float(other.norm()), 1e-3)


def test_gradients_of_edge_weights_are_those_on_the_cpu():
    torch.manual_seed(0)
    layer, x = GCNConv(16, 8), torch.randn(NODES, 16)
    edge_index, weight = torch.randint(NODES, (2, EDGES)), torch.rand(EDGES)
    expected = output_and_gradients(layer, x, edge_index, weight)
    inputs = (x.cuda(), edge_index.cuda(), weight.cuda())
    actual = output_and_gradients(layer.cuda(), *inputs)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", LAYERS)
def test_repeated_calls_give_the_same_bits(name):
    layer, x = LAYERS[name]().cuda(), torch.randn(NODES, 16, device="cuda")
    edge_index = torch.randint(NODES, (2, EDGES), device="cuda")
    first = output_and_gradients(layer, x, edge_index)
    for _ in range(3):
        assert all(map(torch.equal, first, output_and_gradients(layer, x, edge_index)))


@pytest.mark.parametrize("kind", [GATConv, GATv2Conv])
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_attention_dropout_on_a_gpu_is_that_on_the_cpu(
    kind, add_self_loops, monkeypatch
):
    torch.manual_seed(0)
    layer = kind(16, 8, heads=2, dropout=0.5, add_self_loops=add_self_loops)
    x, edge_index = torch.randn(NODES, 16), torch.randint(NODES, (2, EDGES))
    count = EDGES + (NODES if add_self_loops else 0)
    kept = torch.randint(2, (count, 2), dtype=torch.uint8)
    monkeypatch.setattr(
        attention, "sample_kept", lambda like, *_: (kept.to(like.device), 2.0)
    )
    expected = output_and_gradients(layer, x, edge_index)
    actual = output_and_gradients(layer.cuda(), x.cuda(), edge_index.cuda())
    for one, other in zip(actual, expected, strict=True):
        error = float((one.cpu() - other).norm())
        assert error <= 1e-4 * max(float(other.norm()), 1e-3)


@pytest.mark.parametrize("sizes", [(300, 500), (500, 300)])
@pytest.mark.parametrize("kind", [GATConv, GATv2Conv, SAGEConv])
def test_bipartite_layers_on_a_gpu_are_those_on_the_cpu(kind, sizes):
    torch.manual_seed(0)
    layer = kind((16, 12), 8)
    pair = torch.randn(sizes[0], 16), torch.randn(sizes[1], 12)
    edge_index = torch.stack([torch.randint(size, (EDGES,)) for size in sizes])
    expected = layer(pair, edge_index)
    inputs = tuple(part.cuda() for part in pair), edge_index.cuda()
    actual = layer.cuda()(*inputs).cpu()
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("name", LAYERS)
def test_a_step_waits_for_the_gpu_nowhere(name):
    """No value is copied to the CPU once the edges are converted."""
    layer, x = LAYERS[name]().cuda(), torch.randn(NODES, 16, device="cuda")
    edge_index = torch.randint(NODES, (2, EDGES), device="cuda")
    output_and_gradients(layer, x, edge_index)
    torch.cuda.set_sync_debug_mode("error")
    try:
        output_and_gradients(layer, x, edge_index)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", ["GCNConv", "GATConv", "SAGEConv"])
def test_a_layer_is_captured_as_a_cuda_graph(name):
    layer, x = LAYERS[name]().cuda(), torch.randn(NODES, 16, device="cuda")
    edge_index = torch.randint(NODES, (2, EDGES), device="cuda")
    with torch.no_grad():
        expected = layer(x, edge_index)  # converts the edges and compiles the kernels
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = layer(x, edge_index)
        graph.replay()
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("name", ["GCNConv", "GATConv", "SAGEConv", "GINConv"])
def test_autocast_computes_in_bfloat16(name):
    layer, x = LAYERS[name]().cuda(), torch.randn(NODES, 16, device="cuda")
    edge_index = torch.randint(NODES, (2, EDGES), device="cuda")
    expected = layer(x, edge_index).detach()
    with torch.autocast("cuda", torch.bfloat16):
        actual = layer(x, edge_index).detach().float()
    assert float((actual - expected).abs().max()) < 0.05 * float(expected.abs().max())
