"""What every method of the table promises, and every trained one besides."""

import json
import shlex
from dataclasses import fields, is_dataclass, replace
from itertools import chain, product
from pathlib import Path
from types import SimpleNamespace
from typing import get_type_hints

import pytest
import reference_kernels as reference
import torch
from graphs import FEATURES, drawn, suiting, tasks_of

from unalike import Graph, StoredGraph, Task, random_splits
from unalike.cli import train
from unalike.cli.main import main
from unalike.data.metrics import ACCURACY, METRICS
from unalike.experiments.config import Config, options_of_dataset
from unalike.experiments.result import Result
from unalike.methods import METHODS
from unalike.methods.base import TrainedMethod, train_stacks
from unalike.nn import optim
from unalike.nn.linear import Dropout
from unalike.options import choices, options_of
from unalike.training import step
from unalike.training.masks import uses_batch_statistics
from unalike.training.state import Training

TRAINED = [name for name, kind in METHODS.items() if issubclass(kind, TrainedMethod)]


def has(name, option):
    return any(field.name == option for field in fields(METHODS[name]))


every_method = pytest.mark.parametrize("name", METHODS)
every_trained = pytest.mark.parametrize("name", TRAINED)


def some(name, *, epochs=6, lr=0.01, weight_decay=0.001, **options):
    """A method with those of the options that it has, quickly trained."""
    known = {key: value for key, value in options.items() if has(name, key)}
    if issubclass(METHODS[name], TrainedMethod):
        known["training"] = Training(epochs=epochs, lr=lr, weight_decay=weight_decay)
    if has(name, "base"):
        known["base"] = some("mlp", epochs=epochs, hidden=16)
    if has(name, "rounds"):
        known |= {"views": ("structure", "labels"), "rounds": 1, "head": "trees"}
    return METHODS[name](**known)


def solved(method, task):
    solution = method.solve(task)
    graph = task.graph
    assert solution.scores.shape == (graph.num_nodes, graph.num_classes)
    assert torch.isfinite(solution.scores).all()
    return solution.scores


@every_method
@pytest.mark.long
def test_the_seed_determines_the_scores(name):
    (task,) = tasks_of(suiting())
    method = some(name, dropout=0.5, layers=2)
    torch.manual_seed(1)
    once = solved(method, task)
    torch.rand(3)
    assert torch.equal(once, solved(method, task))


@every_trained
@pytest.mark.long
def test_another_seed_gives_other_scores(name):
    (task,) = tasks_of(suiting())
    once, other = (solved(some(name), replace(task, seed=seed)) for seed in (0, 1))
    assert not torch.equal(once, other)


@every_method
@pytest.mark.long
def test_solving_leaves_the_global_generator_alone(name):
    (task,) = tasks_of(suiting())
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    solved(some(name), task)
    assert torch.equal(torch.rand(4), wanted)


@every_method
def test_labels_of_test_nodes_change_nothing(name):
    graph = suiting()
    (split,) = random_splits(graph.labels, count=1)
    changed = graph.labels.clone()
    changed[split.test] = 1 - changed[split.test]
    answers = [
        solved(some(name, layers=2), Task.from_split(one, split, ACCURACY))
        for one in (graph, replace(graph, labels=changed))
    ]
    assert torch.equal(*answers)


def assert_better_than_guessing(name, metric):
    graph = suiting()
    (split,) = random_splits(graph.labels, count=1)
    task = Task.from_split(graph, split, metric)
    scores = solved(some(name, epochs=60, layers=2, hops=2, flow_hops=2), task)[
        split.test
    ]
    labels = graph.labels[split.test]
    assert float(metric.score(scores, labels, torch.ones(len(labels)))) > 0.7


@every_method
@pytest.mark.long
def test_better_than_guessing(name):
    assert_better_than_guessing(name, ACCURACY)


@pytest.mark.parametrize(
    "name", ["linkx", "gcn", "label-propagation", "correct-and-smooth", "views"]
)
@pytest.mark.parametrize("metric", [name for name in METRICS if name != "accuracy"])
@pytest.mark.long
def test_each_kind_of_method_learns_by_every_metric(name, metric):
    assert_better_than_guessing(name, METRICS[metric])


@every_method
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.long
def test_every_kind_of_graph_is_scored(name, features, directed):
    (task,) = tasks_of(suiting(nodes=60, features=features, directed=directed))
    for layers in (1, 2):
        solved(some(name, epochs=2, layers=layers), task)


@every_method
@pytest.mark.parametrize("edges", [[], [(0, 0), (5, 5)]])
@pytest.mark.long
def test_graphs_without_neighbours_are_scored(name, edges):
    (task,) = tasks_of(drawn(edges, 12, labels=[0, 1, 2] * 4))
    solved(some(name, epochs=2, layers=2), task)


@every_method
def test_weighted_edges_are_scored(name):
    graph = suiting(nodes=60)
    rows = graph.adjacency.to_scipy().astype("float32")
    rows.data[:] = 0.5
    weighted = Graph.from_scipy(rows, features=graph.features, labels=graph.labels)
    (task,) = tasks_of(weighted)
    solved(some(name, epochs=2), task)


def networks(name, features):
    """Networks of a method with few layers and with many, and what they look at."""
    for depth in (1, 2, 3):
        method = some(
            name, hidden=8, layers=depth, edge_layers=depth, feature_layers=depth
        )
        prepared = method.prepare(suiting(features=features))
        torch.manual_seed(0)
        network = method.network(prepared)
        network.row_wise = method.row_wise
        yield network, prepared


@every_trained
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.long
def test_every_parameter_has_a_gradient(name, features):
    for network, graph in networks(name, features):
        for metric in METRICS.values():
            network.zero_grad()
            scores = network.train()(graph)
            metric.loss(scores, graph.labels, (graph.labels >= 0).float()).backward()
            for part, parameter in network.named_parameters():
                assert parameter.grad is not None, part
                assert torch.isfinite(parameter.grad).all(), part
                assert parameter.grad.abs().sum() > 0, part


@every_trained
@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_rows_alone_have_the_logits_of_the_full_graph(name, features):
    ids = torch.tensor([7, 0, 299, 12, 12])
    for network, graph in networks(name, features):
        network.eval()
        if network.row_wise:
            wanted = network(graph)[ids]
            torch.testing.assert_close(network(graph.select_rows(ids)), wanted)


@every_trained
def test_uses_batch_statistics_is_true_where_rows_interact(name):
    for network, graph in networks(name, "dense"):
        if not network.row_wise:
            continue
        for part in network.modules():
            if isinstance(part, Dropout):
                part.p.zero_()
        ids = torch.arange(50)
        alone = network.train()(graph.select_rows(ids))
        same = torch.allclose(alone, network(graph)[ids], atol=1e-5)
        assert same != uses_batch_statistics(network)


@pytest.fixture
def large_epsilon(monkeypatch):
    """AdamW with a large epsilon, so that rounding noise makes no full step."""
    monkeypatch.setattr(reference, "ADAM_EPS", 1e-3)
    for module in (step, optim):
        monkeypatch.setattr(module, "backend", lambda device: reference)


def assert_same(found, wanted):
    losses = pytest.approx(wanted.curve.losses, rel=1e-4, abs=1e-6)
    assert found.curve.losses == losses
    assert found.curve.best_epoch == wanted.curve.best_epoch
    torch.testing.assert_close(found.scores, wanted.scores, rtol=1e-4, atol=1e-4)


@every_trained
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.long
def test_a_stack_equals_its_runs_alone(name, features, large_epsilon):
    tasks = tasks_of(suiting(features=features), 3)
    rates = [(0.01, 0.001), (0.1, 0.0), (0.003, 0.5)]
    # Many heads make of a rounding error a loss that is double after eight epochs.
    options = {"epochs": 8, "dropout": 0.0, "layers": 2, "heads": 2}
    methods = [some(name, lr=lr, weight_decay=decay, **options) for lr, decay in rates]
    together = train_stacks(methods, tasks)
    for method, task, found in zip(methods, tasks, together, strict=True):
        assert_same(found, method.solve(task))


def ordinary_losses(method, task):
    """The losses of a loop that anybody would write."""
    graph = method.prepare(task.graph)
    rates = {"lr": method.training.lr, "weight_decay": method.training.weight_decay}
    torch.manual_seed(task.seed)
    network = method.network(graph).train()
    optimiser = torch.optim.AdamW(network.parameters(), eps=1e-3, **rates)
    ones = torch.ones(len(task.train))
    for _ in range(method.training.epochs):
        optimiser.zero_grad()
        scores = network(graph)[task.train]
        loss = task.metric.loss(scores, graph.labels[task.train], ones)
        loss.backward()
        optimiser.step()
        yield float(loss.detach())


@every_trained
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.long
def test_training_is_that_of_an_ordinary_loop(name, features, layers, large_epsilon):
    (task,) = tasks_of(suiting(features=features, directed=True))
    method = some(name, epochs=10, lr=0.05, dropout=0.0, layers=layers)
    wanted = list(ordinary_losses(method, task))
    assert method.solve(task).curve.losses == pytest.approx(wanted, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", [name for name in TRAINED if has(name, "dropout")])
@pytest.mark.parametrize("rates", [(0.0, 0.9), (0.9, 0.0)])
@pytest.mark.long
def test_runs_of_a_stack_have_their_own_dropout(name, rates, large_epsilon):
    tasks = tasks_of(suiting(), 2)
    found = train_stacks([some(name, dropout=rate, layers=2) for rate in rates], tasks)
    without = some(name, dropout=0.0, layers=2)
    still = rates.index(0.0)
    assert_same(found[still], without.solve(tasks[still]))
    other = without.solve(tasks[1 - still]).curve.losses
    assert found[1 - still].curve.losses != pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize("option", ["alpha", "theta"])
@pytest.mark.long
def test_other_options_that_may_differ_in_a_stack(option, large_epsilon):
    names = [name for name in TRAINED if option in METHODS[name].stackable_options]
    assert names
    tasks = tasks_of(suiting(), 2)
    for name in names:
        rest = {"dropout": 0.0, "layers": 3}
        methods = [some(name, **rest, **{option: value}) for value in (0.1, 0.7)]
        assert len({Config(method).stack_key for method in methods}) == 1
        pairs = zip(methods, tasks, train_stacks(methods, tasks), strict=True)
        for method, task, found in pairs:
            assert_same(found, method.solve(task))


@every_method
def test_what_may_differ_is_an_option_of_the_method(name):
    kind = METHODS[name]
    tested = {"lr", "weight_decay", "dropout", "alpha", "theta"}
    assert kind.stackable_options <= tested
    assert kind.stackable_options - {"dropout"} <= set(options_of(kind()))


@every_trained
@pytest.mark.long
def test_curves_tell_every_epoch_and_the_first_best(name):
    (task,) = tasks_of(suiting())
    curve = some(name, epochs=15).solve(task).curve
    assert len(curve.losses) == len(curve.valid_scores) == 15
    assert curve.best_epoch == 1 + curve.valid_scores.index(max(curve.valid_scores))
    assert curve.losses[-1] < curve.losses[0]
    assert curve.seconds > 0


def other_than(field_type, value):
    """Another value that the same option may have."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return next(one for one in field_type.__args__ if one != value)
    if isinstance(value, tuple):
        return (*value, 3 if isinstance(value[0], int) else value[0])
    return value + 1 if isinstance(value, int) else value / 3 + 0.1


def changed(settings):
    """The same settings with every option different."""
    found = {}
    hints = get_type_hints(type(settings))
    kinds = choices(type(settings))
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name in kinds:
            others = (
                one for one in kinds[field.name].values() if one is not type(value)
            )
            found[field.name] = changed(next(others)())
        elif is_dataclass(value):
            found[field.name] = changed(value)
        else:
            found[field.name] = other_than(hints[field.name], value)
    return type(settings)(**found)


def result_of(name, method, view):
    result = Result(
        dataset="a graph/with spaces",
        method=name,
        options=options_of(method),
        metric="accuracy",
        split=2,
        seed=7,
        train=1.0,
        valid=2.0,
        test=3.0,
        best_epoch=1,
        seconds=0.0,
        peak_memory_mb=1.0,
        device="cpu",
        versions={},
        losses=[],
        grades=[],
        view=view,
    )
    return Result(**json.loads(json.dumps(result.to_json())))


@every_method
@pytest.mark.parametrize("usual", [True, False])
def test_a_result_tells_the_command_that_repeats_it(name, usual, monkeypatch):
    assert_repeats(
        name, METHODS[name]() if usual else changed(METHODS[name]()), monkeypatch
    )


@pytest.mark.parametrize("base", TRAINED)
def test_a_result_tells_what_was_chosen_inside_a_method(base, monkeypatch):
    method = METHODS["correct-and-smooth"](base=changed(METHODS[base]()))
    assert options_of(method)["base"] == base
    assert_repeats("correct-and-smooth", method, monkeypatch)


VIEWS = [{}, {"metric": "roc-auc", "both_ways": True}]


def assert_repeats(name, method, monkeypatch):
    for view in VIEWS:
        assert_command(name, method, view, monkeypatch)


def assert_command(name, method, view, monkeypatch):
    seen = {}
    about = {"name": "a graph/with spaces", "metric": "accuracy", "provenance": {}}
    monkeypatch.setattr(
        train, "find", lambda dataset, data: StoredGraph(Path(dataset), about)
    )
    monkeypatch.setattr(train, "to_json", lambda *parts: {})
    monkeypatch.setattr(train, "print_output", lambda *parts: None)

    def note(dataset, method, *, splits, seed, options):
        assert options_of_dataset(dataset).overrides == view
        seen.update(dataset=dataset.name, method=method, splits=splits, seed=seed)
        return SimpleNamespace(results=[])

    monkeypatch.setattr(train, "train_splits", note)
    program, *words = shlex.split(result_of(name, method, view).command)
    assert program == "unalike"
    assert main(words) == 0
    assert seen == {
        "dataset": "a graph/with spaces",
        "method": method,
        "splits": [2],
        "seed": 7,
    }


def nested(settings):
    """Every path of names from a method to what may be chosen inside it."""
    names, inside = [], []
    for field in fields(settings):
        kinds = choices(type(settings)).get(field.name)
        value = getattr(settings, field.name)
        if kinds:
            names.append(field.name)
            inside.append([path for kind in kinds.values() for path in nested(kind())])
        elif is_dataclass(value):
            inside.append(nested(value))
        else:
            names.append(field.name)
    return [[*names, *chain(*paths)] for paths in product(*inside)]


@every_method
def test_options_are_described_and_named_once(name):
    kind = METHODS[name]
    assert kind.paper.strip()
    assert kind.__doc__
    paths = nested(kind())
    for names in paths:
        assert len(names) == len(set(names))
        assert not set(names) & {"dataset", "splits", "seed", "device", "data", "json"}
    assert set(options_of(kind(), omit=False)) in map(set, paths)
