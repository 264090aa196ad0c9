"""Columns of lists: words and whole numbers become 0 and 1, vectors stay numbers."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unalike import ImportOptions, UserError, import_graph, open_graph
from unalike.importing.features import FeatureEncoder
from unalike.importing.readers import open_tables

TAGS = [[1, 4, 7], [7, 7], None, []]
VECTORS = [[0.5, -1.0], [2.0, 3.0], None, [0.0, 1.5]]


def as_json(lists):
    return ["" if one is None else json.dumps(one) for one in lists]


def as_python(lists):
    return ["" if one is None else repr(one) for one in lists]


def imported(tmp_path, values, **options):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n")
    pq.write_table(pa.table({"id": range(4), "x": values}), tmp_path / "nodes.parquet")
    summary = import_graph(
        tmp_path / "edges.csv",
        tmp_path / "nodes.parquet",
        out=tmp_path / "g",
        options=ImportOptions(**options),
    )
    return open_graph(tmp_path / "g"), summary


FORMS = {"json": as_json, "python": as_python, "arrow": lambda lists: lists}


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_whole_numbers_are_categories(tmp_path, form):
    stored, summary = imported(tmp_path, FORMS[form](TAGS))
    expected = [[1, 1, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert stored.graph.features.to_dense().tolist() == expected
    assert summary.one_hot_columns == 3
    (column,) = stored.metadata["feature_columns"]
    assert column["categories"] == ["1", "4", "7"]


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_words_are_categories(tmp_path, form):
    words = [["new", "a, b"], ["new"], None, ["it's"]]
    stored, _ = imported(tmp_path, FORMS[form](words))
    expected = [[1, 0, 1], [0, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert stored.graph.features.to_dense().tolist() == expected


@pytest.mark.parametrize("form", FORMS)
def test_vectors_of_one_length_are_numbers(tmp_path, form):
    stored, _ = imported(tmp_path, FORMS[form](VECTORS))
    expected = [[0.5, -1], [2, 3], [0, 0], [0, 1.5]]
    assert stored.graph.features.to_dense().tolist() == expected


@pytest.mark.parametrize(
    ("odd", "categories"),
    [('["\\ud800"]', 4), (f"[{'9' * 400}]", 6)],
    ids=["half", "huge"],
)
def test_lists_of_what_no_array_holds_are_categories(tmp_path, odd, categories):
    stored, _ = imported(tmp_path, ["[0.5, 1]", odd, "[2, 3.5]", "[1.5, 2]"])
    assert stored.graph.num_features == categories


def test_text_that_is_no_list_stays_a_category(tmp_path):
    stored, _ = imported(tmp_path, ["[1, 2]", "[draft]", "[1, 2]", "[[1]]"])
    assert stored.graph.num_features == 3


def test_vectors_of_different_lengths_are_lists(tmp_path):
    stored, _ = imported(tmp_path, [[0.5], [0.5, 1.5], [], None])
    assert stored.graph.features.to_dense().tolist() == [[1, 0], [1, 1], [0, 0], [0, 0]]


def test_long_lists_are_stored_as_a_sparse_matrix(tmp_path):
    lists = [list(range(4000 * i, 4000 * i + 5)) for i in range(4)]
    stored, summary = imported(tmp_path, as_json(lists))
    assert summary.sparse
    assert stored.graph.features.nnz == 20
    assert stored.graph.features.values is None


def test_new_rows_are_encoded_by_the_stored_columns(tmp_path):
    stored, _ = imported(tmp_path, TAGS)
    encoder = FeatureEncoder.from_dict(stored.metadata["feature_columns"])
    (tmp_path / "new.csv").write_text('id,x\n9,"[4, 99, 4]"\n10,\n')
    (table,) = open_tables([tmp_path / "new.csv"])
    (batch,) = table.batches(["x"])
    assert encoder.dense(batch).tolist() == [[0, 1, 0], [0, 0, 0]]
    assert np.array_equal(encoder.sparse(batch).toarray(), encoder.dense(batch))


@pytest.mark.parametrize(
    ("value", "message"),
    [("[1.5]", "of another length"), ("red", "not a vector"), ("[NaN, 1.0]", "finite")],
)
def test_a_new_vector_that_does_not_fit_is_an_error(tmp_path, value, message):
    stored, _ = imported(tmp_path, VECTORS)
    encoder = FeatureEncoder.from_dict(stored.metadata["feature_columns"])
    (tmp_path / "new.csv").write_text(f'id,x\n9,"{value}"\n')
    (table,) = open_tables([tmp_path / "new.csv"])
    (batch,) = table.batches(["x"])
    with pytest.raises(UserError, match=message):
        encoder.dense(batch)
