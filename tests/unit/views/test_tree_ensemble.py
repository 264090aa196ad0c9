"""Trees as arrays give the probabilities of LightGBM and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from unalike.views.tree_ensemble import TreeEnsemble


def examples(classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6)).astype(np.float32)
    x[:, 5] = np.round(x[:, 5])
    y = np.digitize(x[:, 0] * x[:, 1] + x[:, 5], np.linspace(-1, 1, classes - 1))
    return x, y


@pytest.mark.parametrize("classes", [2, 4])
def test_scikit_learn(classes: int) -> None:
    x, y = examples(classes)
    model = HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=9).fit(x, y)
    trees = TreeEnsemble.from_scikit_learn(model, 12, classes)
    np.testing.assert_allclose(trees(x), model.predict_proba(x), atol=1e-12)
    again = TreeEnsemble.from_tensors(trees.to_tensors(), 6, classes)
    assert np.array_equal(again(x), trees(x))


@pytest.mark.parametrize("classes", [2, 4])
def test_lightgbm(classes: int) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y = examples(classes)
    goal = {"objective": "binary"}
    if classes > 2:
        goal = {"objective": "multiclass", "num_class": classes}
    rows = lightgbm.Dataset(x, y)
    model = lightgbm.train(goal | {"verbosity": -1, "num_leaves": 9}, rows, 12)
    trees = TreeEnsemble.from_lightgbm(model, 7, classes)
    expected = np.asarray(model.predict(x, num_iteration=7))
    if classes == 2:
        expected = np.stack([1 - expected, expected], 1)
    np.testing.assert_allclose(trees(x), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "number"),
    [("left", 0), ("right", 10**6), ("feature", 6), ("root", -1), ("classes", 4)],
)
def test_an_index_outside_of_the_arrays_is_refused(name: str, number: int) -> None:
    x, y = examples(4)
    model = HistGradientBoostingClassifier(max_iter=3).fit(x, y)
    tensors = TreeEnsemble.from_scikit_learn(model, 3, 4).to_tensors()
    tensors[name][0] = number
    with pytest.raises(ValueError, match="wrong sizes or indices"):
        TreeEnsemble.from_tensors(tensors, 6, 4)


def test_an_array_that_is_too_short_or_of_another_type_is_refused() -> None:
    x, y = examples(2)
    model = HistGradientBoostingClassifier(max_iter=3).fit(x, y)
    tensors = TreeEnsemble.from_scikit_learn(model, 3, 2).to_tensors()
    with pytest.raises(ValueError, match="wrong sizes"):
        TreeEnsemble.from_tensors({**tensors, "value": tensors["value"][:-1]}, 6, 2)
    with pytest.raises(ValueError, match="wrong array feature"):
        TreeEnsemble.from_tensors(
            {**tensors, "feature": tensors["feature"].to(torch.float32)}, 6, 2
        )
