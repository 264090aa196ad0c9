"""Python warns about features of an own graph that differ by orders of magnitude."""

import warnings

import numpy as np
import pytest
from graphs import suiting

from unalike import LINK, Graph, Training, random_splits, run, save_graph

LINK_ONLY = LINK(training=Training(epochs=1))


def graph_with(features):
    graph = suiting(nodes=60)
    return Graph.from_scipy(
        graph.adjacency.to_scipy(), features=features, labels=graph.labels
    )


@pytest.fixture
def revenues():
    rng = np.random.default_rng(0)
    return graph_with(np.stack([1e6 * rng.random(60), rng.random(60)], axis=1))


def test_unscaled_features_are_noted(revenues, tmp_path):
    with pytest.warns(UserWarning, match="graph in memory: the features differ"):
        run(revenues, LINK_ONLY)
    splits = random_splits(revenues.labels, count=1)
    stored = save_graph(tmp_path / "shop", revenues, splits=splits)
    (remark,) = stored.remarks()
    assert remark.startswith("the features differ")
    assert "StandardScaler" in remark


def test_scaled_features_and_named_graphs_give_no_warning(tmp_path):
    scaled = graph_with(np.random.default_rng(0).normal(size=(60, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(scaled, LINK_ONLY)
        run("chameleon-twin", LINK_ONLY, splits=[0])
