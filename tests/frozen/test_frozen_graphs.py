"""Stored graphs of c1b98d6 open, and imports and real graphs have the same hashes."""

import gzip
import json

import pytest
from commands import (
    FORMATS,
    IMPORT,
    PEOPLE,
    REAL_SCORES,
    STATISTICS,
    STORED_RUNS,
    WHOLE_STATISTICS,
    WORDS,
    array_hashes,
    call,
    contents,
    dataset_hashes,
    document,
    frozen,
    scores,
    sha256,
    statistics,
    table_words,
)

import unalike


@pytest.mark.parametrize("folder", [PEOPLE, WORDS], ids=lambda folder: folder.name)
def test_a_stored_graph_opens_as_the_same_graph(folder):
    expected = frozen("graphs")[folder.name]
    unalike.verify_graph(folder)
    found = contents(folder)
    assert found == {name: expected[name] for name in found}


@pytest.mark.parametrize("folder", [PEOPLE, WORDS], ids=lambda folder: folder.name)
def test_measures_of_a_stored_graph_are_the_same(folder):
    """Measures may be added, but none is lost."""
    found = flat(document("measure", folder))
    expected = flat(frozen("graphs")[folder.name]["measures"])
    assert {key: found[key] for key in expected} == pytest.approx(expected)


def flat(found, path=""):
    """The values of a JSON document by their path."""
    if isinstance(found, dict | list):
        pairs = found.items() if isinstance(found, dict) else enumerate(found)
        return {
            key: value
            for name, one in pairs
            for key, value in flat(one, f"{path}/{name}").items()
        }
    return {path: found}


def test_an_import_writes_the_same_arrays(tmp_path):
    call(*IMPORT, "--out", tmp_path / "people")
    assert array_hashes(tmp_path / "people") == frozen("graphs")["people"]["arrays"]


def test_a_stored_graph_saved_again_has_the_same_arrays(tmp_path):
    stored = unalike.open_graph(WORDS)
    unalike.save_graph(tmp_path / "words", stored.graph, splits=stored.splits())
    assert array_hashes(tmp_path / "words") == frozen("graphs")["words"]["arrays"]


@pytest.mark.long
def test_dataset_hashes_of_real_graphs_and_twins(real_graphs, tmp_path):
    assert dataset_hashes(tmp_path) == frozen("dataset_hashes")


def test_frozen_dataset_hashes_are_those_of_stored_runs():
    with gzip.open(STORED_RUNS, "rt", encoding="utf-8") as file:
        rows = map(json.loads, list(file)[1::5])
        stored = {row["dataset"]: row["dataset_hash"] for row in rows}
    expected = frozen("dataset_hashes")
    both = stored.keys() & expected.keys()
    assert len(both) == 11
    assert {name: stored[name] for name in both} == {
        name: expected[name] for name in both
    }


@pytest.mark.parametrize("table", STATISTICS)
def test_tables_of_real_graphs_have_the_same_lines(real_graphs, table):
    expected = frozen("statistics")[table]
    found = set(statistics(table))
    assert [line for line in expected if line not in found] == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_whole_table_of_real_graphs_is_the_same_bytes(real_graphs, form):
    text = call(*table_words((WHOLE_STATISTICS,), form))
    assert sha256(text) == frozen("whole_statistics")[form], text


@pytest.mark.parametrize("name", REAL_SCORES)
def test_scores_on_a_real_graph_are_the_same(real_graphs, name):
    found = scores(document("train", *REAL_SCORES[name]))
    for one, expected in zip(found, frozen("real_scores")[name], strict=True):
        assert one == pytest.approx(expected)
