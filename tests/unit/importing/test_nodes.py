"""Node tables: order, labels, splits and features, the same from CSV and Parquet."""

import csv
import datetime
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import ImportOptions, UserError, import_graph, open_graph
from unalike.data.adjacency import Adjacency
from unalike.importing import parquet, readers
from unalike.importing.api import FeatureEncoder
from unalike.importing.readers import open_tables

DAY = datetime.date(1970, 1, 11)


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\nb,a\nc,b\n")
    return path


def write(path, columns):
    """The same table as Parquet or, by its ending, as CSV."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
        return path
    rows = zip(*(list(column) for column in columns.values()), strict=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *rows])
    return path


def load(tmp_path, edges, columns, ending="csv", **options):
    nodes = write(tmp_path / f"nodes.{ending}", columns)
    summary = import_graph(
        [edges],
        [nodes],
        out=tmp_path / ending,
        options=ImportOptions(**{"id": "id", "scale": "none"} | options),
    )
    return open_graph(tmp_path / ending), summary


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nodes_keep_the_order_of_their_table(tmp_path, edges, ending):
    ids = {"id": ["c", "lonely", "a", "b"]}
    stored, summary = load(tmp_path, edges, ids, ending)
    assert stored.names.to_pylist() == ["c", "lonely", "a", "b"]
    rows = [
        stored.graph.adjacency[torch.tensor([i])].indices.tolist() for i in range(4)
    ]
    assert rows == [[3], [], [3], [0, 2]]
    assert summary.isolated == 1
    assert stored.graph.features.shape == (4, 0)


def test_a_node_with_only_incoming_edges_is_not_isolated(tmp_path, edges):
    ids = {"id": ["c", "lonely", "a", "b"]}
    stored, summary = load(tmp_path, edges, ids, directed=True)
    assert stored.graph.adjacency.degrees.tolist() == [1, 0, 0, 1]
    assert summary.isolated == 1


def test_a_column_without_any_value_has_no_width(tmp_path, edges):
    columns = {"id": [*"abc"], "empty": [None] * 3, "x": [1, 2, 3]}
    for ending in ("csv", "parquet"):
        stored, _ = load(tmp_path, edges, columns, ending)
        assert stored.graph.features.to_dense().tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["y", None, "x", "y"], ["x", "y"], [1, -1, 0, 1]),
        ([10, None, 9, 10], [9, 10], [1, -1, 0, 1]),
        ([10.0, float("nan"), 9.0, 10.0], [9, 10], [1, -1, 0, 1]),
        ([True, None, False, True], ["false", "true"], [1, -1, 0, 1]),
        (["01", "", "02", "nan"], ["01", "02"], [0, -1, 1, -1]),
        (["b", "NULL", "a", " "], ["a", "b"], [1, -1, 0, -1]),
    ],
)
def test_labels_may_be_numbers_booleans_or_text(
    tmp_path, edges, labels, classes, numbers
):
    columns = {"id": ["a", "b", "c", "d"], "kind": labels}
    for ending in ("csv", "parquet"):
        stored, summary = load(tmp_path, edges, columns, ending, label="kind")
        assert stored.metadata["class_names"] == classes
        assert stored.graph.labels.tolist() == numbers
        assert stored.graph.num_classes == 2
        assert summary.unlabelled == numbers.count(-1)
        assert [name for name, _ in summary.classes] == classes


def test_float_labels_that_floats_round_are_merged(tmp_path, edges):
    columns = {"id": [*"abc"], "kind": [1.0, 2.0**53, 2.0**53 + 2]}
    with pytest.raises(UserError, match="label 'kind' 9007199254740992 is too large"):
        load(tmp_path, edges, columns, "parquet", label="kind")


def test_random_splits_come_from_the_seed_and_hold_labelled_nodes(tmp_path, edges):
    columns = {
        "id": ["a", "b", "c", *range(97)],
        "kind": [None, *"xy" * 49, "x"],
    }
    columns["id"] = list(map(str, columns["id"]))
    same = [
        load(tmp_path / name, edges, columns, label="kind", splits=3, seed=seed)[0]
        for name, seed in (("1", 4), ("2", 4), ("3", 5))
        if not (tmp_path / name).mkdir()
    ]
    splits = [stored.array("splits") for stored in same]
    assert splits[0].shape == (3, 100)
    assert (splits[0] == splits[1]).all()
    assert (splits[0] != splits[2]).any()
    assert (splits[0][:, 0] == -1).all()
    assert [(splits[0][0] == part).sum() for part in (0, 1, 2)] == [49, 24, 26]


def test_a_split_column_is_the_split(tmp_path, edges):
    columns = {
        "id": [*"abcdef"],
        "kind": ["x", "y", "x", "y", None, "x"],
        "part": ["train", "VAL", "test", "validation", "train", None],
    }
    stored, summary = load(tmp_path, edges, columns, label="kind", split="part")
    (split,) = stored.splits()
    assert split.train.tolist() == [0]
    assert split.valid.tolist() == [1, 3]
    assert split.test.tolist() == [2]
    assert summary.splits == [{"train": 1, "valid": 2, "test": 1}]
    assert summary.notes == ["1 nodes of the split have no label and are left out."]


COLUMNS = {
    "id": ["a", "b", "c"],
    "age": [1.5, 0.0, -2.0],
    "count": [2**40, 0, 3],
    "price": [Decimal("1.25"), Decimal("0.00"), Decimal("2.50")],
    "member": [True, False, True],
    "born": [DAY, DAY, datetime.date(1969, 12, 31)],
    "seen": [datetime.datetime(1970, 1, 2, 12)] * 3,
    "town": ["Oslo", None, "Bonn"],
}
FEATURES = [
    [1.5, 2**40, 1.25, 1, 10, 1.5, 0, 1],
    [0, 0, 0, 0, 10, 1.5, 0, 0],
    [-2, 3, 2.5, 1, -1, 1.5, 1, 0],
]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_kind_of_column_becomes_features(tmp_path, edges, ending):
    stored, summary = load(tmp_path, edges, COLUMNS, ending)
    assert stored.graph.features.to_dense().tolist() == FEATURES
    kinds = [
        (column["name"], column["kind"])
        for column in stored.metadata["feature_columns"]
    ]
    assert kinds == [
        ("age", "numeric"),
        ("count", "numeric"),
        ("price", "numeric"),
        ("member", "boolean"),
        ("born", "date"),
        ("seen", "date"),
        ("town", "category"),
    ]
    assert stored.metadata["feature_columns"][-1]["categories"] == ["Bonn", "Oslo"]
    assert (summary.features, summary.one_hot_columns) == (8, 2)


def test_the_encoder_of_a_graph_encodes_nodes_that_come_later(tmp_path, edges):
    stored, _ = load(tmp_path, edges, COLUMNS, "csv")
    encoder = FeatureEncoder.from_dict(stored.metadata["feature_columns"])
    later = write(
        tmp_path / "later.parquet", {**COLUMNS, "town": ["Rome", "Oslo", None]}
    )
    (table,) = open_tables([later])
    (batch,) = table.batches(encoder.names)
    expected = np.array(FEATURES, np.float32)
    expected[:, 6:] = [[0, 0], [0, 1], [0, 0]]
    assert (encoder.dense(batch) == expected).all()
    assert (encoder.sparse(batch).toarray() == expected).all()


def test_columns_are_chosen_left_out_and_read_as_categories(tmp_path, edges):
    columns = {"id": [*"abc"], "x": [1, 2, 3], "zip": [10, 20, 10], "y": [5, 6, 7]}
    graphs = [
        load(tmp_path / name, edges, columns, **options)[0]
        for name, options in {
            "1": {"features": ("y", "x")},
            "2": {"ignore": ("x", "y")},
            "3": {"ignore": ("x", "y"), "categories": ("zip",)},
        }.items()
        if not (tmp_path / name).mkdir()
    ]
    dense = [stored.graph.features.to_dense().tolist() for stored in graphs]
    assert dense[0] == [[5, 1], [6, 2], [7, 3]]
    assert dense[1] == [[10], [20], [10]]
    assert dense[2] == [[1, 0], [0, 1], [1, 0]]


def test_features_are_sparse_where_that_is_smaller(tmp_path, edges):
    ids = ["a", "b", "c", *(f"n{i}" for i in range(60))]
    towns = [f"town {i % 20}" for i in range(63)]
    stored, summary = load(tmp_path, edges, {"id": ids, "town": towns})
    assert summary.sparse
    assert isinstance(stored.graph.features, Adjacency)
    assert stored.graph.features.values is None
    weighted, _ = load(
        tmp_path, edges, {"id": ids, "town": towns, "size": range(63)}, "parquet"
    )
    assert weighted.graph.features.values is not None
    dense = weighted.graph.features.to_dense()
    assert (dense[:, :20] == stored.graph.features.to_dense()).all()
    assert dense[:, 20].tolist() == list(range(63))


def test_the_type_of_a_column_may_change_late(tmp_path, edges, monkeypatch):
    monkeypatch.setattr(readers, "CSV_BLOCK_BYTES", 48)
    ids = ["a", "b", "c", *(f"node-{i}" for i in range(40))]
    late = ["true"] * 10 + ["7"] * 20 + ["word"] * 13
    numbers = ["1"] * 42 + ["2.5"]
    stored, _ = load(tmp_path, edges, {"id": ids, "late": late, "number": numbers})
    columns = {column["name"]: column for column in stored.metadata["feature_columns"]}
    assert columns["late"]["categories"] == ["7", "true", "word"]
    assert columns["number"]["kind"] == "numeric"
    assert stored.graph.features.to_dense().sum(0).tolist() == [20, 10, 13, 44.5]


def test_one_category_per_node_gives_a_note(tmp_path, edges):
    ids = ["a", "b", "c", *(f"n{i}" for i in range(150))]
    _, summary = load(tmp_path, edges, {"id": ids, "name": ids})
    assert summary.notes == [
        "The column 'name' has 153 categories; --ignore name leaves it out."
    ]


def test_edges_to_unknown_nodes_are_dropped_on_request(tmp_path, edges):
    stored, summary = load(tmp_path, edges, {"id": ["a", "b"]}, unknown="drop")
    assert (summary.edges, summary.dropped) == (1, 1)
    assert stored.names.to_pylist() == ["a", "b"]


def test_several_node_tables_follow_each_other(tmp_path, edges):
    first = write(tmp_path / "1.csv", {"id": ["c"], "kind": ["x"]})
    second = write(tmp_path / "2.parquet", {"id": ["b", "a"], "kind": ["y", None]})
    options = ImportOptions(label="kind")
    import_graph([edges], [first, second], out=tmp_path / "g", options=options)
    stored = open_graph(tmp_path / "g")
    assert stored.names.to_pylist() == ["c", "b", "a"]
    assert stored.graph.labels.tolist() == [0, 1, -1]


def test_a_column_that_differs_in_kind_between_tables_is_a_category(tmp_path, edges):
    first = write(tmp_path / "1.parquet", {"id": ["c"], "x": [True]})
    second = write(tmp_path / "2.parquet", {"id": ["b", "a"], "x": [4, 5]})
    import_graph([edges], [first, second], out=tmp_path / "g")
    (column,) = open_graph(tmp_path / "g").metadata["feature_columns"]
    assert column["categories"] == ["4", "5", "true"]


VALUES = {
    "number": st.floats(-1e6, 1e6, width=32),
    "integer": st.integers(-1000, 1000),
    "truth": st.booleans(),
    "day": st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)),
    "word": st.sampled_from(["red", "green", "blue", None]),
}


@settings(max_examples=25)
@given(
    st.integers(1, 20).flatmap(
        lambda size: st.fixed_dictionaries(
            {
                name: st.lists(values, min_size=size, max_size=size)
                for name, values in VALUES.items()
            }
        )
    )
)
@pytest.mark.long
def test_any_node_table_is_the_same_from_csv_and_parquet(columns):
    size = len(columns["word"])
    columns = {"id": list(range(size)), **{name: columns[name] for name in VALUES}}
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "CSV_BLOCK_BYTES", 128)
        patch.setattr(parquet, "MIN_ROWS", 3)
        patch.setattr(parquet, "BATCH_VALUES", 1)
        folder = Path(name)
        edges = write(folder / "edges.csv", {"u": [0], "v": [0]})
        stored, _ = load(folder, edges, columns, "csv")
        other, _ = load(folder, edges, columns, "parquet")
        features = stored.graph.features.to_dense()
        assert (features == other.graph.features.to_dense()).all()
        assert features[:, 0].tolist() == columns["number"]
        assert features[:, 1].tolist() == columns["integer"]
        assert features[:, 2].bool().tolist() == columns["truth"]
        days = [day.toordinal() - 719_163 for day in columns["day"]]
        assert features[:, 3].tolist() == days


def test_options_of_nodes_need_a_node_table(tmp_path, edges):
    with pytest.raises(UserError, match="--label needs a node table"):
        import_graph([edges], out=tmp_path / "g", options=ImportOptions(label="x"))
