"""Damaged and odd raw files of datasets: the same graph, or an error of one line."""

import contextlib
import shutil

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from damage import damage, run_command

import unalike
from unalike import UserError

NODES = 24


def write_npz(path) -> None:
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 3, (2, NODES))
    np.savez_compressed(
        path,
        node_features=rng.random((NODES, 4), np.float32),
        node_labels=np.arange(NODES) % 3,
        edges=rng.integers(0, NODES, (60, 2)),
        train_masks=masks == 0,
        val_masks=masks == 1,
        test_masks=masks == 2,
    )


def write_mat(path) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.random((NODES, NODES)) < 0.2
    info = rng.integers(1, 3, (NODES, 7))
    adjacency = scipy.sparse.csc_matrix((matrix | matrix.T).astype(float))
    scipy.io.savemat(path, {"A": adjacency, "local_info": info}, do_compression=True)


FILES = {"heterophilous/own.npz": write_npz, "facebook100/Own.mat": write_mat}


def loaded(name, root):
    """Everything of a dataset, converted again."""
    shutil.rmtree(root / "stored", ignore_errors=True)
    graph = unalike.load(name, root)
    return (
        graph.adjacency.indptr.tolist(),
        graph.adjacency.indices.tolist(),
        graph.features.to_dense().tolist(),
        graph.labels.tolist(),
    )


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_raw_file_is_refused_or_the_same(tmp_path, file, some):
    path = tmp_path / file
    path.parent.mkdir()
    FILES[file](path)
    whole, expected = path.read_bytes(), loaded("own", tmp_path)
    for rng in some:
        path.write_bytes(damage(whole, rng))
        with contextlib.suppress(UserError):
            assert loaded("own", tmp_path) == expected


ODD_ARRAYS = {
    "text": np.array(["a", "b"]),
    "objects": np.array([{}, None], dtype=object),
    "nothing": np.zeros((0, 0)),
    "nan": np.array([np.nan, 1.0]),
    "huge": np.array([2**63], np.uint64),
    "scalar": np.array(3),
    "complex": np.array([1j]),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "records": np.zeros(2, [("a", int)]),
}


@pytest.mark.parametrize("name", [*ODD_ARRAYS, "folder", "empty", "link"])
def test_an_odd_npz_does_not_break_the_list_of_datasets(tmp_path, name, capsys):
    path = tmp_path / "heterophilous" / "odd.npz"
    path.parent.mkdir()
    if name in ODD_ARRAYS:
        np.savez(path, node_labels=ODD_ARRAYS[name])
    elif name == "folder":
        path.mkdir()
    elif name == "link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.touch()
    words = ["list", "datasets", "--data", str(tmp_path)]
    assert run_command(words, capsys)[0] == 0
    with pytest.raises(UserError, match="No dataset 'nothing'"):
        unalike.load("nothing", tmp_path)
    with pytest.raises(UserError):
        unalike.load("odd", tmp_path)
