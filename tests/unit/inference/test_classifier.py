"""NodeClassifier: graphs of several libraries, node ids as samples, parameters."""

from dataclasses import replace

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from graphs import suiting
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyg_models import Data

from unalike import (
    GCN,
    LINKX,
    MLP,
    CorrectAndSmooth,
    LabelPropagation,
    NodeClassifier,
    Training,
    UserError,
)

QUICK = Training(epochs=30, lr=0.05)
LINKX_QUICK = LINKX(hidden=8, training=QUICK)
NAMES = np.array(["cat", "dog", None], dtype=object)


def graph_and_labels(nodes=120):
    graph = suiting(nodes=nodes)
    return graph, NAMES[graph.labels.numpy()]


def pyg_form(graph):
    ends = torch.stack([graph.adjacency.row_indices, graph.adjacency.indices.long()])
    return Data(x=graph.features, edge_index=ends, num_nodes=graph.num_nodes)


def forms(graph):
    """The same graph as others hold it; features beside it where they have none."""
    rows, features = graph.adjacency.to_scipy(), graph.features
    yield graph, None
    yield pyg_form(graph), None
    yield scipy.sparse.csr_matrix(rows), features.numpy()
    yield rows, features
    yield rows.toarray(), features.double().numpy()
    yield networkx.from_scipy_sparse_array(rows.astype(np.int64)), features


@pytest.mark.long
def test_graphs_of_all_libraries_give_the_same_probabilities():
    graph, labels = graph_and_labels()
    probabilities = [
        NodeClassifier(LINKX_QUICK).fit(form, labels, features).predict_proba()
        for form, features in forms(graph)
    ]
    for other in probabilities[1:]:
        np.testing.assert_array_equal(probabilities[0], other)
    known = graph.labels.numpy() >= 0
    right = NodeClassifier(LINKX_QUICK).fit(graph, labels).predict()[known]
    assert (right == labels[known]).mean() > 0.9


def test_new_rows_are_predicted_like_known_ones():
    graph, labels = graph_and_labels()
    classifier = NodeClassifier(LINKX_QUICK).fit(graph, labels)
    rows, features = graph.adjacency.to_scipy(), graph.features
    all_nodes = classifier.predict_proba()
    np.testing.assert_allclose(
        classifier.predict_proba(rows[:7], features[:7]), all_nodes[:7], rtol=1e-5
    )
    np.testing.assert_allclose(
        classifier.predict_proba(rows, features), all_nodes, rtol=1e-5
    )
    with pytest.raises(ValueError, match="7 x 0; the model was trained on 2"):
        classifier.predict(rows[:7])


def test_a_saved_classifier_is_loaded(tmp_path):
    graph, labels = graph_and_labels()
    classifier = NodeClassifier(LINKX_QUICK).fit(graph, labels)
    assert classifier.save(tmp_path / "a.safetensors") > 1000
    loaded = NodeClassifier.load(tmp_path / "a.safetensors")
    rows, features = graph.adjacency.to_scipy()[:9], graph.features[:9]
    assert loaded.classes_.tolist() == ["cat", "dog"]
    np.testing.assert_allclose(
        loaded.predict_proba(rows, features),
        classifier.predict_proba(rows, features),
        rtol=1e-5,
    )
    with pytest.raises(UserError, match="knows no nodes"):
        loaded.predict()


def test_node_ids_are_samples():
    graph, labels = graph_and_labels()
    (known,) = np.nonzero(graph.labels.numpy() >= 0)
    classifier = NodeClassifier(LINKX_QUICK, graph=graph)
    classifier.fit(known[:60], labels[known[:60]].astype(str))
    column = known[60:].reshape(-1, 1)
    assert classifier.score(column, labels[known[60:]].astype(str)) > 0.7
    assert len(classifier.predict(column)) == len(column)
    with pytest.raises(ValueError, match="There is no node 500"):
        classifier.predict([500])


def test_labels_that_are_not_passed_are_not_used():
    graph, labels = graph_and_labels()
    (known,) = np.nonzero(graph.labels.numpy() >= 0)
    train_labels = labels[known[:60]].astype(str)
    hidden = NodeClassifier(LINKX_QUICK, graph=graph).fit(known[:60], train_labels)
    blank = np.array(labels)
    blank[known[60:]] = None
    shown = NodeClassifier(LINKX_QUICK).fit(graph, blank)
    np.testing.assert_array_equal(
        hidden.predict_proba(known), shown.predict_proba()[known]
    )


FEW = Training(epochs=2, lr=0.1)
PROPERTY_NODES = 40
METHODS = [
    LINKX(hidden=4, training=FEW),
    GCN(hidden=4, training=FEW),
    LabelPropagation(),
    CorrectAndSmooth(base=MLP(hidden=4, training=FEW)),
]


def pyg_with_labels(graph):
    data = pyg_form(graph)
    data.y = graph.labels
    return data


def only_at(ids, labels):
    """The labels of some nodes; -1 for all others."""
    return np.where(np.isin(np.arange(len(labels)), ids), labels, -1)


CALLS = {
    "ids": lambda graph, ids, y: (graph, (ids,)),
    "a list of ids": lambda graph, ids, y: (graph, (ids.tolist(),)),
    "a column of ids": lambda graph, ids, y: (graph, (ids[:, None],)),
    "ids and labels": lambda graph, ids, y: (graph, (ids, y[ids])),
    "ids and some labels": lambda graph, ids, y: (
        graph,
        (np.arange(len(y)), only_at(ids, y)),
    ),
    "ids, a graph of PyG": lambda graph, ids, y: (pyg_with_labels(graph), (ids,)),
    "ids and labels, an adjacency": lambda graph, ids, y: (
        graph.adjacency.to_scipy(),
        (ids, y[ids], graph.features),
    ),
    "a graph": lambda graph, ids, y: (None, (graph, only_at(ids, y))),
    "a graph, names of classes": lambda graph, ids, y: (
        None,
        (graph, np.array(["a", "b", "c", None], object)[only_at(ids, y)]),
    ),
    "a graph with missing labels": lambda graph, ids, y: (
        None,
        (replace(graph, labels=torch.from_numpy(only_at(ids, y))),),
    ),
    "a graph of PyG": lambda graph, ids, y: (
        None,
        (pyg_with_labels(graph), only_at(ids, y)),
    ),
    "an adjacency": lambda graph, ids, y: (
        None,
        (graph.adjacency.to_scipy(), only_at(ids, y), graph.features.numpy()),
    ),
}
"""What `graph=` is, and the arguments of `fit`."""


@settings(max_examples=30)
@given(
    call=st.sampled_from([*CALLS]),
    method=st.sampled_from(METHODS),
    ids=st.sets(st.integers(0, PROPERTY_NODES - 1), min_size=8, max_size=30),
    validation=st.sampled_from([0.0, 0.3, "ids"]),
    class_weight=st.sampled_from([None, "balanced"]),
    calibrate=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_labels_of_nodes_outside_the_given_ids_change_nothing(
    call, method, ids, validation, class_weight, calibrate, seed
):
    draw = np.random.default_rng(seed)
    graph = suiting(nodes=PROPERTY_NODES, classes=3)
    ids = draw.permutation(sorted(ids))
    labels = draw.integers(0, 3, PROPERTY_NODES)
    assume(len(np.unique(labels[ids])) > 1)
    assume(class_weight is None or method.uses_class_weights)
    outside = np.setdiff1d(np.arange(PROPERTY_NODES), ids)
    permuted = labels.copy()
    permuted[outside] = labels[draw.permutation(outside)]
    assume((permuted != labels).any())
    fitted = []
    for y in (labels, permuted):
        known = replace(graph, labels=torch.from_numpy(y))
        own_graph, arguments = CALLS[call](known, ids, y)
        classifier = NodeClassifier(
            method,
            graph=own_graph,
            validation=ids[:3] if validation == "ids" else validation,
            class_weight=class_weight,
            calibrate=calibrate,
        )
        fitted.append(classifier.fit(*arguments))
    one, other = fitted
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.temperature_ == other.temperature_
    everyone = None if one.graph is None else np.arange(PROPERTY_NODES)
    np.testing.assert_array_equal(
        one.predict_proba(everyone), other.predict_proba(everyone)
    )


def test_ids_without_labels_in_the_graph_need_y():
    graph, _ = graph_and_labels()
    (unknown,) = np.nonzero(graph.labels.numpy() < 0)
    with pytest.raises(ValueError, match="requires y"):
        NodeClassifier(LINKX_QUICK, graph=graph).fit(unknown)


@pytest.mark.parametrize("directions", ["in", "both"])
def test_as_many_new_rows_as_known_nodes_are_not_the_training_graph(directions):
    graph = suiting(nodes=120, directed=True)
    method = LINKX(hidden=8, directions=directions, training=QUICK)
    classifier = NodeClassifier(method).fit(graph, graph.labels.numpy())
    rows, features = graph.adjacency.to_scipy()[::-1], graph.features.flip(0)
    halves = [
        classifier.predict_proba(rows[part], features[part])
        for part in (slice(0, 60), slice(60, 120))
    ]
    np.testing.assert_allclose(
        classifier.predict_proba(rows, features), np.concatenate(halves), rtol=1e-5
    )


def test_message_passing_and_label_propagation_predict_the_graph():
    graph, labels = graph_and_labels()
    gcn = NodeClassifier(GCN(training=QUICK)).fit(graph, labels)
    np.testing.assert_allclose(
        gcn.predict_proba(graph), gcn.predict_proba(), rtol=1e-4, atol=1e-6
    )
    spread = NodeClassifier(LabelPropagation()).fit(graph, labels)
    assert spread.predict().shape == (120,)
    with pytest.raises(UserError, match="answers for the nodes that it was fitted on"):
        spread.predict(graph)
    with pytest.raises(UserError, match="leaves no model to save"):
        spread.save("a.safetensors")


def rare(weight):
    """How often the rare class is predicted when it weighs so much."""
    rng = np.random.default_rng(0)
    labels = (rng.random(400) < 0.1).astype(int)
    features = rng.normal(size=(400, 2)) + labels[:, None]
    none = scipy.sparse.csr_array((400, 400), dtype=np.float32)
    classifier = NodeClassifier(LINKX_QUICK, class_weight=weight)
    return int(classifier.fit(none, labels, features).predict().sum())


@pytest.mark.long
def test_class_weight_changes_predictions():
    alike, balanced = rare(None), rare("balanced")
    assert balanced > alike + 20
    assert rare({0: 1, 1: 9}) > alike + 20
    assert rare({1: 1.0}) == alike
    with pytest.raises(ValueError, match="'equal'; it is None, 'balanced'"):
        rare("equal")


def test_patience_stops_training_early():
    graph, labels = graph_and_labels()
    long = LINKX(hidden=8, training=Training(epochs=200, lr=0.05))
    classifier = NodeClassifier(long, patience=7).fit(graph, labels)
    curve = classifier.curve_
    assert len(curve.valid_scores) == len(curve.losses) == curve.best_epoch + 7 < 200
    assert max(curve.valid_scores) == curve.valid_scores[curve.best_epoch - 1]


def test_validation_takes_node_ids():
    graph, labels = graph_and_labels()
    (known,) = np.nonzero(graph.labels.numpy() >= 0)
    NodeClassifier(LINKX_QUICK, validation=known[:20]).fit(graph, labels)
    NodeClassifier(LINKX_QUICK, validation=0.0).fit(graph, labels)
    with pytest.raises(ValueError, match="need labels"):
        NodeClassifier(LINKX_QUICK, validation=[0]).fit(graph, labels)
    with pytest.raises(ValueError, match=r"validation is 1.5"):
        NodeClassifier(LINKX_QUICK, validation=1.5).fit(graph, labels)


def test_options_of_the_method_are_parameters():
    classifier = NodeClassifier("linkx")
    assert classifier.get_params()["method__hidden"] == 32
    classifier.set_params(method__hidden=7, method__epochs=3, seed=2)
    assert classifier.method == LINKX(hidden=7, training=Training(epochs=3))
    assert classifier.seed == 2
    assert "method__hidden" not in classifier.get_params(deep=False)
    with pytest.raises(ValueError, match="Invalid parameter 'hiden'"):
        classifier.set_params(hiden=3)
    assert "seed=2" in repr(classifier)
    classifier.set_params(method="mlp", method__layers=3)
    assert classifier.method == MLP(layers=3)
    with pytest.raises(ValueError, match="No option of mlp 'hiden'"):
        classifier.set_params(method__hiden=3)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"y": None}, "requires y"),
        ({"y": np.zeros(120)}, "There is 1 class"),
        ({"y": np.zeros((120, 3))}, "1d array"),
        ({"y": np.arange(120) % 2 + 0.5}, "continuous"),
        ({"y": [0, 1]}, "2 labels for 120 nodes"),
        ({"features": np.ones((3, 2))}, "features of 3 nodes, and rows of 120"),
        ({"features": np.full((120, 1), np.inf)}, "not a finite number"),
        ({"X": np.ones(120)}, "two dimensions"),
    ],
)
def test_wrong_input_is_refused(given, match):
    graph, _ = graph_and_labels()
    rows = graph.adjacency.to_scipy()
    arguments = {"X": rows, "y": np.arange(120) % 2, **given}
    with pytest.raises(ValueError, match=match):
        NodeClassifier(LINKX_QUICK).fit(**arguments)


def test_wrong_names_are_refused():
    graph, labels = graph_and_labels()
    with pytest.raises(UserError, match=r"No method 'linx'\. Did you mean 'link"):
        NodeClassifier("linx").fit(graph, labels)
    with pytest.raises(UserError, match="roc-auc is for 2 classes"):
        NodeClassifier("mlp", metric="roc-auc").fit(graph, np.arange(120) % 3)
    with pytest.raises(Exception, match="not fitted"):
        NodeClassifier().predict(torch.ones(2, 2))


def test_calibration_keeps_predictions_and_is_saved(tmp_path):
    graph, labels = graph_and_labels()
    plain, calibrated = (
        NodeClassifier(LINKX_QUICK, calibrate=wanted).fit(graph, labels)
        for wanted in (False, True)
    )
    assert plain.temperature_ == 1
    assert calibrated.temperature_ not in (1, 0)
    np.testing.assert_array_equal(plain.predict(), calibrated.predict())
    odds = (np.log(one[:, 0] / one[:, 1]) for one in map(proba, (plain, calibrated)))
    np.testing.assert_allclose(
        next(odds), next(odds) * calibrated.temperature_, rtol=1e-4
    )
    calibrated.save(tmp_path / "calibrated.safetensors")
    loaded = NodeClassifier.load(tmp_path / "calibrated.safetensors")
    rows, features = graph.adjacency.to_scipy(), graph.features
    found = loaded.predict_proba(rows, features)
    np.testing.assert_allclose(found, proba(calibrated), rtol=1e-4)
    prediction = calibrated.model_.predict(rows[:5], features[:5])
    np.testing.assert_allclose(
        prediction.probabilities.numpy(), proba(calibrated)[:5], rtol=1e-4
    )


def proba(classifier):
    return classifier.predict_proba()


def test_label_propagation_gives_probabilities():
    graph, labels = graph_and_labels()
    fitted = NodeClassifier(LabelPropagation(alpha=0.01)).fit(graph, labels)
    learned = fitted.predict_proba().max(1) > 0.9
    assert learned.sum() > 50  # a softmax of probabilities would never goes above 0.74
