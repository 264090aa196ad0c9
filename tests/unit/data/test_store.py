"""Stored graphs: everything comes back, damage is named, nothing half is left."""

import json
import os
import shutil
import signal
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pytest
import torch
from forked_processes import child
from graphs import HAND_DRAWN, suiting

from unalike import (
    METRICS,
    Adjacency,
    UserError,
    open_graph,
    random_splits,
    save_graph,
    verify_graph,
)
from unalike.data.store import atomic_graph_writer

ARRAYS = ("starts", "columns", "features", "labels", "splits", "names")


def assert_rows(found, wanted):
    assert found.shape == wanted.shape
    for part in ("indptr", "indices", "values"):
        one, other = getattr(found, part), getattr(wanted, part)
        assert (one is None) == (other is None)
        if other is not None:
            assert one.dtype == other.dtype
            assert torch.equal(one, other)


def assert_same(found, wanted):
    assert_rows(found.adjacency, wanted.adjacency)
    if isinstance(wanted.features, Adjacency):
        assert_rows(found.features, wanted.features)
    else:
        assert found.features.dtype == wanted.features.dtype
        assert torch.equal(found.features, wanted.features)
    assert torch.equal(found.labels, wanted.labels)
    assert (found.num_classes, found.directed) == (wanted.num_classes, wanted.directed)


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=40)
    return save_graph(
        tmp_path / "graph",
        graph,
        splits=random_splits(graph.labels, count=2),
        names=pa.array(np.arange(40) * 7),
    )


@pytest.mark.parametrize("name", HAND_DRAWN)
def test_drawings_come_back(tmp_path, name):
    save_graph(tmp_path / "graph", HAND_DRAWN[name])
    assert_same(verify_graph(tmp_path / "graph").graph, HAND_DRAWN[name])


@pytest.mark.parametrize("features", ["dense", "half", "sparse", "one-hot", "none"])
@pytest.mark.parametrize("directed", [False, True])
def test_every_kind_of_features_comes_back(tmp_path, features, directed):
    graph = suiting(nodes=50, features=features, directed=directed)
    save_graph(tmp_path / "graph", graph)
    assert_same(verify_graph(tmp_path / "graph").load(), graph)


def test_weights_come_back(tmp_path):
    weights = Adjacency.from_edges(
        torch.tensor([0, 1]),
        torch.tensor([1, 0]),
        shape=(2, 2),
        values=torch.tensor([0.1, -3.0]),
    )
    graph = HAND_DRAWN["path"].build(weights, directed=True)
    assert_same(save_graph(tmp_path / "graph", graph).graph, graph)


def test_splits_metric_and_facts_come_back(tmp_path):
    graph = suiting(nodes=50)
    splits = random_splits(graph.labels, count=3)
    stored = save_graph(
        tmp_path / "graph",
        graph,
        splits=splits,
        metric=METRICS["roc-auc"],
        about={"name": "likes", "class_names": ["Katze", "犬"]},
    )
    assert (stored.name, stored.metric) == ("likes", METRICS["roc-auc"])
    assert stored.metadata["class_names"] == ["Katze", "犬"]
    assert stored.metadata["num_edges"] == graph.num_edges
    assert len(stored.splits()) == 3
    for found, wanted in zip(stored.splits(), splits, strict=True):
        for part in ("train", "valid", "test"):
            assert torch.equal(getattr(found, part), getattr(wanted, part).sort()[0])


def test_a_folder_without_a_name_is_called_as_it_is(stored):
    assert stored.name == "graph"


@pytest.mark.parametrize(
    "names",
    [
        pa.array([2**40, -5, 0]),
        pa.array(["a", "", "ä 犬"]),
        pa.array(["left out", "a", "b", "c", "too"])[1:4],
        pa.array([9, 1, 2, 3, 9])[1:4],
    ],
    ids=["numbers", "strings", "some strings", "some numbers"],
)
def test_names_come_back(tmp_path, names):
    stored = save_graph(tmp_path / "graph", HAND_DRAWN["no edges"], names=names)
    assert stored.names.to_pylist() == names.to_pylist()


def test_nodes_without_names_are_called_by_their_number(tmp_path):
    stored = save_graph(tmp_path / "graph", HAND_DRAWN["no edges"])
    assert stored.names.to_pylist() == [0, 1, 2]


def test_opening_reads_no_array(stored):
    for path in stored.folder.glob("*.npy"):
        path.unlink()
    assert open_graph(stored.folder).metadata == stored.metadata


def test_arrays_are_mapped_not_read(stored):
    features = stored.graph.features
    with (stored.folder / "features.npy").open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(np.float32(1234.5).tobytes())
    assert float(features[-1, -1]) == 1234.5


@pytest.mark.parametrize("name", ARRAYS)
def test_damage_is_found_and_named(stored, name):
    path = stored.folder / f"{name}.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"'{name}' is damaged"):
        verify_graph(stored.folder)


@pytest.mark.parametrize("name", ARRAYS)
def test_damaged_headers_are_found_and_named(stored, name):
    path = stored.folder / f"{name}.npy"
    content = bytearray(path.read_bytes())
    content[:6] = b"\0" * 6
    path.write_bytes(content)
    for opened in (verify_graph, lambda folder: open_graph(folder).array(name)):
        with pytest.raises(UserError, match=f"'{name}' is damaged"):
            opened(stored.folder)


@pytest.mark.parametrize("name", ARRAYS)
def test_truncated_arrays_are_named(stored, name):
    path = stored.folder / f"{name}.npy"
    os.truncate(path, path.stat().st_size - 1)
    for opened in (verify_graph, lambda folder: open_graph(folder).array(name)):
        with pytest.raises(UserError, match=f"'{name}' has .* bytes instead of"):
            opened(stored.folder)


@pytest.mark.parametrize("name", ARRAYS)
def test_missing_arrays_are_named(stored, name):
    (stored.folder / f"{name}.npy").unlink()
    with pytest.raises(UserError, match=f"'{name}' is missing"):
        verify_graph(stored.folder)


def test_swapped_arrays_are_named(stored):
    labels, names = (stored.folder / f"{name}.npy" for name in ("labels", "names"))
    swap = stored.folder / "swap"
    labels.rename(swap)
    names.rename(labels)
    swap.rename(names)
    with pytest.raises(UserError, match="'labels' is damaged"):
        verify_graph(stored.folder)


def test_an_array_of_another_kind_is_not_taken(stored):
    labels = stored.folder / "labels.npy"
    np.save(labels, np.load(labels).view(np.float64))
    with pytest.raises(UserError, match="'labels' differs from graph"):
        stored.array("labels")


@pytest.mark.parametrize("found", [0, 2, None])
def test_other_formats_are_refused(stored, found):
    path = stored.folder / "graph.json"
    path.write_text(json.dumps({**stored.metadata, "format": found}))
    with pytest.raises(UserError, match=f"the format {found}; this unalike reads 1"):
        open_graph(stored.folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '"graph"', "\x80"])
def test_descriptions_that_are_none_are_refused(stored, text):
    (stored.folder / "graph.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=r"graph\.json"):
        open_graph(stored.folder)


def test_a_folder_that_is_no_graph(tmp_path):
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match=r"is not a stored graph.*graph\.json"):
            open_graph(folder)


def test_an_existing_folder_is_not_touched(stored):
    before = sorted(path.name for path in stored.folder.iterdir())
    with pytest.raises(UserError, match="exists already"):
        save_graph(stored.folder, HAND_DRAWN["path"])
    assert sorted(path.name for path in stored.folder.iterdir()) == before
    verify_graph(stored.folder)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_what_goes_wrong_leaves_nothing(tmp_path, error):
    with (
        pytest.raises(error),
        atomic_graph_writer(tmp_path / "new" / "graph") as writer,
    ):
        writer.add("labels", np.arange(3))
        writer.scratch("notes").write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported(tmp_path):
    with (
        pytest.raises(UserError, match=r"Cannot write .*graph: No space left"),
        atomic_graph_writer(tmp_path / "graph"),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def kill_while_writing(folder):
    with atomic_graph_writer(folder) as writer:
        writer.add("labels", np.arange(1000))
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_a_killed_write_is_no_graph_and_is_removed(tmp_path):
    folder = tmp_path / "graph"
    process = child(kill_while_writing, folder)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not folder.exists()
    assert len(list(tmp_path.iterdir())) == 1
    save_graph(folder, HAND_DRAWN["path"])
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_folder_that_another_process_writes_is_left_alone(tmp_path):
    with atomic_graph_writer(tmp_path / "graph") as writer:
        writer.add("labels", np.arange(3))
        other = writer.folder.with_name(f".graph.{os.getppid()}.partial")
        shutil.copytree(writer.folder, other)
    save_graph(tmp_path / "graph", HAND_DRAWN["path"])
    assert other.exists()


def test_an_undirected_stored_graph_is_not_transposed(tmp_path):
    stored = save_graph(tmp_path / "g", HAND_DRAWN["path"])
    rows = open_graph(stored.folder).graph.adjacency
    assert rows._symmetric
    assert rows.T is rows
    directed = save_graph(tmp_path / "d", HAND_DRAWN["directed"])
    assert not open_graph(directed.folder).graph.adjacency.is_symmetric


def test_a_directed_adjacency_is_not_saved_as_undirected(tmp_path):
    graph = replace(HAND_DRAWN["directed"], directed=False)
    with pytest.raises(UserError, match="set directed=True"):
        save_graph(tmp_path / "g", graph)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def written(tmp_path):
    graph = suiting(nodes=30, classes=3)
    names = pa.array([f"n{i}" for i in range(30)])
    splits = random_splits(graph.labels, count=2)
    save_graph(tmp_path / "graph", graph, splits=splits, names=names)
    return tmp_path / "graph"


def everything(folder):
    stored = open_graph(folder)
    stored.graph.adjacency.T.degrees.sum()
    return stored.graph, stored.splits(), stored.names


def test_a_changed_array_is_noticed_when_it_is_used(written):
    everything(written)
    for file in written.glob("*.npy"):
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(UserError, match="unalike import --verify"):
            everything(written)
        file.write_bytes(content)
    everything(written)


def test_a_copied_graph_is_checked_again(written, tmp_path):
    shutil.copytree(written, tmp_path / "copy")
    file = tmp_path / "copy" / "columns.npy"
    content, status = file.read_bytes(), file.stat()
    file.write_bytes(content[:-4] + b"\xff\xff\xff\x7f")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(UserError, match="columns"):
        everything(tmp_path / "copy")


OUT_OF_RANGE = {
    "columns": (-1, 99),
    "starts": (3, -5),
    "labels": (0, 7),
    "splits": ((0, 0), 9),
    "names_offsets": (2, 10**12),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_values_out_of_range_are_refused_though_the_hash_is_right(written, name):
    position, value = OUT_OF_RANGE[name]
    array = np.load(written / f"{name}.npy")
    array[position] = value
    np.save(written / f"{name}.npy", array)
    path = written / "graph.json"
    metadata = json.loads(path.read_text("utf-8"))
    digest = sha256((written / f"{name}.npy").read_bytes()).hexdigest()
    metadata["arrays"][name]["sha256"] = digest
    del metadata["sha256"]
    path.write_text(json.dumps(metadata), "utf-8")
    for use in (everything, verify_graph):
        with pytest.raises(UserError, match=f"'{name}' is damaged"):
            use(written)


@pytest.mark.parametrize("key", ["num_nodes", "num_classes", "directed", "metric"])
@pytest.mark.parametrize("value", [None, -1, "x", [], 1e300])
def test_a_wrong_value_in_graph_json_is_an_error(written, key, value):
    path = written / "graph.json"
    metadata = json.loads(path.read_text("utf-8")) | {key: value}
    del metadata["sha256"]
    path.write_text(json.dumps(metadata), "utf-8")
    for use in (everything, verify_graph):
        with pytest.raises(UserError, match=rf"graph\.json is damaged.*'{key}'"):
            use(written)


def test_a_changed_name_in_graph_json_is_noticed(written):
    path = written / "graph.json"
    text = path.read_text("utf-8")
    path.write_text(text.replace('"num_loops": 0', '"num_loops": 1'), "utf-8")
    with pytest.raises(UserError, match="damaged or was changed"):
        open_graph(written)
