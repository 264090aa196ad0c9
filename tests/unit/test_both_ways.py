"""Undirected forms of stored graphs: the same as in memory, mapped, made once."""

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import scipy.sparse
import torch
from children import child
from graphs import HAND_DRAWN, drawn, suiting
from hypothesis import given
from hypothesis import strategies as st

from unalike import Graph, UserError, open_graph, save_graph, verify_graph
from unalike.data.store import atomic_graph_writer
from unalike.datasets import find
from unalike.datasets import undirected as undirected_copies
from unalike.datasets.twins import TWINS
from unalike.datasets.undirected import cached_undirected, undirected_graph
from unalike.progress import NO_PROGRESS

ARRAYS = ("features", "labels", "splits")


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """Every graph is large, and taken in several pieces; the cache is empty."""
    monkeypatch.setattr(undirected_copies, "MAX_IN_MEMORY_EDGES", 0)
    monkeypatch.setattr(undirected_copies, "MAX_BLOCK_NNZ", 7)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def assert_same(found: Graph, wanted: Graph):
    for part in ("starts", "columns"):
        one, other = (getattr(graph.adjacency, part) for graph in (found, wanted))
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    assert torch.equal(found.features, wanted.features)
    assert torch.equal(found.labels, wanted.labels)
    assert (found.directed, found.num_classes) == (False, wanted.num_classes)
    assert found.num_edges == wanted.num_edges


@pytest.mark.parametrize("features", ["half", "none"])
def test_the_form_is_the_symmetric_graph_and_a_whole_folder(tmp_path, features):
    graph = suiting(nodes=60, directed=True, features=features)
    found = cached_undirected(save_graph(tmp_path / "graph", graph), "graph", tmp_path)
    assert found.folder == tmp_path / "stored" / "graph-both-ways"
    assert_same(verify_graph(found.folder).graph, graph.to_undirected())
    told, wanted = found.about, graph.to_undirected()
    assert (told["num_edges"], told["num_loops"]) == (wanted.num_edges, 0)


pairs = st.integers(1, 9).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.lists(st.tuples(*2 * [st.integers(0, nodes - 1)]), min_size=1),
        st.integers(1, 30),
    )
)


@given(pairs, st.sampled_from([torch.int32, torch.int64]), st.integers(1, 3))
def test_any_rows_and_their_mirror_images(graph, kind, threads):
    nodes, ends, at_once = graph
    rows = drawn(ends, nodes, directed=True).adjacency
    rows = type(rows)(rows.starts, rows.columns.to(kind), nodes)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(undirected_copies, "MAX_BLOCK_NNZ", at_once)
        patch.setattr(torch, "get_num_threads", lambda: threads)
        with atomic_graph_writer(Path(folder) / "rows") as draft:
            entries, loops = undirected_copies.write_undirected(
                draft, rows, NO_PROGRESS
            )
            found = [
                np.load(draft.folder / f"{name}.npy") for name in ("starts", "columns")
            ]
    wanted = rows.to_undirected()
    assert found[0].tolist() == wanted.starts.tolist()
    assert found[1].tolist() == wanted.columns.tolist()
    assert found[1].dtype == rows.columns.numpy().dtype
    assert (entries, loops) == (len(found[1]), int(wanted.diagonal.sum()))


def test_twins_and_datasets_give_the_same_both_ways(tmp_path, monkeypatch):
    twin = TWINS["genius-twin"].scaled(500).at(tmp_path)
    streamed = twin.prepared()
    monkeypatch.setattr(undirected_copies, "MAX_IN_MEMORY_EDGES", 10**9)
    assert_same(streamed, twin.prepared())
    assert len(list((tmp_path / "stored").glob("*-both-ways"))) == 1


def test_real_graphs_give_the_same_both_ways(data, monkeypatch):
    monkeypatch.setattr(undirected_copies, "MAX_BLOCK_NNZ", 50_000)
    streamed = find("deezer-europe", data).prepared()
    monkeypatch.setattr(undirected_copies, "MAX_IN_MEMORY_EDGES", 10**9)
    wanted = find("deezer-europe", data).prepared()
    assert torch.equal(streamed.adjacency.columns, wanted.adjacency.columns)
    assert torch.equal(streamed.adjacency.starts, wanted.adjacency.starts)


def test_what_is_small_undirected_or_weighted_is_done_in_memory(tmp_path, monkeypatch):
    undirected = save_graph(tmp_path / "undirected", HAND_DRAWN["star"])
    assert undirected_graph(undirected, "undirected", tmp_path) is undirected.graph
    weights = scipy.sparse.csr_array(np.array([[0, 2.5], [0, 0]]))
    weighted = save_graph(tmp_path / "weighted", Graph.from_scipy(weights))
    assert not undirected_graph(weighted, "weighted", tmp_path).directed
    monkeypatch.setattr(undirected_copies, "MAX_IN_MEMORY_EDGES", 4)
    small = save_graph(tmp_path / "small", HAND_DRAWN["directed"])
    assert not undirected_graph(small, "small", tmp_path).directed
    assert not (tmp_path / "stored").exists()


def test_features_and_labels_are_those_of_the_directed_graph(tmp_path):
    stored = save_graph(tmp_path / "graph", suiting(nodes=40, directed=True))
    found = cached_undirected(stored, "graph", tmp_path)
    for name in ARRAYS:
        one, other = (each.folder / f"{name}.npy" for each in (stored, found))
        assert one.samefile(other)


def test_features_may_lie_on_another_disk(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("another disk")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    graph = suiting(nodes=40, directed=True)
    found = cached_undirected(save_graph(tmp_path / "graph", graph), "graph", tmp_path)
    assert (found.folder / "features.npy").is_symlink()
    assert_same(verify_graph(found.folder).graph, graph.to_undirected())


def test_features_and_columns_are_mapped_not_read(tmp_path):
    stored = save_graph(
        tmp_path / "graph", suiting(nodes=40, directed=True, features="half")
    )
    graph = undirected_graph(stored, "graph", tmp_path)
    folder = tmp_path / "stored" / "graph-both-ways"
    for name, tensor in {
        "features": graph.features.view(torch.int16),
        "columns": graph.adjacency.columns,
    }.items():
        written = np.load(folder / f"{name}.npy", mmap_mode="r+")
        written.view(f"i{written.itemsize}").flat[0] = 77
        assert int(tensor.flatten()[0]) == 77


def test_a_form_is_made_once_and_again_for_other_edges(tmp_path):
    def form(seed):
        graph = suiting(nodes=40, directed=True, seed=seed)
        folder = tmp_path / f"graph-{seed}"
        if not folder.exists():
            save_graph(folder, graph)
        return cached_undirected(
            open_graph(folder), "graph", tmp_path
        ), graph.to_undirected()

    def made(stored):
        return (stored.folder / "graph.json").stat().st_ino

    (first, _), (again, _) = form(0), form(0)
    assert made(first) == made(again)
    other, wanted = form(1)
    assert_same(other.graph, wanted)
    left = {path.name for path in (tmp_path / "stored").iterdir()}
    assert left == {"graph-both-ways", ".graph-both-ways.lock"}


def test_a_damaged_form_is_made_again(tmp_path):
    graph = suiting(nodes=40, directed=True)
    stored = save_graph(tmp_path / "graph", graph)
    (cached_undirected(stored, "graph", tmp_path).folder / "graph.json").write_text("{")
    assert_same(
        cached_undirected(stored, "graph", tmp_path).graph, graph.to_undirected()
    )


class Failing:
    """A listener whose disk is full when the first piece is done."""

    def stage(self, what, total, unit):
        pass

    def advance(self, amount, note=""):
        raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_nothing(tmp_path):
    stored = save_graph(tmp_path / "graph", suiting(nodes=40, directed=True))
    with pytest.raises(UserError, match="No space left"):
        cached_undirected(stored, "graph", tmp_path, progress=Failing())
    left = [path.name for path in (tmp_path / "stored").iterdir()]
    assert left == [".graph-both-ways.lock"]


def make_slowly(folder: Path, root: Path) -> None:
    undirected_copies.MAX_BLOCK_NNZ = 20_000
    cached_undirected(open_graph(folder), "graph", root)


def test_a_killed_making_leaves_nothing(tmp_path, monkeypatch):
    graph = suiting(nodes=30_000, directed=True)
    stored = save_graph(tmp_path / "graph", graph)
    place = tmp_path / "stored" / "graph-both-ways"
    process = child(make_slowly, stored.folder, tmp_path)
    began = time.monotonic()
    while not list(tmp_path.glob("stored/.*.draft/columns.npy")):
        assert time.monotonic() - began < 60
        time.sleep(0.005)
    os.kill(process.pid, 9)
    process.join()
    assert not place.exists()
    monkeypatch.setattr(undirected_copies, "MAX_BLOCK_NNZ", 1 << 20)
    assert_same(
        cached_undirected(stored, "graph", tmp_path).graph, graph.to_undirected()
    )
    hidden = [path for path in place.parent.glob(".*") if path.is_dir()]
    assert hidden == []


def test_two_processes_make_one_form(tmp_path):
    stored = save_graph(tmp_path / "graph", suiting(nodes=2_000, directed=True))
    both = [child(make_slowly, stored.folder, tmp_path) for _ in range(2)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    verify_graph(tmp_path / "stored" / "graph-both-ways")
