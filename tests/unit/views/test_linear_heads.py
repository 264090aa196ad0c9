"""Linear heads and bases as heads: all train labels, means of heads, saved models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from unalike import Graph, UserError, load_model
from unalike.data.metrics import ACCURACY
from unalike.data.split import Split
from unalike.data.task import Task
from unalike.inference.explain import explain
from unalike.inference.model import fit_model
from unalike.inference.views_model import ViewsModel
from unalike.methods.views import PATIENCE, MethodBase, Views
from unalike.progress import NO_PROGRESS
from unalike.views.linear_heads import fit_linear_heads
from unalike.views.logistic import head_rows
from unalike.views.problem import HeadFit

NODES = 150


def graph_of(*, directed: bool, width: int = 12, seed: int = 0) -> Graph:
    """The class shows in the features; a few edges are loops."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, NODES)
    ends = rng.integers(0, NODES, (2, 900))
    ends[:, :10] = np.arange(10)
    x = rng.random((NODES, width)) * (rng.random((NODES, width)) < 0.6)
    x[:, :3] += 0.7 * np.eye(3)[labels][:, :width]
    return Graph.from_edges(
        *torch.from_numpy(ends),
        num_nodes=NODES,
        features=torch.from_numpy(x).float(),
        labels=torch.from_numpy(labels),
        num_classes=3,
        directed=directed,
    )


def task_of(graph: Graph) -> Task:
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(0))
    return Task.from_split(
        graph, Split(order[:80], order[80:110], order[110:]), ACCURACY
    )


def test_rows_are_features_and_their_means_over_neighbours_of_unit_length() -> None:
    graph = graph_of(directed=True)
    kinds = head_rows(graph)
    assert list(kinds) == ["own", "one-step", "directions", "two-steps"]
    edges = graph.adjacency.to_dense() * (1 - torch.eye(NODES))
    near = ((edges + edges.T) > 0).float()

    def mean(edges: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return edges @ x / edges.sum(1, keepdim=True).clamp(min=1)

    def unit(x: torch.Tensor) -> torch.Tensor:
        return x / x.norm(dim=1, keepdim=True).clamp(min=1e-9)

    x = graph.features
    parts = {
        "own": [x],
        "one-step": [x, mean(near, x)],
        "directions": [x, mean(edges, x), mean(edges.T, x)],
        "two-steps": [x, mean(near, x), mean(near, mean(near, x))],
    }
    for name, own in parts.items():
        expected = torch.cat([unit(part) for part in own], 1)
        torch.testing.assert_close(
            kinds[name].to_dense(), expected, atol=1e-5, rtol=1e-4
        )


def test_a_linear_head_is_the_regression_on_all_train_labels() -> None:
    graph = graph_of(directed=False)
    task = task_of(graph)
    fits = fit_linear_heads(graph, [task])
    x, train = head_rows(graph)["own"].to_dense().numpy(), task.train.numpy()
    oracle = LogisticRegression(C=1.0, tol=1e-8, max_iter=2000)
    oracle.fit(x[train], graph.labels.numpy()[train])
    [fit] = fits["own"][1.0]
    np.testing.assert_allclose(
        fit.log_probabilities.exp().numpy(), oracle.predict_proba(x), atol=0.01
    )


def test_labels_outside_of_the_train_nodes_change_no_linear_head() -> None:
    graph = graph_of(directed=True)
    task = task_of(graph)
    labels = task.graph.labels.clone()
    labels[task.valid] = (labels[task.valid] + 1) % 3
    changed = replace(task, graph=replace(task.graph, labels=labels))
    before, after = (fit_linear_heads(graph, [one]) for one in (task, changed))
    for kind, by_ridge in before.items():
        for ridge, [fit] in by_ridge.items():
            [other] = after[kind][ridge]
            assert torch.equal(fit.log_probabilities, other.log_probabilities)


@pytest.mark.long
def test_with_random_labels_linear_heads_are_at_chance_on_unseen_nodes() -> None:
    graph = graph_of(directed=True)
    unseen = torch.arange(80, NODES)
    scores: dict[str, list[float]] = {}
    for draw in range(20):
        generator = torch.Generator().manual_seed(draw)
        labels = torch.randint(2, (NODES,), generator=generator)
        own = replace(graph, labels=labels, num_classes=2)
        task = Task(own, torch.arange(80), torch.arange(0), ACCURACY)
        for kind, by_ridge in fit_linear_heads(own, [task]).items():
            correct = by_ridge[0.1][0].log_probabilities[unseen].argmax(1)
            right = (correct == labels[unseen]).float().mean()
            scores.setdefault(kind, []).append(float(right))
    for kind, values in scores.items():
        error = np.std(values, ddof=1) / len(values) ** 0.5
        assert abs(np.mean(values) - 0.5) < 3 * error, (kind, values)


@pytest.fixture
def mean_of_all_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `--head auto` choose the mean of all heads that it compares."""

    def all_of_them(
        problems: object, fits: dict[str, list[HeadFit]]
    ) -> dict[str, list[HeadFit]]:
        own = [HeadFit.mean(each) for each in zip(*fits.values(), strict=True)]
        return {"mean of all": own}

    monkeypatch.setattr("unalike.methods.views.best_means", all_of_them)
    monkeypatch.setattr(
        "unalike.methods.views.mean_valid",
        lambda problems, fits: float(len(fits[0].scorers)),
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("groups", [("labels", "features"), ("labels", "bases")])
@pytest.mark.usefixtures("mean_of_all_heads")
@pytest.mark.long
def test_a_mean_of_all_heads_is_saved_explained_and_scores_new_nodes(
    directed: bool,
    rounds: int,
    groups: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Views, "choose_groups", lambda *_: groups)
    graph = graph_of(directed=directed)
    method = Views(rounds=rounds, folds=3, head="auto", bases=("logistic", "linkx"))
    model, solution = fit_model(method, task_of(graph))
    model.save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert isinstance(loaded, ViewsModel)
    kinds = ["own", "one-step", *["directions"] * directed, "two-steps"]
    views = [head.view for head in loaded.scorer.column_heads]
    assert views[: len(kinds)] == [f"linear:{kind}" for kind in kinds]
    assert {"base-heads:logistic-all", "base-heads:linkx"} <= set(views[len(kinds) :])
    assert len(loaded.scorer.heads) == 2 + len(views)
    assert torch.equal(loaded.scores(graph), solution.scores)
    ids = torch.arange(NODES)
    prepared = method.prepare(graph)
    rows = loaded.scorer.rows(prepared, ids)
    scores = loaded.scorer.score(loaded.scorer.table(rows), rows)
    torch.testing.assert_close(scores, solution.scores, atol=2e-3, rtol=1e-3)
    new = loaded.predict(graph.adjacency.to_scipy()[:5], graph.features[:5])
    assert new.probabilities.shape == (5, 3)
    [why] = explain(loaded, prepared.select_rows(ids[3:4]), ids[3:4])
    groups = {push.name for push in why.pushes if push.kind == "views"}
    assert {"linear", "base-heads"} <= groups
    total = sum(push.share for push in why.pushes) + why.rest
    assert total == pytest.approx(why.log_odds)


@pytest.mark.usefixtures("mean_of_all_heads")
def test_a_head_that_passes_messages_scores_no_new_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Views, "choose_groups", lambda *_: ("labels",))
    graph = graph_of(directed=False)
    method = Views(rounds=1, folds=3, head="auto", bases=("gcn",))
    model, solution = fit_model(method, task_of(graph))
    assert torch.equal(model.scores(graph), solution.scores)
    with pytest.raises(UserError, match="its base gcn does not score a node by its"):
        model.predict(graph.adjacency.to_scipy()[:5], graph.features[:5])


def test_a_base_as_a_head_knows_all_train_labels() -> None:
    """Trained on all train nodes and stopped by valid, as the method itself is."""
    graph = graph_of(directed=False)
    task = task_of(graph)
    method = Views(views=("labels", "bases"), rounds=1, folds=3, bases=("linkx",))
    problems = method.problems([task], "cpu", NO_PROGRESS)
    [head] = method.base_heads(problems)["base linkx"]
    alone = replace(task, patience=PATIENCE, every_row=True)
    linkx = MethodBase.of("linkx", graph, "cpu", NO_PROGRESS).method
    [expected] = linkx.solve_all([alone])
    torch.testing.assert_close(head.scores, expected.logits.log_softmax(1))


def test_head_linear_beats_chance_and_needs_features() -> None:
    graph = graph_of(directed=False)
    task = task_of(graph)
    method = Views(views=("structure",), rounds=1, folds=3, head="linear")
    [solution] = method.solve_all([task])
    test = torch.ones(NODES, dtype=torch.bool)
    test[task.train], test[task.valid] = False, False
    right = solution.scores.argmax(1)[test] == graph.labels[test]
    assert right.float().mean() > 0.6
    bare = replace(graph, features=torch.zeros(NODES, 0))
    with pytest.raises(UserError, match="needs features"):
        method.solve_all([task_of(bare)])
