"""Variants of the file formats of Platonov et al. and Facebook100."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from unalike import UserError
from unalike.datasets import find

EDGES = np.array([[0, 1], [2, 1], [3, 0]])
FIRST = np.array([0, 1, 2, 0])
"""The part of the first split of each node: train, valid or test."""


def masks(codes: np.ndarray) -> dict[str, np.ndarray]:
    names = ("train_masks", "val_masks", "test_masks")
    return {name: codes == part for part, name in enumerate(names)}


PLAIN = {
    "edges": EDGES,
    "node_features": np.eye(4, 2),
    "node_labels": np.array([0, 1, 2, 0]),
    **masks(np.stack([FIRST, FIRST[::-1]])),
}


def archive(root: Path, **changes: np.ndarray | None):
    """The dataset in an .npz file with some changed arrays."""
    path = root / "heterophilous" / "unseen.npz"
    path.parent.mkdir()
    arrays = {**PLAIN, **changes}
    np.savez(
        path, **{name: array for name, array in arrays.items() if array is not None}
    )
    return find("unseen", root)


VARIANTS = {
    "as usual": {},
    "more arrays": {"node_texts": np.array(["a", "b"])},
    "edges as columns": {"edges": EDGES.T},
    "small unsigned edges": {"edges": EDGES.astype(np.uint8)},
    "edges as floats": {"edges": EDGES.astype(np.float64)},
    "labels in a column": {"node_labels": PLAIN["node_labels"][:, None]},
    "labels as floats": {"node_labels": PLAIN["node_labels"].astype(np.float32)},
    "integer features": {"node_features": np.eye(4, 2, dtype=np.int8)},
    "boolean features": {"node_features": np.eye(4, 2, dtype=bool)},
    "half features": {"node_features": np.eye(4, 2, dtype=np.float16)},
    "masks of numbers": {key: PLAIN[key].astype(np.int64) for key in masks(FIRST)},
    "masks in columns": {key: PLAIN[key].T for key in masks(FIRST)},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_a_variant_gives_the_same_graph(tmp_path: Path, changes):
    unseen = archive(tmp_path, **changes)
    graph = unseen.load()
    assert graph.adjacency.to_dense().nonzero().tolist() == [[0, 1], [2, 1], [3, 0]]
    assert graph.features.tolist() == np.eye(4, 2).tolist()
    assert graph.labels.tolist() == [0, 1, 2, 0]
    first, second = unseen.splits()
    assert [part.tolist() for part in (first.train, first.valid)] == [[0, 3], [1]]
    assert second.valid.tolist() == [2]


def test_a_single_mask_is_one_split(tmp_path: Path):
    (split,) = archive(tmp_path, **masks(FIRST)).splits()
    assert split.train.tolist() == [0, 3]


def test_without_masks_the_splits_are_random(tmp_path: Path):
    stored = archive(tmp_path, val_masks=None).open_stored()
    assert len(stored.splits()) == 5
    assert "has none" in stored.metadata["provenance"]["splits"]


def test_a_file_without_features_has_zero_features(tmp_path: Path):
    assert archive(tmp_path, node_features=None).load().num_features == 0


def test_a_1d_feature_array_is_one_feature(tmp_path: Path):
    graph = archive(tmp_path, node_features=np.arange(1.0, 5.0)).load()
    assert graph.features.tolist() == [[1], [2], [3], [4]]


def test_unlabelled_nodes_are_in_no_split(tmp_path: Path):
    first, _ = archive(tmp_path, node_labels=np.array([-1, 1, 0, 0])).splits()
    assert first.train.tolist() == [3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (masks(FIRST[:3]), "4 nodes and masks of the shape"),
        ({"val_masks": PLAIN["train_masks"]}, "a node in two of its parts"),
        ({"edges": np.arange(3)}, "cannot be read"),
    ],
)
def test_inconsistent_arrays_are_an_error(tmp_path: Path, changes, message):
    with pytest.raises(UserError, match=message):
        archive(tmp_path, **changes).load()


def school(root: Path, adjacency, genders) -> Path:
    """A school of three people, the first two columns of which have two values."""
    columns = np.array([[1, 0, 3, 0, 5, 6, 7], [2, 0, 3, 0, 5, 6, 8]]).repeat([2, 1], 0)
    columns[:, 1] = genders
    path = root / "facebook100" / "New Place1.mat"
    path.parent.mkdir()
    scipy.io.savemat(path, {"A": adjacency, "local_info": columns})
    return path


HALF = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]], np.uint8)


@pytest.mark.parametrize(
    "adjacency",
    [
        HALF,
        HALF + HALF.T,
        scipy.sparse.csc_matrix(HALF, dtype=np.float64),
        scipy.sparse.csc_matrix(HALF, dtype=bool),
    ],
)
def test_friendships_are_undirected_for_any_matrix_type(tmp_path: Path, adjacency):
    school(tmp_path, adjacency, [1, 2, 2])
    graph = find("new-place1", tmp_path).load()
    assert graph.num_edges == 2
    assert graph.adjacency.to_dense().tolist() == (HALF + HALF.T).tolist()
    assert graph.labels.tolist() == [0, 1, 1]
    assert graph.num_features == 2 + 1 + 1 + 1 + 1 + 2


def test_an_explicit_zero_is_no_edge(tmp_path: Path):
    adjacency = scipy.sparse.csc_matrix(HALF, dtype=np.float64)
    adjacency.data[0] = 0
    school(tmp_path, adjacency, [1, 2, 1])
    assert find("new-place1", tmp_path).load().num_edges == 1


@pytest.mark.parametrize("genders", [[1, 0, 2], [1, 3, 2]])
def test_other_gender_codes_are_unlabelled(tmp_path: Path, genders):
    school(tmp_path, HALF, genders)
    assert find("new-place1", tmp_path).load().labels.tolist() == [0, -1, 1]
