"""A dataset seen otherwise than usual."""

import pytest
from graphs import suiting

from unalike import RunOptions, UserError, random_splits, run, save_graph
from unalike.experiments.config import DatasetOptions, dataset_hash, options_of_dataset
from unalike.methods.link import LINK
from unalike.training.settings import Training


@pytest.fixture
def source(tmp_path):
    graph = suiting(nodes=60, directed=True)
    splits = random_splits(graph.labels, count=2)
    return save_graph(tmp_path / "graph", graph, splits=splits)


def test_nothing_differs_by_default(source):
    assert DatasetOptions().apply(source) is source
    assert options_of_dataset(source).overrides == {}


def test_edges_both_ways(source):
    seen = DatasetOptions(both_ways=True).apply(source)
    rows = seen.prepared().adjacency.to_dense()
    assert (rows == rows.T).all()
    assert not (source.prepared().adjacency.to_dense() == rows).all()
    assert seen.prepared() is seen.prepared()
    assert (seen.name, seen.metric) == (source.name, source.metric)
    assert len(seen.splits()) == 2


def test_another_metric(source):
    method = LINK(training=Training(epochs=3))
    seen = DatasetOptions(metric="roc-auc").apply(source)
    (usual,) = run(source, method, splits=[0], options=RunOptions())
    (other,) = run(seen, method, splits=[0], options=RunOptions())
    assert (usual.metric, usual.view) == ("accuracy", {})
    assert (other.metric, other.view) == ("roc-auc", {"metric": "roc-auc"})
    assert usual.losses != other.losses
    with pytest.raises(UserError, match="No metric 'auc'"):
        DatasetOptions(metric="auc")


def test_the_fingerprint_is_that_of_the_arrays(source, tmp_path):
    same = save_graph(tmp_path / "same", source.load(), splits=source.splits())
    fewer = save_graph(tmp_path / "fewer", source.load(), splits=source.splits()[:1])
    assert dataset_hash(source) == dataset_hash(same) != dataset_hash(fewer)
    with pytest.raises(UserError, match="graph is not a stored graph; save it first"):
        dataset_hash(DatasetOptions(both_ways=True).apply(source))
