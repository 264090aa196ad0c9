"""Undirected copies of stored graphs: equal to those in memory, mapped, cached."""

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import scipy.sparse
import torch
from forked_processes import child
from graphs import HAND_DRAWN, drawn, suiting
from hypothesis import given
from hypothesis import strategies as st

from unalike import Graph, UserError, open_graph, save_graph, verify_graph
from unalike.data.store import atomic_graph_writer
from unalike.datasets import find, undirected
from unalike.datasets.twins import TWINS
from unalike.datasets.undirected import cached_undirected, undirected_graph
from unalike.progress import NO_PROGRESS

ARRAYS = ("features", "labels", "splits")


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """Treat every graph as large, merge it in several blocks, start without a cache."""
    monkeypatch.setattr(undirected, "MAX_IN_MEMORY_EDGES", 0)
    monkeypatch.setattr(undirected, "MAX_BLOCK_NNZ", 7)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def assert_same(result: Graph, expected: Graph):
    for name in ("indptr", "indices"):
        one, other = (getattr(graph.adjacency, name) for graph in (result, expected))
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    assert torch.equal(result.features, expected.features)
    assert torch.equal(result.labels, expected.labels)
    assert (result.directed, result.num_classes) == (False, expected.num_classes)
    assert result.num_edges == expected.num_edges


@pytest.mark.parametrize("features", ["half", "none"])
def test_the_cached_copy_is_the_undirected_graph_in_a_valid_folder(tmp_path, features):
    graph = suiting(nodes=60, directed=True, features=features)
    result = cached_undirected(save_graph(tmp_path / "graph", graph), "graph", tmp_path)
    assert result.folder == tmp_path / "stored" / "graph-both-ways"
    assert_same(verify_graph(result.folder).graph, graph.to_undirected())
    metadata, expected = result.metadata, graph.to_undirected()
    assert (metadata["num_edges"], metadata["num_loops"]) == (expected.num_edges, 0)


pairs = st.integers(1, 9).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.lists(st.tuples(*2 * [st.integers(0, nodes - 1)]), min_size=1),
        st.integers(1, 30),
    )
)


@given(pairs, st.sampled_from([torch.int32, torch.int64]), st.integers(1, 3))
def test_out_of_core_union_equals_the_union_in_memory(graph, dtype, threads):
    nodes, edges, max_nnz = graph
    rows = drawn(edges, nodes, directed=True).adjacency
    rows = type(rows)(rows.indptr, rows.indices.to(dtype), nodes)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(undirected, "MAX_BLOCK_NNZ", max_nnz)
        patch.setattr(torch, "get_num_threads", lambda: threads)
        with atomic_graph_writer(Path(folder) / "rows") as writer:
            nnz, loops = undirected.write_undirected(writer, rows, NO_PROGRESS)
            result = [
                np.load(writer.folder / f"{name}.npy") for name in ("starts", "columns")
            ]
    expected = rows.to_undirected()
    assert result[0].tolist() == expected.indptr.tolist()
    assert result[1].tolist() == expected.indices.tolist()
    assert result[1].dtype == rows.indices.numpy().dtype
    assert (nnz, loops) == (len(result[1]), int(expected.diagonal.sum()))


def test_a_twin_is_the_same_out_of_core_and_in_memory(tmp_path, monkeypatch):
    twin = TWINS["genius-twin"].scaled(500).with_root(tmp_path)
    streamed = twin.prepared()
    monkeypatch.setattr(undirected, "MAX_IN_MEMORY_EDGES", 10**9)
    assert_same(streamed, twin.prepared())
    assert len(list((tmp_path / "stored").glob("*-both-ways"))) == 1


def test_a_real_graph_is_the_same_out_of_core_and_in_memory(data, monkeypatch):
    monkeypatch.setattr(undirected, "MAX_BLOCK_NNZ", 50_000)
    streamed = find("deezer-europe", data).prepared()
    monkeypatch.setattr(undirected, "MAX_IN_MEMORY_EDGES", 10**9)
    expected = find("deezer-europe", data).prepared()
    assert torch.equal(streamed.adjacency.indices, expected.adjacency.indices)
    assert torch.equal(streamed.adjacency.indptr, expected.adjacency.indptr)


def test_small_undirected_and_weighted_graphs_stay_in_memory(tmp_path, monkeypatch):
    star = save_graph(tmp_path / "star", HAND_DRAWN["star"])
    assert undirected_graph(star, "star", tmp_path) is star.graph
    weights = scipy.sparse.csr_array(np.array([[0, 2.5], [0, 0]]))
    weighted = save_graph(tmp_path / "weighted", Graph.from_scipy(weights))
    assert not undirected_graph(weighted, "weighted", tmp_path).directed
    monkeypatch.setattr(undirected, "MAX_IN_MEMORY_EDGES", 4)
    small = save_graph(tmp_path / "small", HAND_DRAWN["directed"])
    assert not undirected_graph(small, "small", tmp_path).directed
    assert not (tmp_path / "stored").exists()


def test_features_and_labels_are_links_to_those_of_the_directed_graph(tmp_path):
    stored = save_graph(tmp_path / "graph", suiting(nodes=40, directed=True))
    result = cached_undirected(stored, "graph", tmp_path)
    for name in ARRAYS:
        one, other = (each.folder / f"{name}.npy" for each in (stored, result))
        assert one.samefile(other)


def test_features_on_another_disk_are_symbolic_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    graph = suiting(nodes=40, directed=True)
    result = cached_undirected(save_graph(tmp_path / "graph", graph), "graph", tmp_path)
    assert (result.folder / "features.npy").is_symlink()
    assert_same(verify_graph(result.folder).graph, graph.to_undirected())


def test_features_and_indices_are_memory_mapped(tmp_path):
    stored = save_graph(
        tmp_path / "graph", suiting(nodes=40, directed=True, features="half")
    )
    graph = undirected_graph(stored, "graph", tmp_path)
    folder = tmp_path / "stored" / "graph-both-ways"
    for name, tensor in {
        "features": graph.features.view(torch.int16),
        "columns": graph.adjacency.indices,
    }.items():
        written = np.load(folder / f"{name}.npy", mmap_mode="r+")
        written.view(f"i{written.itemsize}").flat[0] = 77
        assert int(tensor.flatten()[0]) == 77


def test_a_copy_is_cached_and_made_again_for_other_edges(tmp_path):
    def copy(seed):
        graph = suiting(nodes=40, directed=True, seed=seed)
        folder = tmp_path / f"graph-{seed}"
        if not folder.exists():
            save_graph(folder, graph)
        return cached_undirected(
            open_graph(folder), "graph", tmp_path
        ), graph.to_undirected()

    def inode(stored):
        return (stored.folder / "graph.json").stat().st_ino

    (first, _), (again, _) = copy(0), copy(0)
    assert inode(first) == inode(again)
    other, expected = copy(1)
    assert_same(other.graph, expected)
    left = {path.name for path in (tmp_path / "stored").iterdir()}
    assert left == {"graph-both-ways", ".graph-both-ways.lock"}


def test_a_damaged_copy_is_made_again(tmp_path):
    graph = suiting(nodes=40, directed=True)
    stored = save_graph(tmp_path / "graph", graph)
    (cached_undirected(stored, "graph", tmp_path).folder / "graph.json").write_text("{")
    assert_same(
        cached_undirected(stored, "graph", tmp_path).graph, graph.to_undirected()
    )


class Failing:
    """A progress listener that raises a full disk after the first block."""

    def stage(self, what, total, unit):
        pass

    def advance(self, amount, note=""):
        raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_no_files(tmp_path):
    stored = save_graph(tmp_path / "graph", suiting(nodes=40, directed=True))
    with pytest.raises(UserError, match="No space left"):
        cached_undirected(stored, "graph", tmp_path, progress=Failing())
    left = [path.name for path in (tmp_path / "stored").iterdir()]
    assert left == [".graph-both-ways.lock"]


def make_slowly(folder: Path, root: Path) -> None:
    undirected.MAX_BLOCK_NNZ = 20_000
    cached_undirected(open_graph(folder), "graph", root)


def test_a_killed_process_leaves_no_files(tmp_path, monkeypatch):
    graph = suiting(nodes=30_000, directed=True)
    stored = save_graph(tmp_path / "graph", graph)
    folder = tmp_path / "stored" / "graph-both-ways"
    process = child(make_slowly, stored.folder, tmp_path)
    start = time.monotonic()
    while not list(tmp_path.glob("stored/.*.partial/columns.npy")):
        assert time.monotonic() - start < 60
        time.sleep(0.005)
    os.kill(process.pid, 9)
    process.join()
    assert not folder.exists()
    monkeypatch.setattr(undirected, "MAX_BLOCK_NNZ", 1 << 20)
    assert_same(
        cached_undirected(stored, "graph", tmp_path).graph, graph.to_undirected()
    )
    hidden = [path for path in folder.parent.glob(".*") if path.is_dir()]
    assert hidden == []


def test_two_processes_make_one_copy(tmp_path):
    stored = save_graph(tmp_path / "graph", suiting(nodes=2_000, directed=True))
    both = [child(make_slowly, stored.folder, tmp_path) for _ in range(2)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    verify_graph(tmp_path / "stored" / "graph-both-ways")
