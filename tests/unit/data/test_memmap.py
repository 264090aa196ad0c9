"""Rows read from files: those of the mapped matrix, and nothing stays mapped."""

from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import drawn, suiting
from hypothesis import given
from hypothesis import strategies as st

from unalike import Adjacency, Graph, UserError, open_graph, save_graph
from unalike.data import store
from unalike.data.store import FileBackedAdjacency


@pytest.fixture(autouse=True)
def every_graph_is_large(monkeypatch):
    monkeypatch.setattr(store, "FILE_BACKED_BYTES", 0)


def weighted():
    rows = Adjacency.from_edges(
        torch.tensor([0, 0, 2]),
        torch.tensor([1, 2, 0]),
        shape=(3, 3),
        values=torch.tensor([0.5, 2, 3]),
    )
    return Graph.build(rows, directed=True)


GRAPHS = {
    "directed": suiting(nodes=40, directed=True),
    "sparse features": suiting(nodes=40, features="sparse"),
    "weighted": weighted(),
    "no edges": drawn([], 3, features=0),
}


@pytest.fixture(scope="module", params=GRAPHS)
def pair(request, tmp_path_factory):
    graph = GRAPHS[request.param]
    folder = tmp_path_factory.mktemp("filed") / "graph"
    return graph, save_graph(folder, graph)


@given(chosen=st.lists(st.integers(0, 10**6), max_size=60))
@pytest.mark.long
def test_rows_are_those_of_the_graph(pair, chosen):
    graph, stored = pair
    ids = torch.tensor(chosen, dtype=torch.int64) % graph.num_nodes
    assert isinstance(stored.graph.adjacency, FileBackedAdjacency)
    found, wanted = stored.graph.select_rows(ids), graph.select_rows(ids)
    for part in ("adjacency", "features"):
        one, other = getattr(found, part), getattr(wanted, part)
        assert torch.equal(one.to_dense(), other.to_dense())
    assert found.adjacency.indices.dtype == wanted.adjacency.indices.dtype
    assert torch.equal(found.labels, wanted.labels)


def test_what_is_made_of_them_is_ordinary(pair):
    graph, stored = pair
    found = stored.graph.adjacency
    assert torch.equal(found.T.to_dense(), graph.adjacency.T.to_dense())
    assert type(found.to_undirected()) is Adjacency


def test_a_file_that_was_cut_off_is_named(tmp_path):
    rows = save_graph(tmp_path / "graph", suiting(nodes=40)).graph.adjacency
    rows.select_rows(torch.tensor([1]))
    path = tmp_path / "graph" / "columns.npy"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 8)
    with pytest.raises(UserError, match=r"columns\.npy: 1 rows cannot be read"):
        rows.select_rows(torch.arange(40))


def resident_mb(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    (text,) = (line for line in lines if line.startswith(kind))
    return int(text.split()[1]) / 1024


def test_reading_maps_nothing(tmp_path):
    nodes, degree = 20_000, 500
    starts = torch.arange(nodes + 1) * degree
    columns = torch.from_numpy(np.tile(np.arange(degree, dtype=np.int32), nodes))
    graph = Graph.build(Adjacency(starts, columns, nodes), directed=True)
    save_graph(tmp_path / "graph", graph)
    del graph, columns
    rows = open_graph(tmp_path / "graph").graph.adjacency
    ids = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))
    rows.select_rows(ids[:1])
    before = resident_mb("RssFile")
    for part in ids.split(100):
        rows.select_rows(part)
    assert resident_mb("RssFile") - before < 4
