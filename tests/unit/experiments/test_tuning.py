"""`unalike.tune` searches any method on graphs in memory, folders and names."""

import numpy as np
import pytest
from graphs import suiting

from unalike import (
    LINKX,
    MLP,
    CorrectAndSmooth,
    Graph,
    LabelPropagation,
    RunOptions,
    Training,
    UserError,
    open_graph,
    random_splits,
    run,
    save_graph,
    tune,
)
from unalike.experiments.method_search import search_space
from unalike.methods import METHODS
from unalike.methods.base import TrainedMethod
from unalike.options import with_options

QUICK = LINKX(hidden=6, training=Training(epochs=3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = suiting(nodes=60)
    save_graph("shop", graph, splits=random_splits(graph.labels, count=2))
    return tmp_path


def test_a_graph_in_memory_is_searched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = suiting(nodes=60)
    found = tune(graph, QUICK, trials=3)
    assert len(found.trials) == 3
    assert [len(runs) for _, runs in found.trials] == [5, 5, 5]
    assert found.best.hidden == 6
    assert found.best.training.lr == found.trials[0][0]["lr"]
    assert run(graph, found.best).valid_mean == found.trials[0][1].valid_mean
    assert found.command == ""
    assert "graph in memory" in repr(found)
    assert not list(tmp_path.iterdir())


def test_a_folder_gives_the_command_that_finds_it(folder):
    for graph in ("shop", folder / "shop", open_graph("shop")):
        found = tune(graph, QUICK, trials=1)
        name = "shop" if graph == "shop" else str(folder / "shop")
        assert found.command.startswith(f"unalike train {name} linkx")
        assert found.summary().note == found.command
        assert "valid" in found.summary().headings


def test_stored_trials_go_on(folder):
    url = "sqlite:///trials.db"
    first = tune("shop", QUICK, trials=2, results=url)
    more = tune("shop", QUICK, trials=3, results=url)
    assert [params for params, _ in first.trials] == [
        params for params, _ in more.trials if params in [p for p, _ in first.trials]
    ]
    assert len(more.trials) == 3
    again = tune("shop", QUICK, trials=3, minutes=1e-9, results=url)
    assert again.command == more.command


def test_methods_are_given_by_name_or_class(folder):
    for method in ("label-propagation", LabelPropagation):
        found = tune("shop", method, trials=1)
        assert isinstance(found.best, LabelPropagation)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * ("views" in name))
        for name in METHODS
        if name != "correct-and-smooth"
    ],
)
def test_every_method_is_searched_on_an_own_graph(folder, name):
    method = METHODS[name]()
    if isinstance(method, TrainedMethod):
        method = with_options(method, {"epochs": 2}, name)
    found = tune("shop", method, trials=1)
    assert type(found.best) is METHODS[name]
    assert found.command.startswith(f"unalike train shop {name}")
    assert {*found.searched} == {*search_space(method)}


def test_numbers_to_predict_are_searched():
    graph = suiting(nodes=60)
    prices = graph.features[:, 0].numpy() * 3 + np.arange(60) / 60
    graph = Graph.from_scipy(
        graph.adjacency.to_scipy(), features=graph.features, targets=prices
    )
    found = tune(graph, MLP(training=Training(epochs=3)), trials=1)
    assert found.metric == "r2"


def test_correct_and_smooth_has_its_own_studies(folder):
    base = MLP(hidden=4, training=Training(epochs=3))
    studies = tune("shop", CorrectAndSmooth(base=base), trials=1, splits=[0])
    assert len(studies) == 4
    with pytest.warns(DeprecationWarning, match="CorrectAndSmooth"):
        old = tune("shop", base=base, trials=1, splits=[0])
    assert [one.valid for one in old] == [one.valid for one in studies]


def test_what_a_search_does_not_have_is_refused(folder):
    with pytest.raises(UserError, match="a search uses all splits"):
        tune("shop", QUICK, splits=[0])
    with pytest.raises(UserError, match="saves no model"):
        tune("shop", QUICK, options=RunOptions(model="m.safetensors"))
    with pytest.raises(UserError, match="give trials"):
        tune("shop", minutes=1.0)


@pytest.mark.parametrize("start", [run, tune])
def test_a_graph_in_memory_without_labels_is_refused(start):
    graph = suiting(nodes=60)
    bare = Graph.from_scipy(graph.adjacency.to_scipy(), features=graph.features)
    with pytest.raises(UserError, match="graph in memory has no labels to train by"):
        start(bare, QUICK)


@pytest.mark.parametrize("method", [QUICK, CorrectAndSmooth()])
def test_a_graph_without_splits_is_refused_with_a_remedy(tmp_path, method):
    stored = save_graph(tmp_path / "bare", suiting(nodes=60))
    with pytest.raises(UserError, match=r"bare has no splits.*random_splits"):
        tune(stored, method, trials=1)
    with pytest.raises(UserError, match=r"bare has no splits.*random_splits"):
        run(stored, method)
