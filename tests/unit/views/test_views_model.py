"""Saved models of views: equal scores from a file, new nodes, explanations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from unalike import Graph, NodeClassifier, UserError, load_model
from unalike.data.adjacency import Adjacency
from unalike.data.metrics import ACCURACY
from unalike.data.split import Split
from unalike.data.task import Solution, Task
from unalike.inference.explain import explain
from unalike.inference.model import Model, fit_model
from unalike.inference.views_model import ViewsModel
from unalike.methods.views import Views
from unalike.views import VIEWS
from unalike.views.folds import Folds
from unalike.views.table import SharedViews, ViewTable

NODES = 150
GROUPS = tuple(name for name in VIEWS if name != "bases")


def graph_of(*, directed: bool, features: str, loops: bool = False) -> Graph:
    """Neighbours have mostly the same class; node 1 is a duplicate of node 0."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, NODES)
    source, target = rng.integers(0, NODES, (2, 2500))
    kept = (labels[source] == labels[target]) | (rng.random(2500) < 0.2)
    matrix = np.zeros((NODES, NODES), bool)
    matrix[source[kept], target[kept]] = True
    matrix[1] = matrix[0]
    np.fill_diagonal(matrix, False)
    if loops:
        matrix[::3, ::3] |= np.eye(NODES, dtype=bool)[::3, ::3]
    width = {"none": 0, "dense": 8, "sparse": 40, "wide": 310}[features]
    x = rng.integers(0, 2, (NODES, width)) * (rng.random((NODES, width)) < 0.3)
    x[:, :3] += 2 * np.eye(3, dtype=int)[labels][:, :width]
    dense = torch.from_numpy(x).float()
    is_sparse = features in ("sparse", "wide")
    return Graph.from_edges(
        *map(torch.from_numpy, np.nonzero(matrix)),
        num_nodes=NODES,
        features=Adjacency.from_scipy(csr_array(x, dtype=np.float32))
        if is_sparse
        else dense,
        labels=torch.from_numpy(labels),
        num_classes=3,
        directed=directed,
    )


def task_of(graph: Graph) -> Task:
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(0))
    split = Split(order[:80], order[80:110], order[110:])
    return Task.from_split(graph, split, ACCURACY)


def reloaded(model: Model, folder: Path) -> ViewsModel:
    model.save(folder / "model.safetensors")
    loaded = load_model(folder / "model.safetensors")
    assert isinstance(loaded, ViewsModel)
    return loaded


def assert_known_rows_score_as_in_training(
    model: ViewsModel, graph: Graph, solution: Solution
) -> None:
    ids = torch.arange(NODES)
    rows = model.scorer.rows(model.method.prepare(graph), ids)
    scores = model.scorer.score(model.scorer.table(rows), rows)
    torch.testing.assert_close(scores, solution.scores, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("features", ["none", "dense", "sparse", "wide"])
def test_a_saved_model_scores_known_nodes_as_training_did(
    directed: bool, features: str, tmp_path: Path
) -> None:
    graph = graph_of(directed=directed, features=features, loops=True)
    method = Views(views=GROUPS, rounds=1, folds=3, head="trees")
    model, solution = fit_model(method, task_of(graph))
    loaded = reloaded(model, tmp_path)
    assert torch.equal(loaded.scores(graph), solution.scores)
    assert_known_rows_score_as_in_training(loaded, graph, solution)


@pytest.mark.parametrize(
    ("rounds", "head", "bases"),
    [
        (1, "mlp", ("logistic", "link", "linkx")),
        (2, "mean", ("logistic",)),
        (3, "trees", ("logistic", "link")),
    ],
)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.long
def test_bases_heads_and_rounds_are_saved(
    rounds: int, head: str, bases: tuple[str, ...], directed: bool, tmp_path: Path
) -> None:
    graph = graph_of(directed=directed, features="dense", loops=True)
    method = Views(
        views=("labels", "bases"), rounds=rounds, folds=4, head=head, bases=bases
    )
    model, solution = fit_model(method, task_of(graph))
    loaded = reloaded(model, tmp_path)
    assert torch.equal(loaded.scores(graph), solution.scores)
    assert_known_rows_score_as_in_training(loaded, graph, solution)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("features", ["none", "dense"])
def test_new_nodes_have_the_views_of_the_same_nodes_inside_of_the_graph(
    directed: bool, features: str, tmp_path: Path
) -> None:
    """Exact where nothing depends on the degrees of known nodes or of features, which
    grow when a node is added."""
    whole = graph_of(directed=True, features=features)
    new = torch.arange(140, NODES)
    matrix = whole.adjacency.to_scipy().tolil()
    matrix[:, 140:] = 0
    if directed:
        graph = replace(whole, adjacency=Adjacency.from_scipy(matrix.tocsr()))
        groups: tuple[str, ...] = ("features", "labels")
    else:
        graph, groups = whole.to_undirected(), ("labels",)
    known = graph.subgraph(torch.arange(140))
    known = replace(known, node_ids=None)
    order = torch.randperm(140, generator=torch.Generator().manual_seed(0))
    split = Split(order[:80], order[80:110], order[110:])
    task = Task.from_split(known, split, ACCURACY)
    method = Views(views=groups, hops=1, rounds=1, folds=3, head="trees")
    model, _ = fit_model(method, task)
    loaded = reloaded(model, tmp_path)
    rows = graph.adjacency.to_scipy()[140:, :140]
    prediction = loaded.predict(rows, graph.features[new])
    inside = SharedViews.of(graph, groups, 1)
    labels = torch.full((NODES,), -1)
    labels[task.train] = whole.labels[task.train]
    fine = torch.zeros(NODES, dtype=torch.int64)
    fine[:140] = loaded.scorer.folds.fine
    expected = ViewTable.of(
        inside,
        Task(replace(graph, labels=labels), task.train, torch.arange(0), ACCURACY),
        Folds(fine, 3),
    )
    prepared, unknown = loaded.new_nodes(rows, graph.features[new])
    actual = loaded.scorer.table(loaded.scorer.rows(prepared))
    assert unknown == 0
    for context in range(6):
        mine = actual.rows(torch.arange(10), context)
        theirs = expected.rows(new, context)
        torch.testing.assert_close(mine, theirs)
    assert prediction.probabilities.shape == (10, 3)


def test_new_nodes_of_all_groups_and_rounds_are_mostly_right(tmp_path: Path) -> None:
    graph = graph_of(directed=True, features="wide")
    known = replace(graph.subgraph(torch.arange(120)), node_ids=None)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    task = Task.from_split(
        known, Split(order[:80], order[80:100], order[100:]), ACCURACY
    )
    method = Views(views=VIEWS, rounds=2, folds=3, head="mean")
    loaded = reloaded(fit_model(method, task)[0], tmp_path)
    matrix = graph.adjacency.to_scipy()
    prediction = loaded.predict(
        matrix[120:, :120],
        graph.features[torch.arange(120, NODES)],
        entering=matrix.T.tocsr()[120:, :120],
    )
    correct = np.array(prediction.labels) == graph.labels[120:].numpy()
    assert correct.mean() > 0.7


def test_a_base_that_passes_messages_refuses_new_nodes_in_one_line(
    tmp_path: Path,
) -> None:
    graph = graph_of(directed=False, features="dense")
    method = Views(
        views=("labels", "bases"), rounds=1, folds=3, head="trees", bases=("gcn",)
    )
    model, solution = fit_model(method, task_of(graph))
    loaded = reloaded(model, tmp_path)
    assert torch.equal(loaded.scores(graph), solution.scores)
    with pytest.raises(UserError, match="cannot score new nodes: its base gcn"):
        loaded.predict([(0, 1)], torch.zeros(1, 8))


def test_another_graph_or_other_features_are_refused() -> None:
    graph = graph_of(directed=False, features="dense")
    method = Views(views=("labels",), rounds=1, folds=3, head="trees")
    model, _ = fit_model(method, task_of(graph))
    with pytest.raises(UserError, match="another graph"):
        model.scores(graph_of(directed=False, features="dense", loops=True))
    with pytest.raises(UserError, match="other features"):
        model.scores(replace(graph, features=graph.features + 1))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("adjacency/indices", lambda x: x + 1000),
        ("folds", lambda x: x + 6),
        ("labels", lambda x: x + 3),
        ("scores", lambda x: x[1:]),
        ("heads/0/0/left", lambda x: x * 0),
        ("heads/0/0/value", lambda x: x[1:]),
        ("mean", lambda x: x[1:]),
        ("about", lambda x: x[1:]),
        ("train", None),
    ],
)
def test_a_file_with_wrong_arrays_is_refused_in_one_line(
    name: str, change, tmp_path: Path
) -> None:
    graph = graph_of(directed=False, features="none")
    method = Views(views=("labels",), rounds=1, folds=3, head="trees")
    model, _ = fit_model(method, task_of(graph))
    weights = dict(model.weights)
    if change is None:
        del weights[name]
    else:
        weights[name] = change(weights[name]).contiguous()
    path = tmp_path / "model.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ViewsModel, "check_weights", lambda self: None)
        replace(model, weights=weights).save(path)
    with pytest.raises(UserError, match="is damaged") as error:
        load_model(path)
    assert "\n" not in str(error.value)


def test_a_changed_byte_is_refused(tmp_path: Path) -> None:
    graph = graph_of(directed=False, features="none")
    method = Views(views=("labels",), rounds=1, folds=3, head="trees")
    path = tmp_path / "model.safetensors"
    fit_model(method, task_of(graph))[0].save(path)
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        load_model(path)


def test_node_classifier_scores_new_rows_also_from_a_file(tmp_path: Path) -> None:
    graph = graph_of(directed=False, features="dense")
    method = Views(views=("labels", "features"), rounds=1, folds=3, head="mlp")
    classifier = NodeClassifier(method).fit(graph)
    rows, x = graph.adjacency.to_scipy()[:20], graph.features[:20]
    probabilities = classifier.predict_proba(rows, x)
    assert probabilities.shape == (20, 3)
    assert (classifier.predict(rows, x) == graph.labels[:20].numpy()).mean() > 0.7
    classifier.save(tmp_path / "model.safetensors")
    loaded = NodeClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(rows, x), probabilities)
    whole = loaded.predict_proba(graph.adjacency.to_scipy(), graph.features)
    np.testing.assert_array_equal(whole, classifier.predict_proba())


@pytest.mark.parametrize("known", [False, True])
def test_explanations_add_up_and_edges_are_left_out(known: bool) -> None:
    graph = graph_of(directed=True, features="dense", loops=True)
    method = Views(views=GROUPS, rounds=1, folds=3, head="trees")
    model, solution = fit_model(method, task_of(graph))
    ids = torch.tensor([5, 40])
    rows = model.method.prepare(graph).select_rows(ids)
    explanations = list(explain(model, rows, ids if known else None))
    scores = solution.scores[ids] if known else model.score_rows(rows)
    for number, why in enumerate(explanations):
        own = scores[number].double()
        best, second = (model.classes.index(one) for one in (why.label, why.against))
        assert why.log_odds == pytest.approx(float(own[best] - own[second]), abs=1e-3)
        total = sum(push.share for push in why.pushes) + why.rest
        assert total == pytest.approx(why.log_odds)
        sizes = [max(abs(push.share), abs(push.change)) for push in why.pushes]
        assert sizes == sorted(sizes, reverse=True)
        assert {push.name for push in why.pushes if push.kind == "views"} <= set(GROUPS)
    kinds = {push.kind for why in explanations for push in why.pushes}
    assert kinds == {"views", "points at", "pointed at by"}
    if known:
        return
    [push, *_] = [push for push in explanations[0].pushes if push.kind == "points at"]
    left = rows.adjacency.to_scipy().tolil()
    left[0, push.name] = 0
    without = replace(rows, adjacency=Adjacency.from_scipy(left.tocsr()))
    best, second = (
        model.classes.index(one)
        for one in (explanations[0].label, explanations[0].against)
    )
    after = model.score_rows(without)[0].double()
    change = explanations[0].log_odds - float(after[best] - after[second])
    assert push.change == pytest.approx(change, abs=1e-5)
