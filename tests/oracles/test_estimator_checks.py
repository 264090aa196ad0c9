"""scikit-learn's checks of estimators, and its grid search, on NodeClassifier."""

import numpy as np
import pytest
from graphs import suiting
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator

from unalike import LINKX, NodeClassifier, Training

EXCLUDED = {
    "check_classifiers_classes": "-1 is no label unless unlabelled=None; tested below",
    "check_array_api_input": "needs SCIPY_ARRAY_API",
    "check_do_not_raise_errors_in_init_or_set_params": "tests check types at run time",
}
"""Checks that do not apply to classifiers of nodes, with the reason."""


def quick(epochs=25):
    return LINKX(hidden=8, training=Training(epochs=epochs, lr=0.1))


CHECKS = {
    check.func.__name__: check
    for _, check in estimator_checks_generator(NodeClassifier())
}


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in EXCLUDED])
@pytest.mark.long
def test_estimator_checks(name):
    CHECKS[name](NodeClassifier(quick()))


@pytest.mark.long
def test_minus_one_is_a_class_without_a_marker():
    CHECKS["check_classifiers_classes"](NodeClassifier(quick(), unlabelled=None))


def test_excluded_checks_exist():
    assert set(EXCLUDED) <= set(CHECKS)


@pytest.mark.long
def test_a_grid_of_options_is_searched_with_node_ids_as_samples():
    graph = suiting(nodes=120)
    ids = (graph.labels >= 0).nonzero()[:, 0].numpy()
    labels = np.array(["cat", "dog"])[graph.labels.numpy()[ids]]
    classifier = NodeClassifier(quick(15), graph=graph)
    grid = {"method__hidden": [2, 8], "class_weight": [None, "balanced"]}
    search = GridSearchCV(classifier, grid, cv=2).fit(ids.reshape(-1, 1), labels)
    assert set(search.best_params_) == set(grid)
    assert search.best_score_ > 0.7
    assert search.best_estimator_.graph is graph
    assert search.predict(ids[:5]).shape == (5,)


@pytest.mark.long
def test_a_grid_over_several_methods_sets_the_options_of_each():
    graph = suiting(nodes=120)
    ids = (graph.labels >= 0).nonzero()[:, 0].numpy()
    labels = graph.labels.numpy()[ids]
    common = {"method__epochs": [15], "method__lr": [0.1]}
    grid = [
        {"method": ["linkx", "gcn"], "method__hidden": [8], **common},
        {"method": ["label-propagation"], "method__alpha": [0.1, 0.5]},
        {"method": [quick(15)], "method__edge_layers": [1, 2]},
    ]
    classifier = NodeClassifier("mlp", graph=graph)
    search = GridSearchCV(classifier, grid, cv=2, error_score="raise")
    search.fit(ids.reshape(-1, 1), labels)
    assert len(search.cv_results_["params"]) == 6
    assert search.best_score_ > 0.7
    assert classifier.method == "mlp"


def test_clones_share_the_graph_and_are_unfitted():
    graph = suiting(nodes=60)
    ids = (graph.labels >= 0).nonzero()[:, 0].numpy()
    labels = graph.labels.numpy()[ids]
    classifier = NodeClassifier(quick(5), graph=graph, seed=3).fit(ids, labels)
    copy = clone(classifier)
    assert copy.graph is graph
    assert copy.get_params() == classifier.get_params()
    assert not hasattr(copy, "classes_")
    assert len(cross_val_score(copy, ids.reshape(-1, 1), labels, cv=3)) == 3
