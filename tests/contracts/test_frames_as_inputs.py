"""Frames of every engine as inputs of NodeClassifier, of read_graph and of models."""

import gc
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from engines import each_engine, frames, random_tables

import unalike
from unalike import ImportOptions, NodeClassifier, UserError
from unalike.errors import InputError

OPTIONS = ImportOptions(label="kind", ignore=("part",), splits=0)


def linkx():
    return NodeClassifier("linkx").set_params(method__hidden=4, method__epochs=5)


@pytest.fixture
def deals_and_people():
    return random_tables(0)


def new_tables(deals, people):
    """Two nodes with other ids, and edges from them to known ones."""
    known = people["id"].to_pylist()
    ids = [5_000, 6_000]
    return (
        pa.table({"source": [ids[1], ids[0], ids[1]], "target": known[:3]}),
        pa.table({"id": ids, "x": [1.0, 2.0], "y": [0.0, 3.0]}),
    )


@each_engine
def test_a_classifier_learns_from_frames_and_scores_new_nodes(engine, deals_and_people):
    given, new = frames(engine, *deals_and_people), new_tables(*deals_and_people)
    classifier = linkx().fit(given[0], nodes=given[1], options=OPTIONS)
    stored = unalike.read_graph(*deals_and_people, options=OPTIONS)
    expected = linkx().fit(stored)
    np.testing.assert_array_equal(classifier.predict_proba(), expected.predict_proba())
    edges, nodes = frames(engine, *new)
    found = classifier.predict_proba(edges, nodes=nodes)
    pairs = [(1, 0), (0, 1), (1, 2)]
    known = deals_and_people[1]["id"].to_pylist()
    rows = [(row, known[column]) for row, column in pairs]
    by_rows = expected.model_.predict(
        rows, expected.model_.encoder.dense(one_batch(new[1]))
    )
    np.testing.assert_allclose(found, by_rows.probabilities, rtol=1e-6)
    best = np.array(expected.classes_)[found.argmax(1)]
    assert classifier.predict(edges, nodes=nodes).tolist() == best.tolist()
    table = classifier.model_.predict_tables(edges, nodes)
    assert table["id"].to_pylist() == new[1]["id"].to_pylist()
    assert table["class"].to_pylist() == best.tolist()


def one_batch(table):
    """The rows of a table as a reader of node tables gives them."""
    from unalike.importing.frames import FrameTable

    (batch,) = FrameTable.of(table, "nodes").batches(["x", "y"])
    return batch


def array_hashes(stored):
    arrays = stored.metadata["arrays"]
    return {name: facts["sha256"] for name, facts in arrays.items()}


def test_a_graph_of_tables_has_the_arrays_of_an_import_and_leaves_no_file(
    deals_and_people, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    Path(tmp_path / "temporary").mkdir()
    unalike.import_graph(*deals_and_people, out=tmp_path / "kept", options=OPTIONS)
    expected = unalike.open_graph(tmp_path / "kept").metadata["arrays"]
    stored = unalike.read_graph(*deals_and_people, options=OPTIONS)
    hashes = {
        name: facts["sha256"] for name, facts in stored.metadata["arrays"].items()
    }
    assert hashes == {name: facts["sha256"] for name, facts in expected.items()}
    graph = stored.graph
    edges = graph.num_edges
    del stored
    gc.collect()
    assert not any((tmp_path / "temporary").iterdir())
    assert unalike.measure(graph)["num_edges"] == edges  # The arrays stay mapped.


def test_a_failed_read_leaves_no_file(deals_and_people, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UserError, match="no column 'colour'"):
        unalike.read_graph(*deals_and_people, options=ImportOptions(label="colour"))
    assert not any(tmp_path.iterdir())


def test_labels_beside_a_table_of_nodes_are_refused(deals_and_people):
    deals, people = deals_and_people
    with pytest.raises(InputError, match="labels and features are its columns"):
        NodeClassifier().fit(deals, people["kind"], nodes=people)


def test_a_method_without_a_model_scores_no_tables(deals_and_people):
    deals, people = deals_and_people
    classifier = NodeClassifier("label-propagation")
    classifier.fit(deals, nodes=people, options=OPTIONS)
    assert len(classifier.predict()) == len(people)
    with pytest.raises(InputError, match="nodes that it was fitted on alone"):
        classifier.predict(deals, nodes=people)


def test_a_table_of_nodes_without_a_row_is_refused(deals_and_people):
    deals, people = deals_and_people
    classifier = linkx().fit(deals, nodes=people, options=OPTIONS)
    edges, nodes = new_tables(deals, people)
    with pytest.raises(UserError, match="the table of nodes has no rows"):
        classifier.predict(edges, nodes=nodes[:0])
