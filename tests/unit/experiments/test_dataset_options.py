"""A dataset seen otherwise than usual."""

import numpy as np
import pytest
from graphs import suiting

from unalike import RunOptions, UserError, random_splits, run, save_graph
from unalike.experiments.config import DatasetOptions, dataset_hash, options_of_dataset
from unalike.experiments.result import command_line
from unalike.methods.link import LINK
from unalike.training.state import Training


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


def ids_of(splits):
    return [[part.tolist() for part in vars(split).values()] for split in splits]


def test_fresh_splits_of_subgraph_batches_are_successive_random_splits(source):
    seen = DatasetOptions(fresh_splits="samplers").apply(source)
    labels = source.load().labels
    assert ids_of(seen.splits()) == ids_of(random_splits(labels, count=2))


def test_fresh_splits_of_row_batches_skip_an_integer_for_each_epoch(source):
    seen = DatasetOptions(fresh_splits="rows").apply(source)
    first, second = seen.splits()
    labels = source.load().labels
    known = (labels >= 0).nonzero()[:, 0].numpy()
    nnz = source.load().adjacency.nnz
    ranges = len(range(nnz // 10, nnz, nnz // 10))
    np.random.seed(0)
    for split in (first, second):
        order = known[np.random.permutation(len(known))]
        half, quarter = int(0.5 * len(order)), int(0.25 * len(order))
        assert split.train.tolist() == order[:half].tolist()
        assert split.valid.tolist() == order[half : half + quarter].tolist()
        assert split.test.tolist() == order[half + quarter :].tolist()
        for _ in range(500):
            np.random.randint(ranges)


def test_fresh_splits_are_named_in_results_and_refused_otherwise(source):
    method = LINK(training=Training(epochs=2))
    seen = DatasetOptions(fresh_splits="rows").apply(source)
    (result,) = run(seen, method, splits=[1], options=RunOptions())
    assert result.view == {"fresh_splits": "rows"}
    assert "--fresh-splits rows" in command_line(result, splits="1")
    with pytest.raises(UserError, match="No fresh splits 'row'"):
        DatasetOptions(fresh_splits="row")
