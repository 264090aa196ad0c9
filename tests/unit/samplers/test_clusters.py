"""Clusters: balanced, sensible, found once and kept on disk."""

import sys
from itertools import chain
from weakref import ref

import numpy as np
import pytest
import torch
from graphs import drawn, suiting

from unalike import Adjacency, Graph, UserError
from unalike.samplers.clusters import ClusterSampler, partition


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where partitions are kept."""
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))
    return tmp_path / "partitions"


def grid(side):
    """A square grid, both ways."""
    ids = torch.arange(side * side).view(side, side)
    source = torch.cat([ids[:, :-1].flatten(), ids[:-1].flatten()])
    target = torch.cat([ids[:, 1:].flatten(), ids[1:].flatten()])
    return Graph.from_edges(source, target, num_nodes=side * side)


def copied(adjacency):
    """The same rows, of which nothing is remembered."""
    return Adjacency(adjacency.indptr, adjacency.indices, adjacency.num_cols)


@pytest.mark.parametrize("parts", [1, 4, 20])
def test_parts_are_of_like_size(parts):
    rows = grid(60).adjacency
    sizes = partition(rows, parts).bincount(minlength=parts)
    assert len(sizes) == parts
    assert int(sizes.max()) <= 1.03 * 3600 / parts


def test_few_edges_are_cut():
    rows = grid(60).adjacency
    part = partition(rows, 9)
    cut = part[rows.row_indices] != part[rows.indices.long()]
    assert int(cut.sum()) / 2 < 1.5 * 4 * 60


@pytest.mark.parametrize("pairs", [[(0, 1), (2, 3)], [(1, 0), (3, 2), (3, 3)]])
def test_direction_and_loops_do_not_matter(pairs):
    part = partition(drawn(pairs, 4, directed=True).adjacency, 2)
    assert part[0] == part[1] != part[2] == part[3]


@pytest.mark.parametrize("nodes", [1, 3, 5, 8])
def test_as_many_parts_as_nodes_or_more(nodes):
    part = partition(drawn([], nodes).adjacency, 5)
    assert len(part) == nodes
    assert len(part.unique()) == min(nodes, 5)


def test_a_partition_is_found_once(folder):
    rows = suiting(nodes=100).adjacency
    found = partition(rows, 4)
    [path] = folder.glob("*.npy")
    assert path.name.endswith("-4.npy")
    np.save(path, np.zeros(100, np.int32))
    assert torch.equal(partition(rows, 4), found)
    assert not partition(copied(rows), 4).any()
    assert partition(copied(rows), 3).any()
    assert partition(suiting(nodes=100, seed=1).adjacency, 4).any()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_bytes(b"no array"),
        lambda path: np.save(path, np.zeros(7, np.int32)),
        lambda path: np.save(path, np.full(100, 4, np.int32)),
        lambda path: np.save(path, np.full(100, -1, np.int32)),
        lambda path: np.save(path, np.zeros(100)),
        lambda path: np.save(path, np.full(100, None), allow_pickle=True),
    ],
)
def test_a_damaged_file_is_made_again(folder, damage):
    rows = suiting(nodes=100).adjacency
    found = partition(rows, 4)
    [path] = folder.glob("*.npy")
    before = path.read_bytes()
    damage(path)
    assert torch.equal(partition(copied(rows), 4), found)
    assert path.read_bytes() == before


def test_nothing_else_is_left_behind(folder):
    partition(suiting(nodes=100).adjacency, 4)
    [path] = folder.glob("*.npy")
    assert {one.name for one in folder.iterdir()} == {path.name, f".{path.name}.lock"}


def test_where_data_is_read_only_the_cache_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir(mode=0o555)
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path / "data"))
    partition(suiting(nodes=100).adjacency, 4)
    assert list((tmp_path / "cache/unalike/partitions").glob("*-4.npy"))


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(UserError, match=r"pip install 'unalike\[clusters\]'"):
        partition(suiting(nodes=100).adjacency, 4)


def test_a_kept_partition_needs_no_package(monkeypatch):
    rows = suiting(nodes=100).adjacency
    found = partition(rows, 4)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert torch.equal(partition(copied(rows), 4), found)


def test_a_partition_is_forgotten_with_its_graph():
    rows = suiting(nodes=100).adjacency
    cached = ref(partition(rows, 4))
    assert cached() is not None
    del rows
    assert cached() is None


@pytest.mark.parametrize(("at_once", "sizes"), [(1, [1] * 7), (3, [3, 3, 1])])
def test_a_batch_is_a_group_of_clusters(at_once, sizes):
    graph = grid(20)
    part = partition(graph.adjacency, 7)
    batching = ClusterSampler(parts=7, at_once=at_once)
    generator = torch.Generator().manual_seed(0)
    batches = list(batching.epoch(graph, torch.arange(400), generator))
    groups = [part[batch.graph.ids].unique().tolist() for batch in batches]
    assert [len(group) for group in groups] == sizes
    assert sorted(chain(*groups)) == list(range(7))
    assert sum(batch.graph.num_nodes for batch in batches) == 400
