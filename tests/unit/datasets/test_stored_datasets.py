"""Stored graphs of raw files: converted once, again after changes, atomically."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from forked_processes import child

from unalike import UserError, verify_graph
from unalike.data import store
from unalike.datasets import base, find, load
from unalike.system import data_root


def write_graph(root: Path, nodes: int = 3) -> Path:
    path = root / "heterophilous" / "tolokers.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = np.arange(nodes)
    train, valid, test = (np.stack([ids % 3 == part]) for part in range(3))
    np.savez(
        path,
        node_features=np.ones((nodes, 2), np.float32),
        node_labels=ids % 2,
        edges=np.stack([ids, (ids + 1) % nodes], 1),
        train_masks=train,
        val_masks=valid,
        test_masks=test,
    )
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "unalike"


def test_the_second_load_maps_the_stored_graph(tmp_path: Path):
    write_graph(tmp_path)
    folder = find("tolokers", tmp_path).open_stored().folder
    assert folder == tmp_path / "stored" / "tolokers"
    before = (folder / "graph.json").stat().st_mtime_ns
    assert find("tolokers", tmp_path).load().num_nodes == 3
    assert (folder / "graph.json").stat().st_mtime_ns == before
    verify_graph(folder)


def test_changed_raw_files_are_converted_again(tmp_path: Path):
    write_graph(tmp_path)
    assert find("tolokers", tmp_path).load().num_nodes == 3
    write_graph(tmp_path, nodes=5)
    assert find("tolokers", tmp_path).load().num_nodes == 5
    assert not list((tmp_path / "stored").glob("*.stale"))


def test_a_graph_of_an_older_reader_is_converted_again(tmp_path: Path, monkeypatch):
    write_graph(tmp_path)
    folder = find("tolokers", tmp_path).open_stored().folder
    monkeypatch.setattr(base, "READER_VERSION", base.READER_VERSION + 1)
    assert find("tolokers", tmp_path).cached() is None
    find("tolokers", tmp_path).load()
    metadata = json.loads((folder / "graph.json").read_text())
    assert metadata["provenance"]["reader"] == base.READER_VERSION


def test_the_stored_graph_loads_without_raw_files(tmp_path: Path):
    raw = write_graph(tmp_path)
    find("tolokers", tmp_path).load()
    raw.unlink()
    assert find("tolokers", tmp_path).load().num_nodes == 3


def test_a_damaged_stored_graph_is_converted_again(tmp_path: Path):
    write_graph(tmp_path)
    folder = find("tolokers", tmp_path).open_stored().folder
    (folder / "graph.json").write_text("{")
    assert find("tolokers", tmp_path).load().num_nodes == 3


def test_graphs_of_a_read_only_root_are_stored_in_the_cache(
    tmp_path: Path, cache: Path
):
    one, two = tmp_path / "one", tmp_path / "two"
    write_graph(one)
    write_graph(two, nodes=4)
    for root in (one, two):
        root.chmod(0o555)
    try:
        graphs = [find("tolokers", root).load().num_nodes for root in (one, two)]
        again = [find("tolokers", root).load().num_nodes for root in (one, two)]
    finally:
        for root in (one, two):
            root.chmod(0o755)
    assert graphs == again == [3, 4]
    assert not (one / "stored").exists()
    assert len(list((cache / "stored").glob("*/tolokers/graph.json"))) == 2


def test_the_data_root_is_the_argument_the_environment_or_the_cache(
    tmp_path: Path, monkeypatch, cache: Path
):
    monkeypatch.delenv("UNALIKE_DATA", raising=False)
    assert data_root() == cache / "data"
    monkeypatch.setenv("UNALIKE_DATA", "")
    assert data_root() == cache / "data"
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path / "environment"))
    assert data_root() == tmp_path / "environment"
    assert data_root(tmp_path / "argument") == tmp_path / "argument"


def test_a_failed_conversion_leaves_no_files(tmp_path: Path):
    write_graph(tmp_path).write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"tolokers\.npz cannot be read"):
        find("tolokers", tmp_path).load()
    assert find("tolokers", tmp_path).cached() is None
    assert not list((tmp_path / "stored").glob("tolokers*"))


def test_dense_features_are_written_in_blocks(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(store, "WRITE_BYTES", 16)
    write_graph(tmp_path, nodes=11)
    graph = find("tolokers", tmp_path).load()
    assert torch.equal(graph.features, torch.ones(11, 2))


def test_two_processes_can_convert_the_same_dataset(tmp_path: Path):
    write_graph(tmp_path, nodes=30_000)
    both = [child(load, "tolokers", tmp_path) for _ in range(2)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    verify_graph(tmp_path / "stored" / "tolokers")


def test_threads_can_convert_the_same_dataset(tmp_path: Path):
    write_graph(tmp_path, nodes=1_000)
    with ThreadPoolExecutor(4) as pool:
        loads = pool.map(
            lambda _: find("tolokers", tmp_path).load().num_nodes, range(4)
        )
    assert list(loads) == [1_000] * 4


def kill_conversions(root: Path, times: int, seed: int) -> None:
    """Kill converting processes at random times; the folder is complete or absent."""
    rng = np.random.default_rng(seed)
    raw = write_graph(root, nodes=300_000)
    folder = root / "stored" / "tolokers"
    for _ in range(times):
        process = child(load, "tolokers", root)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.join()
        if folder.exists():
            assert verify_graph(folder).load().num_nodes == 300_000
            os.utime(raw)
    assert find("tolokers", root).load().num_nodes == 300_000
    assert [path.name for path in folder.parent.glob(".*") if path.is_dir()] == []


def test_killed_conversions_leave_no_damaged_graph(tmp_path: Path):
    kill_conversions(tmp_path, times=5, seed=0)


@pytest.mark.slow
def test_many_killed_conversions_leave_no_damaged_graph(tmp_path: Path):
    kill_conversions(tmp_path, times=20, seed=1)
