"""Datasets of unalike as `Data` of PyTorch Geometric."""

import copy
import pickle
import sys

import pyg_models as pyg
import pytest
import torch
from graphs import HAND_DRAWN, drawn, suiting

import unalike.pyg
from unalike import Adjacency, Graph, Split, UserError, random_splits, save_graph

PARTS = {"train_mask": "train", "val_mask": "valid", "test_mask": "test"}


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=60, features="sparse", directed=True)
    splits = random_splits(graph.labels, count=3)
    about = {"licence": "CC0", "citation": "Nobody 2020"}
    return save_graph(tmp_path / "likes", graph, splits=splits, about=about)


def pairs(edge_index):
    return sorted(map(tuple, edge_index.T.tolist()))


@pytest.mark.parametrize("name", HAND_DRAWN)
def test_a_graph_keeps_its_edges_features_and_labels(name):
    graph = HAND_DRAWN[name]
    data = unalike.pyg.dataset(graph)
    assert isinstance(data, pyg.Data)
    assert data.num_nodes == graph.num_nodes
    assert data.is_undirected() is not graph.directed
    there = graph.adjacency.to_dense().nonzero().tolist()
    assert pairs(data.edge_index) == sorted(map(tuple, there))
    assert torch.equal(data.x, graph.features.to_dense())
    assert torch.equal(data.y, graph.labels)
    assert data.num_classes == graph.num_classes
    assert data.num_features == data.num_node_features == graph.num_features


def test_a_stored_graph_has_masks_of_all_its_splits(stored):
    data = unalike.pyg.dataset(stored.folder)
    for mask, part in PARTS.items():
        assert data[mask].shape == (60, 3)
        assert data[mask].dtype == torch.bool
        for column, split in enumerate(stored.splits()):
            ids = data[mask][:, column].nonzero()[:, 0]
            assert torch.equal(ids, getattr(split, part).sort().values)


def test_a_stored_graph_names_metric_citation_and_licence(stored):
    data = unalike.pyg.dataset(str(stored.folder))
    assert (data.name, data.metric) == ("likes", "accuracy")
    assert (data.citation, data.licence) == ("Nobody 2020", "CC0")


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UserError, match="Did you mean 'chameleon-twin'"):
        unalike.pyg.dataset("chamaeleon-twin")


def test_a_graph_has_no_splits_unless_they_are_given():
    graph = HAND_DRAWN["star"]
    assert unalike.pyg.dataset(graph).train_mask.shape == (5, 0)
    split = Split(*map(torch.tensor, ([0, 3], [1], [4])))
    data = unalike.pyg.dataset(graph, splits=[split])
    assert data.train_mask[:, 0].tolist() == [True, False, False, True, False]
    assert data.val_mask[:, 0].tolist() == [False, True, False, False, False]
    assert data.test_mask[:, 0].tolist() == [False, False, False, False, True]


def test_it_is_a_dataset_of_one_graph(stored):
    dataset = unalike.pyg.dataset(stored.folder)
    assert len(dataset) == 1
    for graph in (dataset[0], dataset[-1], *dataset):
        assert type(graph) is pyg.Data
        assert {*graph.keys()} == {*dataset.keys()}
        assert torch.equal(graph.edge_index, dataset.edge_index)
    with pytest.raises(IndexError, match="one graph"):
        dataset[1]
    assert dataset["y"] is dataset.y


@pytest.mark.parametrize(
    "copied", [copy.copy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_copies_are_datasets_too(stored, copied):
    dataset = unalike.pyg.dataset(stored.folder)
    again = copied(dataset)
    assert len(again) == 1 and again.num_classes == dataset.num_classes
    assert torch.equal(again[0].x, dataset.x)


def test_tensors_may_be_changed_in_place(stored):
    data = unalike.pyg.dataset(stored.folder)
    for name in ("x", "y", "edge_index", "train_mask"):
        data[name].zero_()
    again = unalike.pyg.dataset(stored.folder)
    assert again.x.any() and again.y.any() and again.train_mask.any()
    graph = HAND_DRAWN["star"]
    unalike.pyg.dataset(graph).x.zero_()
    assert graph.features.any()


@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_features_are_dense_or_a_csr_matrix(features):
    graph = suiting(nodes=40, features=features)
    dense = unalike.pyg.dataset(graph).x
    csr = unalike.pyg.dataset(graph, sparse=True).x
    assert dense.layout == torch.strided and csr.layout == torch.sparse_csr
    assert dense.dtype == csr.dtype == torch.float32
    assert torch.equal(csr.to_dense(), dense)
    assert torch.equal(dense, graph.features.to_dense().float())


def test_weights_of_edges_stay_with_their_edges():
    ends = torch.tensor([[0, 2, 1], [1, 0, 2]])
    weights = torch.tensor([0.5, 2.0, 3.0])
    rows = Adjacency.from_edges(*ends, shape=(3, 3), values=weights)
    data = unalike.pyg.dataset(Graph.build(rows, directed=True))
    found = dict(zip(pairs(data.edge_index), data.edge_weight.tolist(), strict=True))
    assert found == {(0, 1): 0.5, (1, 2): 3.0, (2, 0): 2.0}
    assert "edge_weight" not in unalike.pyg.dataset(HAND_DRAWN["path"])


def test_a_round_trip_gives_the_same_graph():
    graph = suiting(nodes=50, directed=True)
    again = Graph.from_pyg(unalike.pyg.dataset(graph))
    assert torch.equal(again.adjacency.to_dense(), graph.adjacency.to_dense())
    assert torch.equal(again.labels, graph.labels)


def test_prepared_graphs_are_those_of_the_methods(tmp_path):
    directed = unalike.pyg.dataset("chameleon-twin", root=tmp_path)
    undirected = unalike.pyg.dataset("chameleon-twin", prepared=True, root=tmp_path)
    assert not directed.is_undirected()
    assert undirected.is_undirected()
    assert undirected.num_edges > directed.num_edges


def test_a_real_dataset_names_its_origin(data):
    texas = unalike.pyg.dataset("texas", root=data)
    assert texas.train_mask.shape == (183, 10)
    assert "Pei et al. 2020" in texas.citation
    assert texas.licence == unalike.DATASETS["texas"].licence


def test_without_pytorch_geometric_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(UserError, match=r"pip install 'unalike\[pyg\]'"):
        unalike.pyg.dataset(drawn([(0, 1)], 2))
