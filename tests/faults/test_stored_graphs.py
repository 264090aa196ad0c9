"""Damaged stored graphs are refused or the same; folders that others write too."""

import contextlib
import json
import os
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pytest
from damage import damage
from graphs import graph_of_kind, suiting

import unalike
from unalike import UserError, open_graph, random_splits, save_graph
from unalike.data.store import atomic_graph_writer


def contents(folder):
    """Everything that a stored graph gives."""
    stored = open_graph(folder)
    graph = stored.graph
    numbers = (graph.adjacency.values, graph.adjacency.T.values, graph.label_values)
    return (
        [None if one is None else one.tolist() for one in numbers],
        graph.adjacency.indptr.tolist(),
        graph.adjacency.T.indices.tolist(),
        graph.features.to_dense().tolist(),
        graph.labels.tolist(),
        [split.train.tolist() for split in stored.splits()],
        stored.names and stored.names.to_pylist(),
        {name: stored.metadata[name] for name in ("num_classes", "directed", "metric")},
    )


@pytest.mark.parametrize("kind", ["dense", "sparse", "weights", "numbers"])
def test_a_damaged_graph_is_refused_or_the_same(tmp_path, kind, cases):
    folder = tmp_path / "graph"
    graph = graph_of_kind(kind)
    splits = random_splits(graph.labels, count=2)
    names = pa.array([f"n{i}" for i in range(20)])
    save_graph(folder, graph, splits=splits, names=names)
    expected, files = contents(folder), sorted(folder.iterdir())
    for rng in cases[: len(cases) // 2]:
        file = rng.choice(files)
        content = file.read_bytes()
        file.write_bytes(damage(content, rng))
        with contextlib.suppress(UserError):
            assert contents(folder) == expected, file
        with contextlib.suppress(UserError):
            unalike.verify_graph(folder)
        file.write_bytes(content)


def test_of_two_writers_the_second_gets_an_error_of_one_line(tmp_path):
    graph, folder = suiting(nodes=20), tmp_path / "graph"
    with (
        pytest.raises(UserError, match="another process wrote it meanwhile"),
        atomic_graph_writer(folder) as writer,
    ):
        writer.add("labels", graph.labels.numpy())
        hidden = writer.folder.rename(tmp_path / "first")
        save_graph(folder, graph)
        hidden.rename(writer.folder)
        writer.commit({})
    assert open_graph(folder).graph.num_nodes == 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph"]


@pytest.mark.parametrize("pid", ["9" * 40, "0", "x", str(2**31)])
def test_folders_of_killed_writers_do_not_stop_an_import(tmp_path, pid):
    (tmp_path / f".graph.{pid}.partial").mkdir()
    save_graph(tmp_path / "graph", suiting(nodes=20))
    assert (tmp_path / "graph" / "graph.json").is_file()


def test_a_draft_that_cannot_be_removed_is_an_error_of_one_line(tmp_path, monkeypatch):
    (tmp_path / f".graph.{os.getpid()}.partial").mkdir()
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    with pytest.raises(UserError, match="Cannot write"):
        save_graph(tmp_path / "graph", suiting(nodes=20))


CONVERSIONS = {
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "fortran": np.asfortranarray,
    "strided": lambda array: np.repeat(array, 2, axis=0)[::2],
    **{
        name: lambda array, name=name: array.astype(name)
        for name in ("int8", "int32", "int64", "uint16", "uint64", "float16")
    },
    **{
        name: lambda array, name=name: array.astype(name)
        for name in ("float64", "longdouble", "complex64", "object", "U8")
    },
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["weights", "numbers"])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_arrays_of_other_types_are_read_alike_or_refused(tmp_path, name, kind):
    folder = tmp_path / "graph"
    graph = graph_of_kind(kind)
    save_graph(folder, graph, splits=random_splits(graph.labels, count=2))
    expected, about = contents(folder), (folder / "graph.json").read_text()
    for file in folder.glob("*.npy"):
        content = file.read_bytes()
        array = np.load(file)
        converted = CONVERSIONS[name](array)
        np.save(file, converted)
        document = json.loads(about)
        document["arrays"][file.stem] |= {
            "bytes": file.stat().st_size,
            "dtype": str(converted.dtype),
            "sha256": sha256(file.read_bytes()).hexdigest(),
        }
        (folder / "graph.json").write_text(json.dumps(document))
        with contextlib.suppress(UserError):
            found = contents(folder)
            assert found == expected or not np.array_equal(array, converted), file
        file.write_bytes(content)
        (folder / "graph.json").write_text(about)
    assert contents(folder) == expected
