"""No row of views depends on its own label, nor on labels of valid and test nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import Graph
from unalike.data.metrics import ACCURACY
from unalike.data.task import Task
from unalike.methods.views import Views
from unalike.progress import NO_PROGRESS
from unalike.views.folds import Folds
from unalike.views.heads import TreeSettings, fit_trees
from unalike.views.problem import Problem, examples_of
from unalike.views.table import SharedViews, ViewTable

GROUPS = (
    "structure",
    "features",
    "spectrum",
    "labels",
    "duplicates",
    "near-duplicates",
)


def random_graph(seed: int, directed: bool) -> Graph:
    """A small graph with self-loops, duplicate rows, isolated nodes and features."""
    rng = np.random.default_rng(seed)
    nodes, classes = int(rng.integers(8, 40)), int(rng.integers(2, 5))
    matrix = rng.random((nodes, nodes)) < rng.uniform(0.05, 0.5)
    matrix[1] = matrix[0]
    matrix[2], matrix[:, 2] = False, False
    source, target = map(torch.from_numpy, np.nonzero(matrix))
    return Graph.from_edges(
        source,
        target,
        num_nodes=nodes,
        features=torch.from_numpy(rng.integers(0, 2, (nodes, 32))).float(),
        labels=torch.from_numpy(rng.integers(0, classes, nodes)),
        num_classes=classes,
        directed=directed,
    )


def table_of(graph: Graph, train: torch.Tensor, hops: int) -> ViewTable:
    task = Task(graph, train, torch.arange(0), ACCURACY)
    shared = SharedViews.of(graph, GROUPS, hops)
    return ViewTable.of(shared, task, Folds.draw(graph.num_nodes, 3, 0))


def with_label(graph: Graph, node: int, label: int) -> Graph:
    labels = graph.labels.clone()
    labels[node] = label
    return replace(graph, labels=labels)


@given(
    seed=st.integers(0, 10_000),
    directed=st.booleans(),
    hops=st.sampled_from([1, 2, 3]),
    node=st.integers(0, 7),
)
@settings(max_examples=40, deadline=None)
def test_flipping_a_label_or_adding_it_changes_no_bit_of_its_own_row(
    seed: int, directed: bool, hops: int, node: int
) -> None:
    graph = random_graph(seed, directed)
    others = torch.tensor([i for i in range(graph.num_nodes // 2) if i != node])
    train = torch.cat([others, torch.tensor([node])])
    row = torch.tensor([node])
    flipped = with_label(graph, node, (int(graph.labels[node]) + 1) % graph.num_classes)
    expected = table_of(graph, train, hops).rows(row)
    assert torch.equal(table_of(flipped, train, hops).rows(row), expected)
    assert torch.equal(table_of(graph, others, hops).rows(row), expected)


@given(seed=st.integers(0, 10_000), directed=st.booleans())
@settings(max_examples=20, deadline=None)
def test_labels_of_nodes_outside_train_change_no_row(seed: int, directed: bool) -> None:
    graph = random_graph(seed, directed)
    train = torch.arange(graph.num_nodes // 2)
    everyone = torch.arange(graph.num_nodes)
    changed = with_label(graph, graph.num_nodes - 1, 0)
    changed = with_label(changed, graph.num_nodes - 2, 1)
    expected = table_of(graph, train, 2)
    actual = table_of(changed, train, 2)
    for context in range(expected.folds.num_fine):
        assert torch.equal(
            actual.rows(everyone, context), expected.rows(everyone, context)
        )


def test_some_row_changes_with_the_label_of_a_neighbour() -> None:
    graph = random_graph(3, directed=False)
    train = torch.arange(graph.num_nodes)
    flipped = with_label(graph, 0, (int(graph.labels[0]) + 1) % graph.num_classes)
    before, after = (table_of(g, train, 2).rows(train) for g in (graph, flipped))
    assert (before != after).any()


def random_task(nodes: int, train: int, valid: int) -> Task:
    """Labels without meaning; a fifth of the nodes have the same neighbours."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, 10 * nodes))
    ends = ends[:, (ends[0] >= nodes // 5)]
    alike = np.stack(
        [np.repeat(np.arange(nodes // 5), 4), np.tile(np.arange(4), nodes // 5)]
    )
    graph = Graph.from_edges(
        *torch.from_numpy(np.concatenate([ends, alike], 1)),
        num_nodes=nodes,
        features=torch.from_numpy(rng.integers(0, 2, (nodes, 40))).float(),
        labels=torch.from_numpy(rng.integers(0, 2, nodes)),
        num_classes=2,
        directed=True,
    )
    order = torch.from_numpy(rng.permutation(nodes))
    return Task(graph, order[:train], order[train : train + valid], ACCURACY)


def problem_with_guesses(method: Views, task: Task) -> Problem:
    [problem] = method.problems([task], "cpu", NO_PROGRESS)
    for number in range(2, method.rounds + 1):
        method.add_round([problem], number, NO_PROGRESS)
    return problem


def models_of(problem: Problem) -> dict[tuple[object, ...], torch.Tensor]:
    """The scores of all base models and guessing trees, by hidden folds and name."""
    bases = {
        (hidden, name): scores
        for name, by_fold in problem.bases.by_view.items()
        for hidden, scores in by_fold.items()
    }
    guesses = {
        (hidden, f"guess {number}"): guess.scores
        for (hidden, number), guess in problem.guesses.items()
    }
    return bases | guesses


@pytest.mark.long
@pytest.mark.parametrize(("rounds", "folds"), [(2, 3), (3, 4)])
def test_bases_and_guesses_depend_on_no_label_of_hidden_folds_valid_or_test(
    rounds: int, folds: int
) -> None:
    task = random_task(200, 140, 30)
    graph = task.graph
    method = Views(
        bases=("link", "linkx", "gcn", "logistic"),
        folds=folds,
        rounds=rounds,
        head="trees",
    )
    hidden = Folds.draw(200, folds, task.seed).coarse == 0
    unseen = ~torch.isin(torch.arange(200), task.train)

    def flipped(which: torch.Tensor) -> Task:
        labels = torch.where(which, 1 - graph.labels, graph.labels)
        return replace(task, graph=replace(graph, labels=labels))

    before, fold_flipped, fold_left_out, unseen_flipped = (
        problem_with_guesses(method, variant)
        for variant in (
            task,
            flipped(hidden),
            replace(task, train=task.train[~hidden[task.train]]),
            flipped(unseen),
        )
    )
    models, own = models_of(before), hidden.nonzero()[:, 0]
    groups = ("bases", "guesses")
    rows = before.table.select(groups).rows(own)
    assert rows.shape[1] == sum(before.table.select(groups).widths) > 0
    for after in (fold_flipped, fold_left_out):
        same = {key: torch.equal(models[key], s) for key, s in models_of(after).items()}
        assert same == {key: 0 in key[0] for key in models}
        assert torch.equal(after.table.select(groups).rows(own), rows)
    for context in range(before.folds.num_fine):
        expected = before.table.rows(torch.arange(200), context)
        actual = unseen_flipped.table.rows(torch.arange(200), context)
        assert torch.equal(actual, expected)


@pytest.mark.long
def test_with_random_labels_no_group_of_views_is_better_than_chance() -> None:
    groups = (*GROUPS, "bases")
    method = Views(views=groups, bases=("link",), folds=3, rounds=2, head="trees")
    meaningless = random_task(600, 400, 100)
    graph = meaningless.graph
    scores: dict[tuple[str, str], list[float]] = {}
    for draw in range(20):
        generator = torch.Generator().manual_seed(draw)
        labels = torch.randint(2, (graph.num_nodes,), generator=generator)
        task = replace(meaningless, graph=replace(graph, labels=labels), seed=draw)
        problem = problem_with_guesses(method, task)
        first, second = task.train[::2], task.train[1::2]
        known = torch.cat([task.train, task.valid])
        everyone = torch.arange(graph.num_nodes)
        test = everyone[~torch.isin(everyone, known)]
        for group in problem.table.groups:
            table = problem.table.select([group])
            examples = examples_of(table, task, first, task.valid)
            scorer = fit_trees(examples, TreeSettings.quick())
            for part, ids in (("train", second), ("test", test)):
                correct = scorer(table.rows(ids)).argmax(1) == labels[ids]
                scores.setdefault((group, part), []).append(
                    float(correct.float().mean())
                )
    assert {group for group, _ in scores} == {*groups, "guesses"}
    for key, values in scores.items():
        standard_error = np.std(values, ddof=1) / len(values) ** 0.5
        assert abs(np.mean(values) - 0.5) < 3 * standard_error, (key, values)
