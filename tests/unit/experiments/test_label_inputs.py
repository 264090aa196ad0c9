"""Labels as inputs leak no label, and are named in commands, documents and keys."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from graphs import suiting
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import GCN, LINKX, MLP, RunOptions, UserError, random_splits, run
from unalike.cli.main import main
from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.metrics import ACCURACY
from unalike.data.split import Split
from unalike.data.store import save_graph
from unalike.data.task import Task
from unalike.experiments.config import Config, DatasetOptions
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.label_inputs import add_label_inputs
from unalike.experiments.plan import SweepRequest, plan_sweep
from unalike.experiments.recipe import parse
from unalike.experiments.result import command_line
from unalike.experiments.sweep import sweep
from unalike.methods.label_propagation import LabelPropagation
from unalike.training.state import Training

QUICK = Training(epochs=3)
LABEL_INPUTS = DatasetOptions(label_inputs=True)


def random_task(seed, directed, features="dense"):
    """A task on a small graph with self-loops, duplicate rows and an isolated node."""
    rng = np.random.default_rng(seed)
    nodes, classes = int(rng.integers(20, 40)), int(rng.integers(2, 5))
    matrix = rng.random((nodes, nodes)) < rng.uniform(0.05, 0.4)
    matrix[1] = matrix[0]
    matrix[2], matrix[:, 2] = False, False
    source, target = map(torch.from_numpy, np.nonzero(matrix))
    values = torch.from_numpy(rng.integers(0, 2, (nodes, 3))).float()
    rows, cols = values.nonzero().T
    sparse = Adjacency.from_edges(rows, cols, shape=(nodes, 3))
    graph = Graph.from_edges(
        source,
        target,
        num_nodes=nodes,
        features={"dense": values, "sparse": sparse}[features],
        labels=torch.from_numpy(rng.integers(0, classes, nodes)),
        num_classes=classes,
        directed=directed,
    )
    order = torch.from_numpy(rng.permutation(nodes))
    train, valid = order[: nodes // 2], order[nodes // 2 : -4]
    split = Split(train, valid, order[-4:])
    return replace(Task.from_split(graph, split, ACCURACY), seed=seed)


def flipped(task, nodes):
    """The same task with other labels of some nodes."""
    labels = task.graph.labels.clone()
    labels[nodes] = (labels[nodes] + 1) % task.graph.num_classes
    return replace(task, graph=replace(task.graph, labels=labels))


def inputs(task, method):
    return add_label_inputs(task, method).graph.features.to_dense()


tasks = st.builds(
    random_task,
    st.integers(0, 10_000),
    st.booleans(),
    st.sampled_from(["dense", "sparse"]),
)


@given(task=tasks, position=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_flipping_a_label_changes_no_bit_of_its_own_row(task, position):
    node = task.train[position]
    before, after = inputs(task, LINKX()), inputs(flipped(task, node), LINKX())
    assert torch.equal(before[node], after[node])


@given(task=tasks)
@settings(max_examples=20, deadline=None)
def test_no_row_of_message_passing_depends_on_a_label_that_is_learned(task):
    seen = add_label_inputs(task, GCN())
    assert 0 < len(seen.train) < len(task.train)
    assert set(seen.train.tolist()) < set(task.train.tolist())
    after = inputs(flipped(task, seen.train), GCN())
    assert torch.equal(seen.graph.features.to_dense(), after)


@given(task=tasks, method=st.sampled_from([LINKX(), GCN()]))
@settings(max_examples=20, deadline=None)
def test_labels_outside_train_change_nothing(task, method):
    hidden = torch.ones(task.graph.num_nodes, dtype=torch.bool)
    hidden[task.train] = False
    after = inputs(flipped(task, hidden.nonzero()[:, 0]), method)
    assert torch.equal(inputs(task, method), after)


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("method", [LINKX(), GCN()], ids=["linkx", "gcn"])
def test_rows_are_the_features_followed_by_histograms(method, features):
    task = random_task(1, directed=False, features=features)
    columns = inputs(task, method)
    own, classes = task.graph.num_features, task.graph.num_classes
    assert torch.equal(columns[:, :own], task.graph.features.to_dense())
    assert columns.shape[1] == own + 3 * (2 * classes + 1)  # a, aa, aa/mean
    assert (columns != inputs(flipped(task, task.train), method)).any()


def test_a_row_wise_method_counts_the_labels_of_other_folds():
    """The total of one step is the number of train neighbours in other folds."""
    task = random_task(3, directed=False)
    classes = task.graph.num_classes
    own = task.graph.num_features
    total = inputs(task, LINKX())[:, own + 2 * classes].expm1()
    known = torch.zeros(task.graph.num_nodes)
    known[task.train] = 1
    adjacency = task.graph.adjacency.to_dense().fill_diagonal_(0)
    assert (total <= adjacency @ known + 1e-4).all()
    assert total.sum() > 0.7 * (adjacency @ known).sum()


@pytest.fixture
def source(tmp_path):
    graph = suiting(nodes=120)
    splits = random_splits(graph.labels, count=2)
    return save_graph(tmp_path / "graph", graph, splits=splits)


@pytest.mark.parametrize(
    "method", [LINKX(training=QUICK), GCN(training=QUICK)], ids=["linkx", "gcn"]
)
def test_a_split_has_the_same_result_alone_and_with_others(source, method, tmp_path):
    seen = LABEL_INPUTS.apply(source)
    both = run(seen, method, options=RunOptions(checkpoint=tmp_path / "state"))
    (alone,) = run(seen, method, splits=[1])
    assert both[1].losses == alone.losses
    (without,) = run(source, method, splits=[1])
    assert without.losses != alone.losses


def test_methods_without_features_of_the_graph_learn_from_labels(tmp_path):
    graph = suiting(nodes=120)
    bare = replace(graph, features=torch.zeros(120, 0))
    splits = random_splits(graph.labels, count=1)
    source = save_graph(tmp_path / "bare", bare, splits=splits)
    with pytest.raises(UserError, match="has no features"):
        run(source, MLP(training=QUICK))
    method = MLP(training=Training(epochs=60))
    (result,) = run(LABEL_INPUTS.apply(source), method)
    assert result.test > 70


def test_the_option_is_in_the_command_the_document_and_the_result(source, capsys):
    words = ["train", str(source.folder), "--label-inputs", "linkx", "--epochs", "2"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["view"] == {"label_inputs": True}
    assert " --label-inputs linkx " in document["command"]
    (result,) = run(LABEL_INPUTS.apply(source), LINKX(training=QUICK), splits=[0])
    assert "--label-inputs" in command_line(result, splits="0")


def test_only_runs_with_the_option_have_another_key():
    usual = Config(LINKX())
    assert usual.to_dict["view"] == {}
    assert Config(LINKX(), LABEL_INPUTS).to_dict["view"] == {"label_inputs": True}
    assert Config(LINKX(), LABEL_INPUTS).hash != usual.hash
    assert Config(LINKX(), LABEL_INPUTS).stack_key != usual.stack_key


RECIPE = """
row = "LINKX with labels"
method = "linkx"
label_inputs = true
[grid]
epochs = [2, 3]
[cells]
"{path}" = {{}}
"""


def test_a_sweep_stores_the_runs_that_a_recipe_with_the_option_asks_for(
    source, tmp_path
):
    recipe = parse(RECIPE.format(path=source.folder), "ours/linkx-labels")
    plan = plan_sweep(SweepRequest(recipes=[recipe]))
    url = f"sqlite:///{tmp_path}/results.db"
    assert sweep(plan, url) == {"runs": 4, "done": 4, "failed": 0}
    with ResultsDatabase.read(url) as results:
        rows = list(results.runs(dataset="graph", method="linkx"))
    assert {row["key"] for row in rows} == set(plan.keys)
    assert all(row["view"] == {"label_inputs": True} for row in rows)
    seen = LABEL_INPUTS.apply(source)
    (expected,) = run(seen, LINKX(training=Training(epochs=3)), splits=[1])
    tests = {(row["options"]["epochs"], row["split"]): row["test"] for row in rows}
    assert tests[3, 1] == pytest.approx(expected.test)


def test_methods_that_train_no_network_and_saved_models_refuse_it(source, tmp_path):
    seen = LABEL_INPUTS.apply(source)
    with pytest.raises(UserError, match="label-propagation trains none"):
        run(seen, LabelPropagation())
    options = RunOptions(model=tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="cannot be saved"):
        run(seen, LINKX(training=QUICK), options=options)
