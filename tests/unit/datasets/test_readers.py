"""Readers of small files in the formats of the real ones."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch

from unalike import Adjacency, Graph, UserError
from unalike.datasets import find, load
from unalike.datasets.transforms import add_self_loops

EDGES = np.array([[0, 0, 1, 3, 2, 0], [1, 2, 2, 0, 3, 1]])
"""Six stored edges; the last repeats the first."""
DISTINCT = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 0)]


def entries(graph: Graph) -> list[tuple[int, int]]:
    rows = graph.adjacency
    return list(zip(rows.row_indices.tolist(), rows.indices.tolist(), strict=True))


def with_reverse(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted({*pairs, *((v, u) for u, v in pairs)})


def write_gzip(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.write(text)


def write_mat(path: Path, **arrays: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, arrays)


def test_pokec_has_labels_in_a_row_and_unlabelled_nodes(tmp_path: Path):
    features = np.arange(8, dtype=np.float64).reshape(4, 2)
    write_mat(
        tmp_path / "pokec" / "pokec.mat",
        edge_index=EDGES,
        node_feat=features,
        num_nodes=4,
        label=np.array([[1, 0, -1, 1]]),
    )
    graph = load("pokec", tmp_path)
    assert graph.directed
    assert entries(graph) == DISTINCT
    assert graph.labels.tolist() == [1, 0, -1, 1]
    assert graph.features.tolist() == features.tolist()
    assert graph.num_classes == 2


def test_pokec_is_found_in_the_root_itself(tmp_path: Path):
    write_mat(
        tmp_path / "pokec.mat",
        edge_index=EDGES.astype(np.int32),
        node_feat=np.eye(4),
        num_nodes=4,
        label=np.array([[1.0, 0.0, np.nan, 1.0]]),
    )
    assert load("pokec", tmp_path).labels.tolist() == [1, 0, -1, 1]


def test_snap_patents_turns_years_into_quantiles_and_stays_sparse(tmp_path: Path):
    rng = np.random.default_rng(0)
    features = scipy.sparse.random_array((10, 7), density=0.3, rng=rng)
    write_mat(
        tmp_path / "snap-patents" / "snap_patents.mat",
        edge_index=EDGES,
        node_feat=scipy.sparse.csc_matrix(features),
        num_nodes=10,
        years=np.arange(1990, 2000)[None],
    )
    graph = load("snap-patents", tmp_path)
    assert graph.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert not isinstance(graph.features, torch.Tensor)
    expected = torch.from_numpy(features.toarray()).float()
    assert torch.equal(graph.features.to_dense(), expected)
    assert graph.directed
    assert entries(graph) == DISTINCT


def test_genius_keeps_direction_and_reads_shipped_splits(tmp_path: Path):
    write_mat(
        tmp_path / "genius" / "genius.mat",
        edge_index=EDGES,
        node_feat=np.ones((4, 3)),
        label=np.array([[0], [1], [0], [1]]),
    )
    arrays = np.empty(1, object)
    arrays[0] = {"train": [3, 0], "valid": [1], "test": [2]}
    (tmp_path / "splits").mkdir()
    np.save(tmp_path / "splits" / "genius-splits.npy", arrays, allow_pickle=True)
    genius = find("genius", tmp_path)
    assert genius.metric.name == "roc-auc"
    assert entries(genius.load()) == DISTINCT
    (split,) = genius.splits()
    assert split.train.tolist() == [0, 3]
    assert (split.valid.tolist(), split.test.tolist()) == ([1], [2])


NODES = """views,mature,life_time,created_at,updated_at,numeric_id,dead_account,\
language,affiliate
7879,1,969,2016-02-16,2018-10-12,0,0,EN,1
500,0,2699,2011-05-19,2018-10-08,1,0,EN,1
382502,1,3149,2010-02-27,2018-10-12,2,0,DE,1
386,0,1344,2015-01-26,2018-10-01,3,1,EN,0
"""


def test_features_of_twitch_gamers_are_standardised(tmp_path: Path):
    folder = tmp_path / "twitch-gamers"
    folder.mkdir()
    (folder / "twitch-gamer_feat.csv").write_text(NODES)
    pairs = "numeric_id_1,numeric_id_2\n0,1\n3,2\n"
    (folder / "twitch-gamer_edges.csv").write_text(pairs)
    graph = load("twitch-gamers", tmp_path)
    assert entries(graph) == [(0, 1), (3, 2)]
    assert entries(find("twitch-gamers", tmp_path).prepared()) == with_reverse(
        [(0, 1), (2, 3)]
    )
    assert graph.labels.tolist() == [1, 0, 1, 0]
    raw = np.array(
        [
            [7879, 969, 20160216, 20181012, 0, 0, 1],
            [500, 2699, 20110519, 20181008, 0, 0, 1],
            [382502, 3149, 20100227, 20181012, 0, 1, 1],
            [386, 1344, 20150126, 20181001, 1, 0, 0],
        ]
    ).astype(np.float32)
    exact = raw.astype(np.float64)
    expected = (exact - exact.mean(0)) / exact.std(0, ddof=1)
    assert np.allclose(graph.features.numpy(), expected, atol=1e-6)


def test_missing_values_of_twitch_gamers_get_the_mean(tmp_path: Path):
    folder = tmp_path / "twitch-gamers"
    folder.mkdir()
    gap = NODES.replace("500,0,2699,", "500,0,,")
    (folder / "large_twitch_features.csv").write_text(gap)
    (folder / "large_twitch_edges.csv").write_text("numeric_id_1,numeric_id_2\n0,1\n")
    graph = load("twitch-gamers", tmp_path)
    assert graph.features[1, 1] == 0
    assert torch.isfinite(graph.features).all()


def write_wiki(root: Path, *, legacy: bool = False) -> torch.Tensor:
    (root / "wiki").mkdir()
    features = torch.randn(4, 600, generator=torch.Generator().manual_seed(0))
    arrays = {
        "features": features,
        "edges": torch.from_numpy(EDGES.T.copy()),
        "views": torch.tensor([0, 4, -1, 2]),
    }
    for name, tensor in arrays.items():
        path = root / "wiki" / f"wiki_{name}2M.pt"
        torch.save(tensor, path, _use_new_zipfile_serialization=not legacy)
    return features


@pytest.mark.parametrize("legacy", [False, True])
def test_wiki_is_three_tensors(tmp_path: Path, legacy: bool):
    features = write_wiki(tmp_path, legacy=legacy)
    graph = load("wiki", tmp_path)
    assert entries(graph) == DISTINCT
    assert graph.labels.tolist() == [0, 4, -1, 2]
    assert graph.num_classes == 5
    assert torch.equal(graph.features, features)
    assert graph.directed


def test_wiki_with_half_precision_features(tmp_path: Path):
    features = write_wiki(tmp_path)
    wiki = find("wiki", tmp_path)
    wiki.open_stored(half=True)
    assert torch.equal(wiki.load().features, features.half())
    assert torch.equal(wiki.open_stored(half=False).graph.features, features)


def write_arxiv(folder: Path) -> None:
    pairs = "".join(f"{u},{v}\n" for u, v in EDGES.T)
    write_gzip(folder / "edge.csv.gz", pairs)
    write_gzip(folder / "node-feat.csv.gz", "0.5,-1\n1,2\n3,4\n5,6e-1\n")
    write_gzip(folder / "node_year.csv.gz", "2013\n2015\n2017\n2019\n")
    write_gzip(folder / "node-label.csv.gz", "3\n39\n0\n1\n")
    write_gzip(folder / "num-node-list.csv.gz", "4\n")


@pytest.mark.parametrize("folder", ["arxiv-year", "ogbn_arxiv/raw"])
def test_arxiv_from_the_tables_of_ogb(tmp_path: Path, folder: str):
    write_arxiv(tmp_path / folder)
    years, subjects = load("arxiv-year", tmp_path), load("ogbn-arxiv", tmp_path)
    assert entries(years) == entries(subjects) == DISTINCT
    assert years.features.tolist()[3] == pytest.approx([5, 0.6])
    assert years.labels.tolist() == [0, 1, 3, 4]
    assert subjects.labels.tolist() == [3, 39, 0, 1]
    assert (years.num_classes, subjects.num_classes) == (5, 40)


def test_arxiv_without_features_has_a_note(tmp_path: Path):
    write_arxiv(tmp_path / "arxiv-year")
    (tmp_path / "arxiv-year" / "node-feat.csv.gz").unlink()
    stored = find("arxiv-year", tmp_path).open_stored()
    assert stored.graph.num_features == 0
    (note,) = stored.metadata["provenance"]["remarks"]
    assert "without its 128 features" in note


def test_ogb_splits_are_the_official_ones(tmp_path: Path):
    write_arxiv(tmp_path / "ogbn_arxiv" / "raw")
    for part, ids in {"train": "2\n0\n", "valid": "1\n", "test": "3\n"}.items():
        write_gzip(tmp_path / "ogbn_arxiv" / "split" / "time" / f"{part}.csv.gz", ids)
    (split,) = find("ogbn-arxiv", tmp_path).splits()
    parts = [part.tolist() for part in (split.train, split.valid, split.test)]
    assert parts == [[0, 2], [1], [3]]


def test_products_lists_every_pair_once(tmp_path: Path):
    raw = tmp_path / "ogbn_products" / "raw"
    write_gzip(raw / "edge.csv.gz", "0,1\n2,1\n2,2\n")
    write_gzip(raw / "node-feat.csv.gz", "1,2\n3,4\n5,6\n")
    write_gzip(raw / "node-label.csv.gz", "46\n0\n1\n")
    write_gzip(raw / "num-node-list.csv.gz", "3\n")
    graph = load("ogbn-products", tmp_path)
    assert entries(graph) == with_reverse([(0, 1), (1, 2), (2, 2)])
    assert graph.num_edges == 3
    assert graph.num_classes == 47


def test_yelp_chi_is_a_sparse_matrix(tmp_path: Path):
    adjacency = scipy.sparse.csc_matrix(np.array([[0, 1, 0], [1, 0, 2.0], [0, 2, 0]]))
    write_mat(
        tmp_path / "yelp-chi" / "YelpChi.mat",
        homo=adjacency,
        features=scipy.sparse.csc_matrix(np.arange(6.0).reshape(3, 2)),
        label=np.array([[0, 1, 0]]),
    )
    yelp = find("yelp-chi", tmp_path)
    graph = yelp.load()
    assert entries(graph) == with_reverse([(0, 1), (1, 2)])
    assert graph.adjacency.values is None
    assert graph.features.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert yelp.metric.name == "roc-auc"


def write_deezer_zip(root: Path) -> None:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        folder = "deezer_europe/deezer_europe_"
        archive.writestr(f"{folder}edges.csv", "node_1,node_2\n0,2\n1,2\n")
        archive.writestr(f"{folder}target.csv", "id,target\n1,1\n0,0\n2,1\n")
        active = {"0": [31240, 5], "1": [], "2": [5]}
        archive.writestr(f"{folder}features.json", json.dumps(active))
    path = root / "deezer-europe" / "deezer_europe.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(zipped.getvalue())


def test_deezer_from_snap_and_from_the_authors_is_the_same(tmp_path: Path):
    write_deezer_zip(tmp_path / "snap")
    features = scipy.sparse.lil_matrix((3, 31_241))
    features[0, 5] = features[0, 31_240] = features[2, 5] = 1
    write_mat(
        tmp_path / "authors" / "deezer-europe.mat",
        A=scipy.sparse.csc_matrix(([1.0] * 4, ([0, 1, 2, 2], [2, 2, 0, 1]))),
        features=scipy.sparse.csc_matrix(features),
        label=np.array([[0, 1, 1]]),
    )
    one, two = (load("deezer-europe", tmp_path / name) for name in ("snap", "authors"))
    assert entries(one) == entries(two) == [(0, 2), (1, 2)]
    assert one.labels.tolist() == two.labels.tolist() == [0, 1, 1]
    assert one.features.shape == two.features.shape
    assert torch.equal(one.features.indices, two.features.indices)


def write_twitch(root: Path, language: str, rows: str) -> None:
    folder = root / "twitch-explicit" / language
    folder.mkdir(parents=True)
    head = "id,days,mature,views,partner,new_id\n"
    (folder / f"musae_{language}_target.csv").write_text(head + rows)
    (folder / f"musae_{language}_edges.csv").write_text("from,to\n0,2\n1,2\n0,2\n")
    active = {"1": [7, 3000, 7], "0": [], "2": [5], "9": [1]}
    (folder / f"musae_{language}_features.json").write_text(json.dumps(active))


def test_twitch_keeps_the_first_of_two_rows_and_drops_empty_columns(tmp_path: Path):
    rows = (
        "70,1,True,5,False,2\n71,1,False,5,False,0\n"
        "72,1,True,5,False,1\n73,1,False,9,True,2\n"
    )
    write_twitch(tmp_path, "FR", rows)
    graph = load("twitch-fr", tmp_path)
    assert graph.labels.tolist() == [0, 1, 1]
    assert entries(graph) == [(0, 2), (1, 2)]
    assert graph.features.to_dense().tolist() == [[0, 0, 0], [0, 1, 1], [1, 0, 0]]


def test_twitch_with_missing_ids_is_an_error(tmp_path: Path):
    write_twitch(tmp_path, "RU", "70,1,True,5,False,2\n71,1,False,5,False,0\n")
    with pytest.raises(UserError, match="ids are not 0 to 1"):
        load("twitch-ru", tmp_path)


def write_school(path: Path) -> np.ndarray:
    columns = np.array(
        [[1, 1, 0, 0, 9, 2006, 3], [2, 0, 5, 0, 9, 0, 3], [1, 2, 7, 0, 0, 2007, 4]],
        np.uint16,
    )
    adjacency = scipy.sparse.csc_matrix(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0.0]]))
    write_mat(path, A=adjacency, local_info=columns)
    return columns


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("penn94", "Penn94"),
        ("johns-hopkins55", "Johns Hopkins55"),
        ("johns-hopkins55", "JohnsHopkins55"),
        ("notre-dame57", "Notre Dame57"),
        ("my-school7", "My School7"),
        ("trinity100", "Trinity100"),
    ],
)
def test_any_school_loads_by_its_name(tmp_path: Path, name: str, file: str):
    columns = write_school(tmp_path / "facebook100" / f"{file}.mat")
    graph = load(name, tmp_path)
    assert graph.labels.tolist() == [0, -1, 1]
    assert entries(graph) == with_reverse([(0, 1), (0, 2)])
    kept = columns[:, [0, 2, 3, 4, 5, 6]]
    expected = [(column[:, None] == np.unique(column)) for column in kept.T]
    assert np.array_equal(graph.features.to_dense().numpy(), np.hstack(expected))


def write_platonov(path: Path, classes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    masks = np.eye(3, dtype=bool)
    np.savez(
        path,
        node_features=np.ones((3, 2), np.float32),
        node_labels=np.arange(3) % classes,
        edges=np.array([[0, 1], [2, 1]]),
        train_masks=masks[:2],
        val_masks=masks[1:],
        test_masks=np.roll(masks, 1, 0)[:2],
    )


@pytest.mark.parametrize(
    ("file", "classes", "metric"),
    [("roman_empire", 3, "accuracy"), ("questions", 2, "roc-auc")],
)
def test_declared_files_of_platonov(
    tmp_path: Path, file: str, classes: int, metric: str
):
    write_platonov(tmp_path / "heterophilous" / f"{file}.npz", classes)
    dataset = find(file.replace("_", "-"), tmp_path)
    assert dataset.metric.name == metric
    assert entries(dataset.load()) == [(0, 1), (2, 1)]
    assert entries(dataset.prepared()) == with_reverse([(0, 1), (1, 2)])
    assert [split.train.tolist() for split in dataset.splits()] == [[0], [1]]
    assert [split.valid.tolist() for split in dataset.splits()] == [[1], [2]]


@pytest.mark.parametrize(("classes", "metric"), [(2, "roc-auc"), (3, "accuracy")])
def test_undeclared_files_of_platonov(tmp_path: Path, classes: int, metric: str):
    write_platonov(tmp_path / "heterophilous" / "new_graph_directed.npz", classes)
    dataset = find("new-graph-directed", tmp_path)
    assert dataset.metric.name == metric
    assert entries(dataset.prepared()) == [(0, 1), (2, 1)]


def test_oeis_was_never_released():
    with pytest.raises(UserError, match="never released"):
        load("oeis")


def test_a_misspelled_name_gets_a_suggestion(tmp_path: Path):
    with pytest.raises(UserError, match="Did you mean 'wisconsin87'"):
        find("wisconsn87", tmp_path)


def test_a_path_is_a_stored_graph(tmp_path: Path):
    write_school(tmp_path / "facebook100" / "Reed98.mat")
    folder = find("reed98", tmp_path).open_stored().folder
    assert find(str(folder)).load().num_nodes == 3
    with pytest.raises(UserError, match="not a stored graph"):
        find(str(tmp_path / "nowhere"))


def test_the_error_of_a_missing_file_has_its_path_and_url(tmp_path: Path):
    with pytest.raises(UserError) as error:
        load("genius", tmp_path)
    assert str(tmp_path / "genius" / "genius.mat") in str(error.value)
    assert "https://raw.githubusercontent.com/CUAI/" in str(error.value)


def test_a_missing_variable_is_named(tmp_path: Path):
    write_mat(tmp_path / "genius" / "genius.mat", edge_index=EDGES, label=[0, 1])
    with pytest.raises(UserError, match="node_feat"):
        load("genius", tmp_path)


def test_an_edge_out_of_range_is_named(tmp_path: Path):
    write_mat(
        tmp_path / "pokec.mat", edge_index=EDGES + 1, node_feat=np.eye(4), label=[0] * 4
    )
    with pytest.raises(UserError, match="4; ids run from 0 to 3"):
        load("pokec", tmp_path)


def write_damaged_school(path: Path, **changes: np.ndarray) -> None:
    """A school whose friendships have other index arrays; SciPy writes them unseen."""
    path.parent.mkdir(parents=True)
    adjacency = scipy.sparse.csc_matrix(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0.0]]))
    for name, array in changes.items():
        setattr(adjacency, name, np.array(array, np.int32))
    adjacency.has_sorted_indices = True
    scipy.io.savemat(path, {"A": adjacency, "local_info": np.ones((3, 7))})


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": [1, 2, 10**8, 0]},
        {"indices": [1, 2, -(10**8), 0]},
        {"indices": [1, 2, 0, 3]},
        {"indptr": [0, 10**8, 3, 4]},
        {"indptr": [0, -(10**8), 3, 4]},
        {"indptr": [0, 10**8, 0, 0]},
        {"indptr": [0, 2**31 - 1, -(2**31), 4]},
        {"indptr": [2, 2, 3, 4]},
    ],
)
def test_a_mat_file_with_wrong_indices_is_an_error(tmp_path: Path, changes: dict):
    write_damaged_school(tmp_path / "facebook100" / "Reed98.mat", **changes)
    with pytest.raises(UserError, match=r"Reed98.mat cannot be read"):
        load("reed98", tmp_path)


def test_a_mat_file_with_cells_is_an_error(tmp_path: Path):
    cells = np.array([[1], ["a"]], object)
    write_mat(tmp_path / "facebook100" / "Reed98.mat", A=cells, local_info=np.ones(7))
    with pytest.raises(UserError, match="'A' is a cell in place of numbers"):
        load("reed98", tmp_path)


@pytest.mark.parametrize("shape", [(2**31 - 1, 3), (2**30, 3)])
def test_a_mat_file_that_promises_terabytes_is_an_error(tmp_path: Path, shape: tuple):
    path = tmp_path / "facebook100" / "Reed98.mat"
    adjacency = scipy.sparse.csc_matrix(shape)
    write_mat(path, A=adjacency, local_info=np.ones((3, 7)))
    with pytest.raises(UserError, match=r"promises 2,147|promises 1,073"):
        load("reed98", tmp_path)


def npz_with_header(path: Path, name: str, shape: tuple, data: bytes) -> None:
    """Replace the array of a .npz file by one with this header and these bytes."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<i8", "fortran_order": False, "shape": shape}
    )
    members[f"{name}.npy"] = header.getvalue() + data
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2**62,), "promises 4,611,686"),
        ((10**12, 3), "promises 3,000,000,000,000"),
        ((4,), "does not have the shape"),
        ((2,), "does not have the shape"),
    ],
)
def test_an_npz_file_that_promises_terabytes_is_an_error(
    tmp_path: Path, shape: tuple, message: str
):
    path = tmp_path / "heterophilous" / "roman_empire.npz"
    write_platonov(path, 3)
    npz_with_header(path, "node_labels", shape, np.arange(3).tobytes())
    with pytest.raises(UserError, match=f"roman_empire.npz cannot be read.*{message}"):
        load("roman-empire", tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": np.array([10**12, 10**12])},
        {"shape": np.array([4])},
        {"indices": np.array([1, 2, 9, 0], np.int32)},
        {"indices": np.array([1, 2], np.int32)},
        {"indptr": np.array([0, 2**40, 1, 2, 4])},
        {"indptr": np.array([0, 9, 0, 0, 0])},
    ],
)
def test_a_csr_file_of_arxiv_with_wrong_indices_is_an_error(
    tmp_path: Path, changes: dict
):
    write_arxiv(tmp_path / "arxiv-year")
    (tmp_path / "arxiv-year" / "edge.csv.gz").unlink()
    csr = {
        "shape": np.array([4, 4]),
        "indptr": np.array([0, 2, 3, 3, 4]),
        "indices": np.array([1, 2, 2, 0], np.int32),
    }
    path = tmp_path / "arxiv-year" / "adj_full.npz"
    np.savez(path, **csr)
    assert entries(load("arxiv-year", tmp_path)) == [(0, 1), (0, 2), (1, 2), (3, 0)]
    np.savez(path, **{**csr, **changes})
    with pytest.raises(UserError, match=r"adj_full.npz cannot be read"):
        load("arxiv-year", tmp_path)


def test_products_with_another_number_of_labels_is_an_error(tmp_path: Path):
    raw = tmp_path / "ogbn_products" / "raw"
    write_gzip(raw / "edge.csv.gz", "0,1\n")
    write_gzip(raw / "node-feat.csv.gz", "1,2\n3,4\n")
    write_gzip(raw / "node-label.csv.gz", "46\n0\n")
    write_gzip(raw / "num-node-list.csv.gz", "1000000000000\n")
    with pytest.raises(UserError, match=r"1000000000000 nodes, and .* 2 labels"):
        load("ogbn-products", tmp_path)


def test_self_loops_do_not_change_the_weights_of_edges():
    edges = torch.tensor([[0, 1, 2], [1, 1, 0]])
    rows = Adjacency.from_edges(
        *edges, shape=(3, 3), values=torch.tensor([0.5, 3.0, -2.0])
    )
    expected = [[1, 0.5, 0], [0, 3, 0], [-2, 0, 1]]
    assert add_self_loops(rows).to_dense().tolist() == expected
    plain = Adjacency.from_edges(*edges, shape=(3, 3))
    looped = add_self_loops(plain)
    assert looped.values is None
    assert looped.to_dense().tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
