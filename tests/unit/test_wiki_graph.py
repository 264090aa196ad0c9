"""A collection becomes a graph: words become features, views become labels."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike.data.labels import quantile_labels
from unalike.data.store import verify_graph
from unalike.errors import UserError
from unalike.wiki.build import build_graph
from unalike.wiki.collection import SCHEMAS, Collection, writing_collection
from unalike.wiki.text_features import TOKENIZERS

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
        told = {"wiki": "here", "start": None, "dates": {"started": "today"}}
        return writer.commit(told | about)


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
    found = build_graph(
        collect(tmp_path / "c"), tmp_path / "g", vectors=vectors, style=style
    )
    features = found.graph.features
    assert features.numpy().dtype == np.float16
    np.testing.assert_allclose(features.numpy(), np.array(wanted), rtol=1e-3)


def test_the_graph_is_the_collection(tmp_path):
    collection = collect(tmp_path / "c", remarks=["beware"])
    vectors = write_vectors(tmp_path / "glove.txt")
    build_graph(collection, tmp_path / "g", vectors=vectors, classes=3)
    found = verify_graph(tmp_path / "g")
    assert found.names.to_pylist() == [title for _, title, _, _ in PAGES]
    places = {page_id: place for place, (page_id, *_) in enumerate(PAGES)}
    dense = np.zeros((4, 4))
    for source, target in LINKS:
        dense[places[source], places[target]] = 1
    assert (found.graph.adjacency.to_dense().numpy() == dense).all()
    assert found.graph.directed and found.graph.num_edges == len(LINKS)
    assert found.graph.labels.tolist() == [2, -1, 0, 1]
    assert found.about["class_names"] == [
        "20 to 20 views",
        "70 to 70 views",
        "100 to 100 views",
    ]
    assert len(found.splits()) == 5
    made = found.about["provenance"]
    assert made["wiki"] == "here" and made["dates"] == {"started": "today"}
    assert made["tables"] == collection.about["tables"]
    assert made["vectors"]["file"] == "glove.txt" and made["vectors"]["words"] == 6
    assert len(made["vectors"]["sha256"]) == 64
    assert found.remarks() == ["beware"]


def test_without_vectors_there_are_no_features(tmp_path):
    found = build_graph(collect(tmp_path / "c"), tmp_path / "g")
    assert found.graph.features.shape == (4, 0) and found.about["num_features"] == 0
    assert "--vectors" in found.remarks()[0]


@settings(max_examples=25)
@given(
    views=st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=30),
    classes=st.integers(2, 6),
)
def test_labels_are_even_quantiles_of_views(views, classes):
    pages = [(place, f"P{place}", "", count) for place, count in enumerate(views)]
    with TemporaryDirectory() as folder:
        collection = collect(Path(folder) / "c", pages, [])
        found = build_graph(collection, Path(folder) / "g", classes=classes)
        labels = found.graph.labels.tolist()
    told = np.array([np.nan if count is None else count for count in views], float)
    assert labels == quantile_labels(told, classes).tolist()
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
def test_the_paper_cleans_in_its_own_way(text, words):
    style = TOKENIZERS["paper"]
    assert style.words(style.clean(text)) == words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no vectors"),
        ("the 1 2\nof 1\n", "line 2 has 1 numbers instead of 2"),
        ("the 1 2\ngraph 1 two\n", "line 2: could not convert"),
        ("the 1 2\ngraph 1 nan\n", "line 2 holds a number that is too large"),
        ("alone\n", "line 1 is no word"),
        ("x" * (1 << 17), "line 1 is too long"),
    ],
    ids=["empty", "short", "word", "nan", "alone", "long"],
)
def test_damaged_vectors_are_told_by_line(tmp_path, text, message):
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(UserError, match=message):
        build_graph(collect(tmp_path / "c"), tmp_path / "g", vectors=tmp_path / "v.txt")
    assert not (tmp_path / "g").exists()


def test_mistakes_are_told(tmp_path):
    collection = collect(tmp_path / "c")
    with pytest.raises(
        UserError, match=r"nowhere\.txt, the file of word vectors, is not"
    ):
        build_graph(collection, tmp_path / "g", vectors=tmp_path / "nowhere.txt")
    with pytest.raises(UserError, match="Did you mean 'paper'"):
        build_graph(collection, tmp_path / "g", style="papers")
    with pytest.raises(UserError, match="2 classes or more"):
        build_graph(collection, tmp_path / "g", classes=1)
    stray = collect(tmp_path / "stray", links=[(3, 4)])
    with pytest.raises(UserError, match="the page 4, which is missing"):
        build_graph(stray, tmp_path / "g")


@pytest.mark.parametrize("table", [*SCHEMAS])
def test_a_changed_table_is_noticed(tmp_path, table):
    collection = collect(tmp_path / "c")
    path = collection.folder / f"{table}.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{table}.parquet is damaged"):
        build_graph(collection, tmp_path / "g")
    path.unlink()
    with pytest.raises(UserError, match=f"{table}.parquet cannot be read"):
        build_graph(collection, tmp_path / "g")


def test_a_collection_appears_whole_or_not_at_all(tmp_path):
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
def test_what_is_no_collection_is_not_opened(tmp_path, text, message):
    if text is not None:
        (tmp_path / "collection.json").write_text(text)
    with pytest.raises(UserError, match=message):
        Collection.open(tmp_path)
