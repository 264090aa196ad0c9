"""Untrusted and damaged files: no code runs, and errors name the file in one line."""

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unalike import UserError
from unalike.datasets import find, load
from unalike.datasets.safe_pickle import read_object_array, read_pickle


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
