"""Contracts of all datasets, and exact counts of the real files."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from unalike import DATASETS, Graph
from unalike.datasets import find
from unalike.datasets.base import Dataset
from unalike.datasets.facebook100 import SCHOOLS
from unalike.datasets.splits import read_npy_splits

COUNTS = {
    "cornell5": (18_660, 790_777, 4_735, 2),
    "amherst41": (2_235, 90_954, 1_193, 2),
    "johns-hopkins55": (5_180, 186_586, 2_406, 2),
    "reed98": (962, 18_812, 745, 2),
    "wisconsin87": (23_842, 835_952, 3_307, 2),
    "caltech36": (769, 16_656, 599, 2),
    "mit8": (6_440, 251_252, 2_840, 2),
    "rice31": (4_087, 184_828, 1_742, 2),
    "simmons81": (1_518, 32_988, 875, 2),
    "arxiv-year": (169_343, 1_166_243, 0, 5),
    "ogbn-arxiv": (169_343, 1_166_243, 0, 40),
    "chameleon": (2_277, 36_101, 2_325, 5),
    "squirrel": (5_201, 217_073, 2_089, 5),
    "actor": (7_600, 30_019, 932, 5),
    "cornell": (183, 298, 1_703, 5),
    "texas": (183, 325, 1_703, 5),
    "wisconsin": (251, 515, 1_703, 5),
    "cora": (2_708, 5_278, 1_433, 7),
    "citeseer": (3_327, 4_552, 3_703, 6),
    "pubmed": (19_717, 44_324, 500, 3),
    "tolokers": (11_758, 519_000, 10, 2),
    "minesweeper": (10_000, 39_402, 7, 2),
    "chameleon-filtered": (890, 8_854, 2_325, 5),
    "squirrel-filtered": (2_223, 46_998, 2_089, 5),
    "cornell-fixed": (183, 277, 1_703, 5),
    "deezer-europe": (28_281, 92_752, 31_241, 2),
    "twitch-de": (9_498, 153_138, 2_514, 2),
    "twitch-engb": (7_126, 35_324, 2_545, 2),
    "chameleon-directed": (2_277, 36_101, 2_325, 5),
    "squirrel-filtered-directed": (2_223, 65_718, 2_089, 5),
}
"""Nodes, edges, features and classes; undirected edges count once."""

LOOPS = {
    "chameleon": 50,
    "squirrel": 140,
    "actor": 93,
    "cornell": 3,
    "texas": 16,
    "wisconsin": 16,
}

PAIRS = {
    "chameleon": 31_371,
    "squirrel": 198_353,
    "actor": 26_659,
    "cornell": 277,
    "texas": 279,
    "wisconsin": 450,
}
"""Undirected edges without self-loops."""

CLASSES = {
    "amherst41": [203, 1_015, 1_017],
    "cornell5": [1_838, 8_135, 8_687],
    "johns-hopkins55": [418, 2_153, 2_609],
    "reed98": [97, 504, 361],
    "arxiv-year": [0, 31_971, 21_189, 37_781, 29_799, 48_603],
    "chameleon": [0, 456, 460, 453, 521, 387],
    "squirrel": [0, 1_042, 1_040, 1_039, 1_040, 1_040],
    "actor": [0, 853, 1_337, 1_630, 1_815, 1_965],
    "texas": [0, 33, 1, 18, 101, 30],
    "cornell": [0, 33, 1, 18, 101, 30],
    "cornell-fixed": [0, 38, 16, 30, 82, 17],
    "wisconsin": [0, 10, 70, 118, 32, 21],
}
"""Unlabelled nodes, then those of each class."""

SPLITS = {
    "arxiv-year": (5, (84_671, 42_335, 42_337)),
    "deezer-europe": (5, (14_140, 7_070, 7_071)),
    "twitch-de": (5, (4_749, 2_374, 2_375)),
    "twitch-engb": (5, (3_563, 1_781, 1_782)),
    "reed98": (5, (432, 216, 217)),
    "chameleon": (10, (1_092, 729, 456)),
    "squirrel": (10, (2_496, 1_664, 1_041)),
    "actor": (10, (3_648, 2_432, 1_520)),
    "cornell": (10, (87, 59, 37)),
    "texas": (10, (87, 59, 37)),
    "wisconsin": (10, (120, 80, 51)),
    "cora": (10, (1_192, 796, 497)),
    "citeseer": (10, (1_596, 1_065, 666)),
    "pubmed": (10, (9_463, 6_310, 3_944)),
    "tolokers": (10, (5_879, 2_939, 2_940)),
}

HOMOPHILY = {
    "cornell5": (0.5464, 0.0907),
    "amherst41": (0.5306, 0.0598),
    "johns-hopkins55": (0.5488, 0.1064),
    "reed98": (0.5216, 0.0219),
    "wisconsin87": (0.5296, 0.0467),
    "arxiv-year": (0.2218, 0.2720),
    "ogbn-arxiv": (0.655, 0.416),
    "cora": (0.810, 0.766),
    "citeseer": (0.736, 0.627),
    "pubmed": (0.802, 0.664),
    "tolokers": (0.595, 0.187),
    "minesweeper": (0.683, 0.009),
    "deezer-europe": (0.525, 0.030),
    "twitch-de": (0.6322, 0.1421),
    "twitch-engb": (0.5560, 0.0852),
    "chameleon": (0.234, 0.0620),
    "cornell": (0.298, 0.0468),
    "actor": (0.216, 0.0110),
    "squirrel": (0.223, 0.0254),
    "texas": (0.062, 0.0013),
    "wisconsin": (0.170, 0.0941),
}
"""Edge and class homophily of the stored edges, without self-loops."""

ROC_AUC = {"genius", "yelp-chi", "tolokers", "minesweeper", "questions"} | {
    f"twitch-{language}" for language in ("de", "engb", "es", "fr", "ptbr", "ru", "tw")
}


@pytest.fixture(scope="session")
def root(tmp_path_factory) -> Callable[[Path], Path]:
    """A data root with links to the real files and its own stored graphs."""
    folder = tmp_path_factory.mktemp("root")

    def linked(data: Path) -> Path:
        for part in data.iterdir():
            if part.is_dir() and not (folder / part.name).exists():
                (folder / part.name).symlink_to(part)
        (folder / "stored").mkdir(exist_ok=True)
        return folder

    return linked


@pytest.fixture
def real(root, data: Path) -> Callable[[str], Dataset]:
    linked_root = root(data)
    return lambda name: find(name, linked_root)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.long
def test_counts_of_the_real_files(real, name: str):
    graph = real(name).load()
    counts = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
    assert counts == COUNTS[name]
    assert graph.num_loops == LOOPS.get(name, graph.num_loops)
    assert graph.directed == real(name).directed


@pytest.mark.parametrize("name", PAIRS)
def test_undirected_edges_of_the_geom_gcn_graphs(real, name: str):
    graph = real(name).load().to_undirected()
    assert graph.num_edges - graph.num_loops == PAIRS[name]


@pytest.mark.parametrize("name", CLASSES)
def test_class_sizes_of_the_real_files(real, name: str):
    labels = real(name).load().labels
    assert (labels + 1).bincount().tolist() == CLASSES[name]


def homophily(graph: Graph) -> tuple[float, float]:
    """Edge and class homophily by their definitions, over labelled nodes."""
    rows = graph.adjacency
    source = graph.labels[rows.row_indices]
    target = graph.labels[rows.indices.long()]
    loop = rows.row_indices == rows.indices
    counted = (source >= 0) & (target >= 0) & ~loop
    same = (source == target)[counted].double()
    excess = 0.0
    known = graph.labels[graph.labels >= 0]
    for k in range(graph.num_classes):
        own = same[source[counted] == k]
        share = float((known == k).double().mean())
        excess += max(0.0, float(own.mean()) - share) if len(own) else 0.0
    return float(same.mean()), excess / (graph.num_classes - 1)


@pytest.mark.parametrize("name", HOMOPHILY)
def test_homophily_of_the_real_files(real, name: str):
    result = homophily(real(name).load())
    assert result == pytest.approx(HOMOPHILY[name], abs=6e-4)


@pytest.mark.parametrize("name", SPLITS)
def test_splits_of_the_real_files(real, name: str):
    splits = real(name).splits()
    count, sizes = SPLITS[name]
    first = splits[0]
    assert len(splits) == count
    assert (len(first.train), len(first.valid), len(first.test)) == sizes
    labels = real(name).load().labels
    for split in splits:
        ids = torch.cat([split.train, split.valid, split.test])
        assert len(ids.unique()) == len(ids)
        assert (labels[ids] >= 0).all()


def test_two_splits_of_citeseer_are_smaller(real):
    sizes = [len(split.train) for split in real("citeseer").splits()]
    assert [index for index, size in enumerate(sizes) if size == 1_017] == [4, 5]


SHIPPED = {
    "arxiv-year": "arxiv-year",
    "deezer-europe": "deezer-europe",
    "twitch-de": "twitch-e-DE",
    "chameleon": "chameleon",
    "squirrel": "squirrel",
    "actor": "film",
    "cornell": "cornell",
    "texas": "texas",
    "wisconsin": "wisconsin",
}


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.long
def test_splits_equal_the_split_files_of_the_authors(real, data: Path, name: str):
    dataset = real(name)
    path = data / "splits" / f"{SHIPPED[name]}-splits.npy"
    shipped = read_npy_splits(path, dataset.load().num_nodes)
    for ours, theirs in zip(dataset.splits(), shipped, strict=True):
        for part in ("train", "valid", "test"):
            assert torch.equal(getattr(ours, part), getattr(theirs, part).sort().values)


@pytest.mark.parametrize("name", LOOPS)
def test_the_geom_gcn_graphs_are_prepared_as_in_the_paper(real, name: str):
    dataset = real(name)
    stored, graph = dataset.load(), dataset.prepared()
    assert not graph.directed
    assert graph.num_loops == graph.num_nodes
    assert graph.num_edges == PAIRS[name] + graph.num_nodes
    sums = graph.features.to_dense().sum(1)
    filled = stored.features.degrees > 0
    assert torch.allclose(sums[filled], torch.ones(int(filled.sum())))
    assert (stored.features.to_dense() <= 1).all()


def test_cornell_has_labels_of_texas_and_cornell_fixed_its_own(real):
    cornell, texas, fixed = map(real, ("cornell", "texas", "cornell-fixed"))
    assert torch.equal(cornell.load().labels, texas.load().labels)
    assert not torch.equal(fixed.load().labels, texas.load().labels)


def test_bag_of_words_features_are_sparse(real):
    for name in ("cora", "actor", "chameleon", "deezer-europe", "reed98", "twitch-de"):
        assert not isinstance(real(name).load().features, torch.Tensor)


def test_arxiv_year_has_a_note_about_missing_features(real):
    remarks = real("arxiv-year").open_stored().metadata["provenance"]["remarks"]
    assert ["without its 128 features" in remark for remark in remarks] == [True]


@pytest.mark.parametrize("name", COUNTS)
def test_declared_counts_are_those_of_the_files(real, name: str):
    dataset = real(name)
    metadata = {**dataset.open_stored().metadata}
    if dataset.counts and not metadata["num_features"]:
        metadata["num_features"] = dataset.counts.num_features
    assert dataset.count_mismatches(metadata) == []


@pytest.mark.parametrize("name", DATASETS)
def test_declarations_of_every_dataset(name: str):
    dataset = DATASETS[name]
    assert dataset.name == name == name.lower()
    assert (dataset.metric.name == "roc-auc") == (name in ROC_AUC)
    for words in (dataset.about, dataset.label_meaning, dataset.licence):
        assert words
    assert any(year in dataset.citation for year in map(str, range(2000, 2027)))
    assert all(file.mirrors or name == "oeis" for file in dataset.files)
    assert bool(dataset.files) == (dataset.licence != "not released")
    assert not {"/", "\\"} & set(name)


def test_all_hundred_schools_are_declared():
    numbers = sorted(int("".join(filter(str.isdigit, name))) for name in SCHOOLS)
    assert numbers == [number for number in range(1, 101) if number != 94]
    assert len(DATASETS) == 135
