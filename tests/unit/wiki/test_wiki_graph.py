"""Graphs built from a collection: words are features, views are labels."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike.data.graph import quantile_labels
from unalike.data.store import verify_graph
from unalike.errors import UserError
from unalike.progress import NO_PROGRESS
from unalike.wiki.build import build_graph
from unalike.wiki.collection import SCHEMAS, Collection, writing_collection
from unalike.wiki.text_features import TOKENIZERS, Vocabulary, WordVectors

VECTORS = {
    "graph": [1.0, 2.0, 3.0],
    "theory": [0.5, -1.0, 0.0],
    "a": [0.25, 0.0, 0.0],
    "Graph": [8.0, 8.0, 8.0],
    "theory.": [4.0, 0.0, 0.0],
    ". . .": [9.0, 9.0, 9.0],
}
PAGES = [
    (3, "Graph theory", "A graph,\nin theory.", 100),
    (5, "Unknown words", "", None),
    (9, "Graph (a)", "Graph    theory. {x} a {y} Graph", 20),
    (12, "Théorie", "THEORY'S a-graph", 70),
]
LINKS = [(3, 5), (3, 12), (9, 3), (12, 3), (12, 9)]


def collect(folder: Path, pages=PAGES, links=LINKS, **about) -> Collection:
    rows = {"pages": pages, "links": links, "aliases": [("T", 3)], "missing": [("X",)]}
    with writing_collection(folder) as writer:
        for name, schema in SCHEMAS.items():
            with writer.table(name) as table:
                dicts = [
                    dict(zip(schema.names, row, strict=True)) for row in rows[name]
                ]
                table.write_table(pa.Table.from_pylist(dicts, schema=schema))
        metadata = {"wiki": "here", "start": None, "dates": {"started": "today"}}
        return writer.commit(metadata | about)


def write_vectors(path: Path, header: str = "") -> Path:
    lines = [f"{word} {' '.join(map(str, row))}\n" for word, row in VECTORS.items()]
    path.write_text(header + "".join(lines), "utf-8")
    return path


def mean(words, counted=None):
    rows = [VECTORS[word] for word in words if word in VECTORS] or [[0.0] * 3]
    return np.sum(rows, 0) / (counted or len(rows))


PLAIN = [
    [*mean(["graph", "theory"]), *mean(["a", "graph", "theory"])],
    [0.0] * 6,
    [*mean(["graph", "a"]), *mean(["graph", "theory", "a", "graph"])],
    [*mean([]), *mean(["theory", "a", "graph"])],
]
PAPER = [
    [*mean(["Graph", "theory"]), *mean(["theory."], 3)],
    [0.0] * 6,
    [*mean(["Graph"], 2), *mean([])],
    [0.0] * 6,
]


@pytest.mark.parametrize(("style", "wanted"), [("plain", PLAIN), ("paper", PAPER)])
@pytest.mark.parametrize("header", ["", "6 3\n"], ids=["glove", "word2vec"])
def test_features_are_means_of_word_vectors(tmp_path, style, wanted, header):
    vectors = write_vectors(tmp_path / "glove.txt", header)
    stored = build_graph(
        collect(tmp_path / "c"), tmp_path / "g", vectors=vectors, style=style
    )
    features = stored.graph.features
    assert features.numpy().dtype == np.float16
    np.testing.assert_allclose(features.numpy(), np.array(wanted), rtol=1e-3)


def test_the_graph_has_the_pages_and_links_of_the_collection(tmp_path):
    collection = collect(tmp_path / "c", remarks=["beware"])
    vectors = write_vectors(tmp_path / "glove.txt")
    build_graph(collection, tmp_path / "g", vectors=vectors, classes=3)
    stored = verify_graph(tmp_path / "g")
    assert stored.names.to_pylist() == [title for _, title, _, _ in PAGES]
    index_of = {page_id: i for i, (page_id, *_) in enumerate(PAGES)}
    dense = np.zeros((4, 4))
    for source, target in LINKS:
        dense[index_of[source], index_of[target]] = 1
    assert (stored.graph.adjacency.to_dense().numpy() == dense).all()
    assert stored.graph.directed and stored.graph.num_edges == len(LINKS)
    assert stored.graph.labels.tolist() == [2, -1, 0, 1]
    assert stored.metadata["class_names"] == [
        "20 to 20 views",
        "70 to 70 views",
        "100 to 100 views",
    ]
    assert len(stored.splits()) == 5
    made = stored.metadata["provenance"]
    assert made["wiki"] == "here" and made["dates"] == {"started": "today"}
    assert made["tables"] == collection.metadata["tables"]
    assert made["vectors"]["file"] == "glove.txt" and made["vectors"]["words"] == 6
    assert len(made["vectors"]["sha256"]) == 64
    assert stored.remarks() == ["beware"]


def test_without_vectors_there_are_no_features(tmp_path):
    stored = build_graph(collect(tmp_path / "c"), tmp_path / "g")
    assert (
        stored.graph.features.shape == (4, 0) and stored.metadata["num_features"] == 0
    )
    assert "--vectors" in stored.remarks()[0]


@settings(max_examples=25)
@given(
    views=st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=30),
    classes=st.integers(2, 6),
)
def test_labels_are_quantiles_of_views(views, classes):
    pages = [(i, f"P{i}", "", count) for i, count in enumerate(views)]
    with TemporaryDirectory() as folder:
        collection = collect(Path(folder) / "c", pages, [])
        stored = build_graph(collection, Path(folder) / "g", classes=classes)
        labels = stored.graph.labels.tolist()
    values = np.array([np.nan if count is None else count for count in views], float)
    assert labels == quantile_labels(values, classes).tolist()
    assert [label < 0 for label in labels] == [count is None for count in views]


@given(st.text())
def test_plain_words_are_lower_case_letters_and_digits(text):
    words = TOKENIZERS["plain"].words(text)
    assert all(word == word.lower() and not re.search(r"[\W_]", word) for word in words)
    assert "".join(words) == "".join(re.findall(r"[^\W_]", text.lower()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one two\nthree", ["one", "twothree"]),
        ("a {b} c {d} e", ["ae"]),
        ("so    far, So good.", ["sofar,", "So", "good."]),
        ("open { brace", ["open", "{", "brace"]),
    ],
)
def test_the_paper_style_cleans_text_as_the_paper(text, words):
    style = TOKENIZERS["paper"]
    assert style.words(style.clean(text)) == words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no vectors"),
        ("the 1 2\nof 1\n", "line 2 has 1 numbers instead of 2"),
        ("the 1 2\ngraph 1 two\n", "line 2: could not convert"),
        ("the 1 2\ngraph 1 nan\n", "line 2 has a number that is too large"),
        ("alone\n", "line 1 is no word"),
        ("x" * (1 << 17), "line 1 is too long"),
    ],
    ids=["empty", "short", "word", "nan", "alone", "long"],
)
def test_damaged_vectors_are_errors_with_the_line(tmp_path, text, message):
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(UserError, match=message):
        build_graph(collect(tmp_path / "c"), tmp_path / "g", vectors=tmp_path / "v.txt")
    assert not (tmp_path / "g").exists()


def test_invalid_arguments_are_errors(tmp_path):
    collection = collect(tmp_path / "c")
    with pytest.raises(UserError, match=r"no file of word vectors .*nowhere\.txt"):
        build_graph(collection, tmp_path / "g", vectors=tmp_path / "nowhere.txt")
    with pytest.raises(UserError, match="Did you mean 'paper'"):
        build_graph(collection, tmp_path / "g", style="papers")
    with pytest.raises(UserError, match="2 classes or more"):
        build_graph(collection, tmp_path / "g", classes=1)
    stray = collect(tmp_path / "stray", links=[(3, 4)])
    with pytest.raises(UserError, match="the page 4, which is missing"):
        build_graph(stray, tmp_path / "g")


@pytest.mark.parametrize("table", [*SCHEMAS])
def test_a_changed_table_is_an_error(tmp_path, table):
    collection = collect(tmp_path / "c")
    path = collection.folder / f"{table}.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{table}.parquet is damaged"):
        build_graph(collection, tmp_path / "g")
    path.unlink()
    with pytest.raises(UserError, match=f"{table}.parquet cannot be read"):
        build_graph(collection, tmp_path / "g")


def test_an_incomplete_collection_is_not_written(tmp_path):
    with pytest.raises(ZeroDivisionError), writing_collection(tmp_path / "c") as writer:
        with writer.table("missing") as table:
            table.write_table(SCHEMAS["missing"].empty_table())
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    collect(tmp_path / "c")
    with pytest.raises(UserError, match="exists already"):
        collect(tmp_path / "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no collection"),
        ("{", "damaged"),
        ("[]", "does not describe"),
        (json.dumps({"tables": {}, "format": 99}), "format 99"),
    ],
    ids=["absent", "broken", "list", "newer"],
)
def test_a_folder_without_valid_metadata_is_not_opened(tmp_path, text, message):
    if text is not None:
        (tmp_path / "collection.json").write_text(text)
    with pytest.raises(UserError, match=message):
        Collection.open(tmp_path)


def test_the_file_of_word_vectors_has_disk_blocks_before_it_is_mapped(tmp_path: Path):
    path = write_vectors(tmp_path / "vectors.txt")
    vocabulary = Vocabulary.read(path, NO_PROGRESS)
    absent = {f"absent{number}" for number in range(1 << 16)}
    scratch = tmp_path / "scratch"
    vectors = WordVectors.read(vocabulary, absent | {"graph"}, scratch, NO_PROGRESS)
    assert vectors.row_of == {"graph": 0}
    assert vectors.rows[0].tolist() == VECTORS["graph"]
    assert 512 * scratch.stat().st_blocks >= scratch.stat().st_size == 12 * (2**16 + 1)
