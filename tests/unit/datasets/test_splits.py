"""The splits of the LINKX paper are reproduced exactly."""

import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unalike import Graph, UserError
from unalike.data.graph import quantile_labels
from unalike.datasets import find
from unalike.datasets.remote import RemoteFile
from unalike.datasets.splits import (
    PAPER_LABELLED_COUNTS,
    ogb_splits,
    paper_permutations,
    paper_splits,
    read_mask_split,
    read_npy_splits,
)

PERMUTATIONS = {
    "penn94": "ddb27f360d47f0a4 49471b8d86b4b7c4 9a8f9f657a8c4417 "
    "6f9ef0627e52ca4e bd0cef5088c068ca",
    "twitch-de": "d105116904029ad6 679ec3e0938d98b9 0eadf01822b4a3b3 "
    "27b60fab6c01bb31 2b1d0ed0bd01eab2",
    "arxiv-year": "5ee3b2b40504c0e3 ab6c754d204da2fb 773e18e3268a5455 "
    "be50aa46e6cbffbb 3a66f885aaeef933",
    "deezer-europe": "762a22421f60136c 28655b1c7a5441b2 4b9a4003ddb09459 "
    "0c13205308f04f8e 59defca8b213b4f1",
    "pokec": "0e286c73baa4c8f5 d8fbcc7a2ef29c50 a5ce0402284a195a "
    "1fd8207112425e70 e5c2adc4547dce4c",
    "snap-patents": "671df8b68fe83b56 9cd52a6cb50f4a4b c947bf1cf93201fd "
    "0ebf8812313c23d6 c04caafd1ce57d81",
    "yelp-chi": "924ca91b4499729b 42cb7910b00f60e7 84dc6174db2058c5 "
    "538d288ca0b8882e a7a1ede56b565ce1",
}
"""The first 16 digits of the sha256 of each permutation as 64-bit numbers."""


def test_the_order_of_the_sampled_datasets_is_fixed():
    assert list(PERMUTATIONS) == list(PAPER_LABELLED_COUNTS)


@pytest.mark.parametrize("name", PERMUTATIONS)
def test_permutations_are_those_of_the_paper(name: str):
    result = [
        sha256(order.astype("<i8").tobytes()).hexdigest()[:16]
        for order in paper_permutations(name)
    ]
    assert result == PERMUTATIONS[name].split()


def unlabelled(labels: torch.Tensor) -> Graph:
    ids = torch.arange(len(labels))
    return Graph.from_edges(
        ids, ids.roll(1), num_nodes=len(labels), labels=labels, num_classes=2
    )


def test_splits_of_penn94_have_labelled_nodes_only(tmp_path: Path):
    labels = torch.zeros(41_554, dtype=torch.int64)
    labels[:2_739] = -1
    splits, origin = paper_splits("penn94")(tmp_path, unlabelled(labels))
    assert "paper" in origin
    order = paper_permutations("penn94")[4] + 2_739
    last = splits[4]
    assert last.train.tolist() == order[:19_407].tolist()
    assert last.valid.tolist() == order[19_407:29_110].tolist()
    assert last.test.tolist() == order[29_110:].tolist()


def test_another_graph_under_the_same_name_gets_random_splits(tmp_path: Path):
    splits, origin = paper_splits("penn94")(
        tmp_path, unlabelled(torch.zeros(8, dtype=torch.int64))
    )
    assert origin.startswith("random")
    assert "38815" in origin
    assert [len(split.train) for split in splits] == [4] * 5


@pytest.mark.parametrize(
    ("name", "file"),
    [("penn94", "fb100-Penn94"), ("twitch-de", "twitch-e-DE")],
)
@pytest.mark.long
def test_permutations_equal_the_split_files_of_the_authors(
    data: Path, name: str, file: str
):
    shipped = read_npy_splits(data / "splits" / f"{file}-splits.npy", 200_000)
    labelled = np.sort(
        np.concatenate([shipped[0].train, shipped[0].valid, shipped[0].test])
    )
    for split, order in zip(shipped, paper_permutations(name), strict=True):
        ids = torch.cat([split.train, split.valid, split.test]).numpy()
        assert np.array_equal(ids, labelled[order])


@pytest.mark.parametrize(
    "ids_by_part",
    [
        {"train": [0, 1], "valid": [1], "test": [2]},
        {"train": [0], "valid": [1], "test": [3]},
        {"train": [0], "valid": [-1], "test": [2]},
        {"train": [0], "test": [2]},
        {"train": ["a"], "valid": [1], "test": [2]},
    ],
)
def test_npy_splits_that_are_no_partition_are_an_error(
    tmp_path: Path, ids_by_part: dict
):
    path = tmp_path / "some-splits.npy"
    array = np.empty(1, object)
    array[0] = ids_by_part
    np.save(path, array, allow_pickle=True)
    with pytest.raises(UserError, match="some-splits"):
        read_npy_splits(path, num_nodes=3)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], "masks of 4 nodes"),
        ([[1, 0], [0, 1], [0, 0]], "masks of 2 nodes"),
        ([[1, 0, 0], [0, 1, 0], [0, 1, 1]], "twice"),
        ([[[1, 0, 0]], [[0, 1, 0]], [[0, 0, 1]]], "masks of 3 nodes"),
    ],
)
def test_masks_of_another_graph_or_that_overlap_are_an_error(
    tmp_path: Path, masks: list, message: str
):
    path = tmp_path / "film_split.npz"
    names = ("train_mask", "val_mask", "test_mask")
    np.savez(path, **dict(zip(names, np.array(masks, bool), strict=True)))
    with pytest.raises(UserError, match=f"film_split.*{message}"):
        read_mask_split(path, num_nodes=3)


def test_split_files_of_film_are_refused_for_squirrel(tmp_path: Path, data: Path):
    for folder in ("geom-gcn/squirrel", "geom-gcn/film", "heterophilous"):
        shutil.copytree(data / folder, tmp_path / folder)
    for film in (tmp_path / "geom-gcn" / "film").glob("*.npz"):
        squirrel = film.name.replace("film", "squirrel")
        target = tmp_path / "geom-gcn" / "squirrel" / squirrel
        target.chmod(0o644)
        shutil.copyfile(film, target)
    with pytest.raises(UserError, match=r"masks of 7600 nodes; the graph has 5201"):
        find("squirrel", tmp_path).splits()


@pytest.mark.parametrize("test_ids", [[3], [1], [-1], [2, 2]])
def test_split_files_of_ogb_are_checked(tmp_path: Path, test_ids: list[int]):
    files = []
    parts = {"train": [0], "valid": [1], "test": test_ids}
    for part, ids in parts.items():
        (tmp_path / f"{part}.csv").write_text("".join(f"{node}\n" for node in ids))
        files.append(RemoteFile(f"{part}.csv"))
    graph = unlabelled(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(UserError, match="out of range or twice; the graph has 3 nodes"):
        ogb_splits(files)(tmp_path, graph)


def slow_quantile_labels(values: np.ndarray, num_classes: int) -> list[int]:
    """The rule threshold by threshold; ties go to the higher class."""
    labels = [-1] * len(values)
    lower = -np.inf
    for k in range(num_classes):
        last = k == num_classes - 1
        upper = np.inf if last else np.nanquantile(values, (k + 1) / num_classes)
        for index, value in enumerate(values):
            if lower <= value and (last or value < upper):
                labels[index] = k
        lower = upper
    return labels


@given(
    arrays(
        np.float64,
        st.integers(1, 30),
        elements=st.one_of(st.integers(1970, 1980).map(float), st.just(np.nan)),
    ).filter(lambda values: not np.isnan(values).all()),
    st.integers(2, 6),
)
def test_quantile_labels_equal_a_slow_implementation(
    values: np.ndarray, num_classes: int
):
    result = quantile_labels(values, num_classes).tolist()
    assert result == slow_quantile_labels(values, num_classes)


def test_nan_values_have_no_class():
    assert quantile_labels(np.full(3, np.nan), 5).tolist() == [-1, -1, -1]
