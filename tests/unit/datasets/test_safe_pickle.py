"""Untrusted and damaged files: no code runs, and errors name the file in one line."""

import os
import pickle
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from unalike import UserError
from unalike.datasets import find, load
from unalike.datasets.safe_pickle import (
    ALLOWED_GLOBALS,
    read_object_array,
    read_pickle,
)


class Evil:
    """An object whose pickle makes a folder when it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple:
        return (os.mkdir, (str(self.trace),))


def test_a_pickle_with_code_is_an_error(tmp_path: Path):
    path, trace = tmp_path / "ind.cora.graph", tmp_path / "trace"
    path.write_bytes(pickle.dumps({0: [Evil(trace)]}))
    with pytest.raises(UserError, match=r"mkdir, which is not allowed"):
        read_pickle(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    "global_name",
    ["builtins eval", "builtins getattr", "os system", "numpy.f2py compile"],
)
def test_other_globals_of_a_pickle_are_an_error(tmp_path: Path, global_name: str):
    path = tmp_path / "file"
    module, name = global_name.split()
    path.write_bytes(f"c{module}\n{name}\n(S'1'\ntR.".encode())
    with pytest.raises(UserError, match="not allowed"):
        read_pickle(path)


class Reduced:
    """An object whose pickle is this call with this state."""

    def __init__(self, *reduced: object) -> None:
        self.reduced = reduced

    def __reduce__(self) -> tuple:
        return self.reduced


def array_pickle(dtype: object, data: object, shape: tuple = (1,)) -> Reduced:
    reconstruct = np.zeros(1).__reduce__()[0]
    state = (1, shape, dtype, False, data)
    return Reduced(reconstruct, (np.ndarray, (0,), b"b"), state)


POINTER = b"\x41" * 8
FIELDS = (3, "|", None, ("field",), {"field": (np.dtype("O"), 0)}, 8, 1, 27)
HOSTILE = {
    "objects made of bytes": array_pickle(np.dtype("O"), POINTER),
    "a field of objects": array_pickle(Reduced(np.dtype, ("V8",), FIELDS), POINTER),
    "numbers that become a record": array_pickle(
        Reduced(np.dtype, ("i8",), FIELDS), POINTER
    ),
    "text": array_pickle(np.dtype("U2"), POINTER),
    "an unknown type": array_pickle(Reduced(np.dtype, ("O,O",)), POINTER * 2),
    "too few bytes": array_pickle(np.dtype("f8"), POINTER, (2,)),
    "too many bytes": array_pickle(np.dtype("f8"), POINTER * 2),
    "terabytes": array_pickle(np.dtype("f8"), POINTER, (2**60,)),
    "too few objects": array_pickle(np.dtype("O"), [1], (2**60,)),
    "a scalar of a pointer": Reduced(
        np.float64(1).__reduce__()[0], (np.dtype("O"), POINTER)
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_array_that_is_not_made_of_its_numbers_is_an_error(
    tmp_path: Path, name: str
):
    path = tmp_path / "ind.cora.ally"
    path.write_bytes(pickle.dumps([HOSTILE[name]], protocol=4))
    with pytest.raises(UserError, match="ally cannot be unpickled"):
        read_pickle(path)


GOOD_CSR = {
    "data": np.ones(2, np.float32),
    "indices": np.array([0, 1], np.int32),
    "indptr": np.array([0, 1, 2], np.int32),
    "_shape": (2, 2),
}


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.array([0, 2], np.int32)},
        {"indices": np.array([-1, 1], np.int32)},
        {"indptr": np.array([0, 5, 2], np.int32)},
        {"indptr": np.array([0, 9, 0], np.int32)},
        {"indptr": np.array([0, 2**31 - 1, -(2**31)], np.int32)},
        {"indptr": np.array([0, 1, 3], np.int32)},
        {"indptr": np.array([0, 2], np.int32)},
        {"data": np.ones(1, np.float32)},
        {"_shape": (2, 1)},
        {"_shape": "text"},
        {"indices": "text"},
    ],
)
def test_a_sparse_matrix_with_wrong_indices_is_an_error(tmp_path: Path, changes: dict):
    path = tmp_path / "ind.cora.allx"
    path.write_bytes(csr_pickle({**GOOD_CSR, **changes}))
    with pytest.raises(UserError, match="allx cannot be unpickled"):
        read_pickle(path)


@pytest.mark.parametrize(
    "name",
    ["numpy dtype", "numpy ndarray", "scipy.sparse.csr csr_matrix", "builtins list"],
)
@pytest.mark.parametrize("state", ["}S'marked'\nI1\ns", "(N}S'marked'\nI1\nst"])
def test_a_pickle_cannot_change_a_class(tmp_path: Path, name: str, state: str):
    path = tmp_path / "file"
    module, class_name = name.split()
    path.write_bytes(f"c{module}\n{class_name}\n{state}b.".encode())
    with pytest.raises(UserError, match="cannot be unpickled"):
        read_pickle(path)
    for allowed in (*ALLOWED_GLOBALS.values(), np.dtype, np.ndarray, csr_matrix):
        assert not hasattr(allowed, "marked")


def test_a_pickle_cannot_exhaust_memory_or_stack(tmp_path: Path):
    path = tmp_path / "file"
    for content, message in {
        b"\x80\x02Nr\xff\xff\xff\x7f.": "memo index 2147483647",
        b"Np2147483647\n.": "memo index 2147483647",
        b"\x80\x02}N" + b"\x85" * 1_000_000 + b"Ns.": "more than 1000 tuples",
        b"\x80\x02" + b"]" * 5_000 + b"a" * 4_999 + b".": "recursion",
        b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f.": "cannot be unpickled",
        b"\x80\x02]q\x00h\x00a.": "recursion",
    }.items():
        path.write_bytes(content)
        with pytest.raises(UserError, match=message):
            read_pickle(path)


def test_arrays_of_a_pickle_are_those_of_numpy_and_scipy(tmp_path: Path):
    shared = np.arange(3)
    graph = defaultdict(list, {0: [1, np.int64(2)], np.int32(1): []})
    value = {
        "big-endian": np.arange(6, dtype=">i4").reshape(2, 3),
        "column-major": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "none": np.zeros((0, 3), np.float32),
        "objects": np.array([{"a": shared}, None], object),
        "graph": graph,
        "shared": [shared, shared],
    }
    path = tmp_path / "file"
    path.write_bytes(pickle.dumps(value, protocol=4))
    found = read_pickle(path)
    for name in ("big-endian", "column-major", "none"):
        np.testing.assert_array_equal(found[name], value[name])
        assert found[name].dtype == value[name].dtype.newbyteorder("=")
        assert found[name].flags.writeable
    assert found["objects"].shape == (2,)
    assert found["objects"][0]["a"].tolist() == [0, 1, 2]
    assert found["objects"][1] is None
    assert found["graph"] == graph
    assert found["shared"][0] is found["shared"][1]
    path.write_bytes(csr_pickle(GOOD_CSR))
    matrix = read_pickle(path)
    assert matrix.toarray().tolist() == [[1, 0], [0, 1]]
    path.write_bytes(pickle.dumps(csr_matrix(np.eye(3)), protocol=4))
    np.testing.assert_array_equal(read_pickle(path).toarray(), np.eye(3))


def csr_pickle(state: dict) -> bytes:
    """The pickle of a `csr_matrix` with this state, as Python 2 wrote it."""
    body = pickle.dumps(state, protocol=4).removeprefix(b"\x80\x04")
    return b"\x80\x04cscipy.sparse.csr\ncsr_matrix\n)\x81" + body[:-1] + b"b."


def test_a_split_file_with_code_is_an_error(tmp_path: Path):
    array = np.empty(1, object)
    array[0] = {"train": Evil(tmp_path / "trace")}
    np.save(tmp_path / "x-splits.npy", array, allow_pickle=True)
    with pytest.raises(UserError, match="not allowed"):
        read_object_array(tmp_path / "x-splits.npy")
    assert not (tmp_path / "trace").exists()


def test_a_tensor_file_with_code_is_an_error(tmp_path: Path):
    (tmp_path / "wiki").mkdir()
    for name in ("features", "edges", "views"):
        torch.save(Evil(tmp_path / "trace"), tmp_path / "wiki" / f"wiki_{name}2M.pt")
    with pytest.raises(UserError, match="cannot be read"):
        load("wiki", tmp_path)
    assert not (tmp_path / "trace").exists()


def test_an_npz_file_with_objects_is_an_error(tmp_path: Path):
    path = tmp_path / "heterophilous" / "tolokers.npz"
    path.parent.mkdir()
    array = np.array([Evil(tmp_path / "trace")], object)
    names = ("edges", "node_features", "node_labels")
    np.savez(path, **dict.fromkeys(names, array))
    with pytest.raises(UserError, match="cannot be read"):
        load("tolokers", tmp_path)
    assert not (tmp_path / "trace").exists()


RAW = {
    "reed98": "facebook100/Reed98.mat",
    "chameleon-filtered": "heterophilous/chameleon_filtered.npz",
    "cora": "planetoid/ind.cora.allx",
    "citeseer": "planetoid/ind.citeseer.graph",
    "texas": "geom-gcn/texas/out1_node_feature_label.txt",
    "wisconsin": "geom-gcn/wisconsin/out1_graph_edges.txt",
    "twitch-engb": "twitch-explicit/ENGB/musae_ENGB_target.csv",
    "deezer-europe": "deezer-europe/deezer_europe.zip",
    "arxiv-year": "arxiv-year/adj_full.npz",
    "ogbn-arxiv": "arxiv-year/node-label.csv.gz",
}


@pytest.mark.parametrize("name", RAW)
@settings(
    max_examples=6,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(share=st.floats(0, 0.98), flip=st.booleans(), seed=st.integers(0, 10**6))
def test_a_damaged_file_loads_or_is_named_in_the_error(
    tmp_path_factory, data: Path, name: str, share: float, flip: bool, seed: int
):
    """The file is truncated, or some of its bytes are changed."""
    root = tmp_path_factory.mktemp("damaged")
    folder = Path(RAW[name]).parts[0]
    shutil.copytree(data / folder, root / folder)
    path = root / RAW[name]
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    if flip:
        rng = np.random.default_rng(seed)
        for position in rng.integers(0, len(content), 20):
            content[position] = rng.integers(256)
    else:
        content = content[: int(share * len(content))]
    path.write_bytes(content)
    try:
        find(name, root).load()
    except UserError as error:
        assert "\n" not in str(error).strip()
    finally:
        shutil.rmtree(root)
