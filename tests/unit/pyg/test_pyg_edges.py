"""Edges in all formats: same result, converted once, freed with their tensor."""

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from pyg_layers import pair, pyg_nn, random_edges
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from unalike import Adjacency, UserError
from unalike.pyg import GATConv, GATv2Conv, GCNConv, SAGEConv, SGConv, ToAdjacency
from unalike.pyg.edges import GRAPHS, SPARSE_TENSORS

NODES = 9

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse:UserWarning"),
    pytest.mark.filterwarnings("ignore:Converting sparse tensor:UserWarning"),
]


def simple_edges(seed=0):
    """Directed edges with self-loops, none of them twice."""
    return random_edges(seed, NODES, NODES, 30).unique(dim=1)


def matrix(edge_index, weight=None):
    """Row i of the matrix holds the sources of the edges that point at node i."""
    return Adjacency.from_edges(
        edge_index[1], edge_index[0], shape=(NODES, NODES), values=weight
    )


class SparseTensor:
    """The methods of torch_sparse.SparseTensor, which is not installed, that we use."""

    def __init__(self, adj_t):
        self.adj_t = adj_t

    def csr(self):
        return self.adj_t.indptr, self.adj_t.indices.long(), self.adj_t.values


FORMATS = {
    "EdgeIndex": lambda edges: EdgeIndex(
        edges.contiguous(), sparse_size=(NODES, NODES)
    ),
    "int32": torch.Tensor.int,
    "Adjacency": matrix,
    "SparseTensor": lambda edges: SparseTensor(matrix(edges)),
    "torch CSR": lambda edges: to_torch_csr_tensor(edges.flip(0), size=(NODES, NODES)),
    "torch COO": lambda edges: to_torch_coo_tensor(edges.flip(0), size=(NODES, NODES)),
    "torch CSC": lambda edges: to_torch_coo_tensor(
        edges.flip(0), size=(NODES, NODES)
    ).to_sparse_csc(),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("layer", [SAGEConv, GATConv], ids=lambda kind: kind.__name__)
def test_every_format_gives_what_an_edge_index_gives(name, layer):
    edge_index, x = simple_edges(), torch.randn(NODES, 4)
    convolution = layer(4, 3)
    actual = convolution(x, FORMATS[name](edge_index))
    torch.testing.assert_close(actual, convolution(x, edge_index))


@pytest.mark.parametrize(
    "pointers",
    [[0, 1, 2, 9_999_999], [0, 3, 1, 3], [0, -9, 2, 3], [2, 2, 2, 3]],
    ids=str,
)
@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("layer", [SAGEConv, GCNConv], ids=lambda kind: kind.__name__)
def test_pointers_that_torch_does_not_check_are_refused(layer, layout, pointers):
    make = getattr(torch, f"sparse_{layout}_tensor")
    indices, weights = torch.tensor([0, 1, 2]), torch.ones(3)
    matrix = make(
        torch.tensor(pointers), indices, weights, (3, 3), check_invariants=False
    )
    with pytest.raises(UserError, match="pointers of the sparse matrix"):
        layer(4, 3)(torch.randn(3, 4), matrix)


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("convert", [to_torch_csr_tensor, to_torch_coo_tensor])
def test_weights_and_loops_of_sparse_tensors_are_those_of_pyg(convert, add_self_loops):
    edge_index, x = simple_edges(), torch.randn(NODES, 4)
    weight = torch.rand(edge_index.shape[1])
    adj_t = convert(edge_index.flip(0), weight, size=(NODES, NODES))
    theirs, ours = pair("GCNConv", 4, 3, add_self_loops=add_self_loops, improved=True)
    torch.testing.assert_close(ours(x, adj_t), theirs(x, adj_t))


def test_weights_of_an_adjacency_are_edge_weights():
    edge_index, x = simple_edges(), torch.randn(NODES, 4)
    weight = torch.rand(edge_index.shape[1]) + 0.1
    layer = GCNConv(4, 3)
    torch.testing.assert_close(
        layer(x, matrix(edge_index, weight)), layer(x, edge_index, weight)
    )


def test_an_edge_index_is_converted_once_and_freed_with_it():
    gc.collect()
    before = len(GRAPHS.entries)
    edge_index, layer, x = simple_edges(), GCNConv(4, 3), torch.randn(NODES, 4)
    layer(x, edge_index)
    (graph,) = GRAPHS.entries[edge_index][1].values()
    layer(x, edge_index)
    assert [*GRAPHS.entries[edge_index][1].values()] == [graph]
    del edge_index
    gc.collect()
    assert len(GRAPHS.entries) == before


@pytest.mark.parametrize("name", ["Adjacency", "torch CSR", "torch COO", "torch CSC"])
def test_sparse_matrices_are_freed(name):
    gc.collect()
    before = len(GRAPHS.entries), len(SPARSE_TENSORS.entries)
    edges, layer = FORMATS[name](simple_edges()), GCNConv(4, 3)
    layer(torch.randn(NODES, 4), edges).sum().backward()
    assert len(GRAPHS.entries) > before[0]
    del edges
    gc.collect()
    assert (len(GRAPHS.entries), len(SPARSE_TENSORS.entries)) == before


def test_weights_are_freed():
    edge_index, layer, x = simple_edges(), GCNConv(4, 3), torch.randn(NODES, 4)
    layer(x, edge_index, torch.rand(edge_index.shape[1]))
    gc.collect()
    (graph,) = GRAPHS.entries[edge_index][1].values()
    assert len(graph.weights.entries) == 0


def test_edges_and_weights_that_change_in_place_are_converted_again():
    edge_index, layer, x = simple_edges(), GCNConv(4, 3), torch.randn(NODES, 4)
    weight = torch.rand(edge_index.shape[1])
    layer(x, edge_index, weight)
    edge_index[0] = edge_index[0].flip(0)
    weight.mul_(torch.rand_like(weight))
    expected = layer(x, edge_index.clone(), weight.clone())
    torch.testing.assert_close(layer(x, edge_index, weight), expected)


def test_one_edge_index_serves_graphs_of_several_sizes():
    edge_index, layer = simple_edges(), SAGEConv(4, 3)
    for nodes in (NODES, NODES + 3):
        assert layer(torch.randn(nodes, 4), edge_index).shape == (nodes, 3)


def test_threads_share_the_conversion():
    edge_index, layer, x = simple_edges(), GCNConv(4, 3), torch.randn(NODES, 4)
    with ThreadPoolExecutor(8) as pool:
        outs = list(pool.map(lambda _: layer(x, edge_index), range(32)))
    assert all(torch.equal(out, outs[0]) for out in outs)
    assert len(GRAPHS.entries[edge_index][1]) == 1


def test_edges_made_in_inference_mode_work():
    layer, x = GCNConv(4, 3), torch.randn(NODES, 4)
    with torch.inference_mode():
        edge_index = simple_edges()
        first = layer(x, edge_index)
    torch.testing.assert_close(first, layer(x, simple_edges()).detach())


def test_edges_made_in_inference_mode_are_converted_once_until_they_change():
    layer, x = GCNConv(4, 3), torch.randn(NODES, 4)
    with torch.inference_mode():
        edge_index = simple_edges()
        layer(x, edge_index)
        (graph,) = GRAPHS.entries[edge_index][1].values()
        layer(x, edge_index)
        assert [*GRAPHS.entries[edge_index][1].values()] == [graph]
        edge_index[0] = edge_index[0].flip(0)
        expected = layer(x, edge_index.clone())
        torch.testing.assert_close(layer(x, edge_index), expected)


WRONG = {
    r"An edge has the target 9; there are 9 nodes": torch.tensor([[0], [9]]),
    r"An edge has the source -1; there are 9 nodes": torch.tensor([[-1], [0]]),
    r"edge_index has the shape \[3, 1\]": torch.zeros(3, 1, dtype=torch.long),
    r"edge_index is torch.float32; it must hold integers": torch.zeros(2, 1),
    r"Edges are given as list": [[0], [1]],
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_edges_are_refused_in_one_line(message):
    with pytest.raises(UserError, match=message):
        GCNConv(4, 3)(torch.randn(NODES, 4), WRONG[message])


def test_a_matrix_of_another_size_is_refused_in_one_line():
    small = torch.eye(3).to_sparse_csr()
    with pytest.raises(UserError, match="matrix has 3 rows, but there are 9 nodes"):
        GCNConv(4, 3)(torch.randn(NODES, 4), small)


@pytest.mark.parametrize("weighted", [True, False])
def test_the_transform_sums_edges_that_are_given_twice(weighted):
    edge_index, x = random_edges(3, NODES, NODES, 30), torch.randn(NODES, 4)
    weight = torch.rand(edge_index.shape[1]) + 0.1 if weighted else None
    data = Data(x=x, edge_index=edge_index, edge_weight=weight)
    converted = ToAdjacency()(data)
    assert "edge_index" not in converted
    assert "edge_index" in data
    layer = GCNConv(4, 3, normalize=False)
    expected = layer(x, edge_index, weight)
    torch.testing.assert_close(layer(x, converted.adj_t), expected)
    torch.testing.assert_close(layer(x, converted.to("cpu").adj_t), expected)


def test_the_transform_works_in_a_composition_of_pyg():
    from torch_geometric.transforms import Compose, ToUndirected

    data = Data(x=torch.randn(NODES, 4), edge_index=simple_edges())
    converted = Compose([ToUndirected(), ToAdjacency()])(data)
    assert converted.adj_t.is_symmetric
    theirs, ours = pair("GCNConv", 4, 3)
    undirected = ToUndirected()(data).edge_index
    torch.testing.assert_close(
        ours(data.x, converted.adj_t), theirs(data.x, undirected)
    )
    assert pyg_nn.GCNConv is type(theirs)


def test_features_that_cannot_be_propagated_are_refused_in_one_line():
    edge_index, x = simple_edges(), torch.randn(NODES, 4)
    with pytest.raises(UserError, match=r"x is a torch\.sparse tensor"):
        SGConv(4, 3)(x.to_sparse_csr(), edge_index)
    with pytest.raises(UserError, match="GATv2Conv needs features of the targets"):
        GATv2Conv(4, 3)((x, None), edge_index)


REFUSED = [
    ("GATConv", (4, 3), {"edge_dim": 2}, "GATConv does not support edge_dim"),
    ("SAGEConv", (4, 3), {"aggr": "lstm"}, "does not support aggr='lstm'"),
    ("SAGEConv", (4, 3), {"aggr": ["mean", "max"]}, "does not support aggr="),
    ("GCNConv", (4, 3), {"flow": "target_to_source"}, "does not support flow="),
    ("GCNConv", (4, 3), {"aggr": "max"}, "does not support aggr='max'"),
    ("GCNConv", (-1, 3), {}, "in_channels is -1"),
    ("GCNConv", (4, 3), {"add_self_loops": True, "normalize": False}, "normalises"),
    ("GCN2Conv", (4, 0.1), {"theta": 0.5}, "theta and layer together"),
    ("GCNConv", (4, 3), {"widgets": 2}, "does not support 'widgets'"),
]


@pytest.mark.parametrize(("name", "arguments", "options", "message"), REFUSED)
def test_options_that_are_not_supported_are_refused(name, arguments, options, message):
    import unalike.pyg

    with pytest.raises(UserError, match=message):
        getattr(unalike.pyg, name)(*arguments, **options)


def test_edge_attributes_and_returned_weights_are_refused():
    layer, x, edge_index = GATConv(4, 3), torch.randn(NODES, 4), simple_edges()
    with pytest.raises(UserError, match="does not support edge_attr"):
        layer(x, edge_index, torch.ones(edge_index.shape[1], 1))
    with pytest.raises(UserError, match="does not store attention weights"):
        layer(x, edge_index, return_attention_weights=True)
