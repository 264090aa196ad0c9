"""Rows read from files: those of the mapped graph, within a bound."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import drawn, suiting
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import Adjacency, Graph, UserError, open_graph, save_graph
from unalike.reader import Reader

KINDS = ["dense", "half", "sparse", "one-hot", "none"]


def assert_same(found: Graph, wanted: Graph):
    """The same numbers of the same kinds."""
    for part in ("adjacency", "features"):
        one, other = getattr(found, part), getattr(wanted, part)
        if isinstance(other, Adjacency):
            assert one.columns.dtype == other.columns.dtype
            assert torch.equal(one.starts, other.starts)
            assert (one.values is None) == (other.values is None)
            one, other = one.to_dense(), other.to_dense()
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    assert torch.equal(found.labels, wanted.labels)
    assert torch.equal(found.ids, wanted.ids)
    assert (found.num_classes, found.directed) == (wanted.num_classes, wanted.directed)


@pytest.fixture(scope="module", params=KINDS)
def stored(request, tmp_path_factory):
    graph = suiting(nodes=40, directed=True, features=request.param)
    return save_graph(tmp_path_factory.mktemp("reader") / "graph", graph)


@settings(deadline=None)
@given(st.lists(st.integers(-40, 39), max_size=60))
def test_rows_are_those_of_the_graph(stored, ids):
    ids = torch.tensor(ids, dtype=torch.int64)
    wanted = stored.graph.rows(ids % 40)
    found = Reader(stored).rows(ids)
    assert_same(found, Graph(**{**vars(wanted), "parent_ids": ids}))


def test_weights_are_read(tmp_path):
    rows = Adjacency.from_edges(
        torch.tensor([0, 0, 2]),
        torch.tensor([1, 2, 0]),
        shape=(3, 3),
        values=torch.tensor([0.5, 2, 3]),
    )
    stored = save_graph(tmp_path / "graph", Graph.build(rows, directed=True))
    ids = torch.tensor([2, 0, 2, 1])
    assert_same(Reader(stored).rows(ids), stored.graph.rows(ids))


def test_a_graph_without_edges_has_rows(tmp_path):
    stored = save_graph(tmp_path / "graph", drawn([], 3, features=0))
    ids = torch.tensor([1, 1])
    assert_same(Reader(stored).rows(ids), stored.graph.rows(ids))


@pytest.mark.parametrize("wrong", [40, -41])
def test_rows_that_are_not_there(stored, wrong):
    reader = Reader(stored)
    for part in (reader._adjacency, reader._features):
        with pytest.raises(IndexError):
            part.rows(torch.tensor([wrong]))


def test_a_file_that_was_cut_off_is_named(tmp_path):
    stored = save_graph(tmp_path / "graph", suiting(nodes=40))
    reader = Reader(stored)
    reader.rows(torch.tensor([1]))
    path = stored.folder / "columns.npy"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 8)
    with pytest.raises(UserError, match=r"columns\.npy cannot be read where 1 rows"):
        reader.rows(torch.arange(40))


@settings(deadline=None)
@given(st.integers(1, 3000), st.lists(st.integers(0, 39), max_size=60))
def test_pieces_keep_to_the_bound(stored, most, ids):
    ids = torch.tensor(ids, dtype=torch.int64)
    reader = Reader(stored)
    pieces = list(reader.pieces(ids, most))
    assert [*map(int, torch.cat([ids[:0], *pieces]))] == ids.tolist()
    for piece in pieces:
        assert size_of(stored, piece) <= most or len(piece) == 1
    for piece, after in pairwise(pieces):
        assert size_of(stored, torch.cat([piece, after[:1]])) > most


def size_of(stored, ids):
    """The bytes of the entries and features of some nodes."""
    cut = stored.graph.rows(ids)
    parts = [cut.adjacency.columns]
    if isinstance(cut.features, Adjacency):
        parts += [cut.features.columns, cut.features.values]
    else:
        parts += [cut.features]
    return sum(part.nbytes for part in parts if part is not None)


def resident_mb(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    (told,) = (line for line in lines if line.startswith(kind))
    return int(told.split()[1]) / 1024


def test_reading_maps_nothing(tmp_path):
    nodes, width = 40_000, 500
    graph = Graph.build(
        Adjacency.from_edges(
            torch.arange(nodes), torch.arange(nodes).flip(0), shape=(nodes, nodes)
        ),
        features=torch.from_numpy(np.ones((nodes, width), np.float16)),
    )
    save_graph(tmp_path / "graph", graph)
    del graph
    reader = Reader(open_graph(tmp_path / "graph"))
    ids = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))
    reader.rows(ids[:1])
    before = resident_mb("RssFile")
    for piece in reader.pieces(ids, 1 << 20):
        reader.rows(piece)
    assert resident_mb("RssFile") - before < 4
