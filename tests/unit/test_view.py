"""A dataset seen otherwise than usual."""

import pytest
from graphs import suiting

from unalike import Place, UserError, random_splits, run, save_graph
from unalike.experiments.fingerprint import fingerprint
from unalike.experiments.view import View, view_of
from unalike.methods.link import LINK
from unalike.training.settings import Training


@pytest.fixture
def source(tmp_path):
    graph = suiting(nodes=60, directed=True)
    splits = random_splits(graph.labels, count=2)
    return save_graph(tmp_path / "graph", graph, splits=splits)


def test_nothing_differs_by_default(source):
    assert View().of(source) is source
    assert view_of(source).changes == {}


def test_edges_both_ways(source):
    seen = View(both_ways=True).of(source)
    rows = seen.prepared().adjacency.to_dense()
    assert (rows == rows.T).all()
    assert not (source.prepared().adjacency.to_dense() == rows).all()
    assert seen.prepared() is seen.prepared()
    assert (seen.name, seen.metric) == (source.name, source.metric)
    assert len(seen.splits()) == 2


def test_another_metric(source):
    method = LINK(training=Training(epochs=3))
    seen = View(metric="roc-auc").of(source)
    (usual,) = run(source, method, splits=[0], place=Place())
    (other,) = run(seen, method, splits=[0], place=Place())
    assert (usual.metric, usual.view) == ("accuracy", {})
    assert (other.metric, other.view) == ("roc-auc", {"metric": "roc-auc"})
    assert usual.losses != other.losses
    with pytest.raises(UserError, match="No metric 'auc'"):
        View(metric="auc")


def test_the_fingerprint_is_that_of_the_arrays(source, tmp_path):
    same = save_graph(tmp_path / "same", source.load(), splits=source.splits())
    fewer = save_graph(tmp_path / "fewer", source.load(), splits=source.splits()[:1])
    assert fingerprint(source) == fingerprint(same) != fingerprint(fewer)
    with pytest.raises(UserError, match="graph is not a stored graph; save it first"):
        fingerprint(View(both_ways=True).of(source))
