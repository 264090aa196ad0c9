"""What every `nn.Module` is promised that is made a method."""

import sys
import warnings
from dataclasses import dataclass, replace

import pytest
import torch
from graphs import suiting, tasks_of
from torch import nn
from torch.nn import functional as F

import unalike
from unalike import METHODS, UserError, load_model
from unalike.inference.model import fit_model
from unalike.methods import base as methods
from unalike.methods import registry
from unalike.methods.base import MessagePassingMethod, train_stacks
from unalike.nn.linear import Dropout
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.sparse_linear import SparseLinear
from unalike.options import choices, options_of, with_options
from unalike.samplers import SAMPLERS
from unalike.training import stack
from unalike.training.state import Training

with warnings.catch_warnings():
    # Importing it compiles a script, which torch has come to warn of.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import GCNConv

SHORT = Training(epochs=4, lr=0.05)


class PygGCN(nn.Module):
    """Two GCNConv layers of PyTorch Geometric."""

    def __init__(self, in_channels, out_channels, hidden=8, dropout=0.5):
        super().__init__()
        self.first = GCNConv(in_channels, hidden)
        self.drop = nn.Dropout(dropout)
        self.exp_avg_sq = GCNConv(hidden, out_channels)

    def forward(self, x, edge_index):
        return self.exp_avg_sq(self.drop(self.first(x, edge_index).relu()), edge_index)


class WithAdjacency(nn.Module):
    """A mean over neighbours and a batch norm, with unalike's adjacency."""

    def __init__(self, num_features, num_classes, hidden: int = 8):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(num_features, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(hidden, num_classes),
        )

    def forward(self, x, adjacency):
        return adjacency @ self.mlp(x)


class WholeGraph(nn.Module):
    """Reads the batch as it is."""

    def __init__(self, graph):
        super().__init__()
        self.linear = nn.Linear(graph.num_features, graph.num_classes)

    def forward(self, graph):
        x = graph.features.to_dense().float()
        return GCNNorm.of(graph.adjacency) @ self.linear(x)


class RowWiseNet(nn.Module):
    """Adjacency rows through a SparseLinear, features through a Linear."""

    def __init__(self, graph, hidden=8):
        super().__init__()
        columns = graph.adjacency.num_cols_global
        self.rows = SparseLinear("adjacency", columns, hidden)
        self.final = nn.Linear(hidden, graph.num_classes)

    def forward(self, batch):
        return self.final(self.rows(batch.adjacency).relu())


class OnlyFeatures(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, x):
        return self.linear(x)


class Recurrent(nn.Module):
    """Has an LSTM, which vmap refuses."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lstm = nn.LSTM(in_channels, out_channels)

    def forward(self, x):
        return self.lstm(x[None])[0][0]


class FunctionalDropout(nn.Module):
    """Drops by a number that is an attribute."""

    def __init__(self, in_channels, out_channels, dropout=0.5):
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)
        self.rate = dropout

    def forward(self, x):
        return F.dropout(self.linear(x), self.rate, self.training)


MODULES = {
    "pyg-gcn": (PygGCN, False),
    "with-adjacency": (WithAdjacency, False),
    "whole-graph": (WholeGraph, False),
    "row-wise-net": (RowWiseNet, True),
    "only-features": (OnlyFeatures, True),
    "recurrent": (Recurrent, False),
    "functional-dropout": (FunctionalDropout, False),
}
STACKED = sorted(MODULES.keys() - {"recurrent"})
every_module = pytest.mark.parametrize("name", MODULES)


@pytest.fixture(autouse=True)
def registered(monkeypatch, tmp_path):
    """The modules are methods; partitions of small graphs stay away from real data."""
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))
    monkeypatch.setattr(methods, "SHOWN_NOTES", set())
    before = dict(METHODS), dict(registry.TRAINED_METHODS)
    for name, (module, row_wise) in MODULES.items():
        unalike.method(name, module, row_wise=row_wise)
    yield
    for table, old in zip((METHODS, registry.TRAINED_METHODS), before, strict=True):
        table.clear()
        table.update(old)


def some(name, **options):
    usual = METHODS[name](training=SHORT)
    known = options_of(usual)
    return with_options(usual, {k: v for k, v in options.items() if k in known}, name)


SIZES = {"parts": 2, "at_once": 1, "size": 30, "budget": 60, "roots": 40, "steps": 3}
CASES = [
    (name, sampler)
    for name, (_, row_wise) in MODULES.items()
    for sampler in SAMPLERS
    if sampler == "full" or (sampler == "rows") == row_wise
]


@pytest.mark.parametrize(("name", "sampler"), CASES)
@pytest.mark.long
def test_a_module_learns_with_every_sampler_that_fits(name, sampler):
    (task,) = tasks_of(suiting(nodes=80))
    assert sampler in choices(METHODS[name])["batching"]
    options = options_of(SAMPLERS[sampler]())
    sizes = {key: size for key, size in SIZES.items() if key in options}
    batches = SAMPLERS[sampler](**sizes)
    solution = replace(some(name, epochs=12), batching=batches).solve(task)
    assert solution.scores.shape == (80, 2)
    assert solution.scores.isfinite().all()
    assert solution.curve.losses[-1] < solution.curve.losses[0]


@every_module
@pytest.mark.parametrize("features", ["sparse", "half", "one-hot"])
@pytest.mark.long
def test_a_module_takes_every_kind_of_features(name, features):
    (task,) = tasks_of(suiting(nodes=60, features=features, directed=True))
    assert some(name).solve(task).scores.isfinite().all()


class Listener:
    def __init__(self):
        self.stages = []

    def stage(self, what, total, unit):
        self.stages.append(what)

    def advance(self, amount, note=""):
        pass


@pytest.mark.parametrize("name", STACKED)
@pytest.mark.long
def test_a_stack_equals_its_runs_one_by_one(name, monkeypatch):
    tasks = tasks_of(suiting(nodes=60), 3)
    rates = (0.01, 0.05, 0.002)
    runs = [replace(some(name), training=Training(epochs=5, lr=lr)) for lr in rates]
    runs = [
        with_options(run, {"dropout": 0.0}, name) if "dropout" in vars(run) else run
        for run in runs
    ]
    listener = Listener()
    together = train_stacks(runs, tasks, progress=listener)
    assert listener.stages == ["training"]
    drops = any(
        isinstance(m, Dropout) and m.p
        for m in runs[0].network(tasks[0].graph).modules()
    )
    for method, task, found in zip(runs, tasks, together, strict=True):
        alone = method.solve(task)
        if not drops:
            assert found.curve.losses == pytest.approx(alone.curve.losses, rel=1e-3)
            torch.testing.assert_close(found.scores, alone.scores, rtol=1e-3, atol=1e-3)


def test_a_module_that_vmap_refuses_trains_run_by_run_and_that_is_said_once():
    tasks = tasks_of(suiting(nodes=60), 2)
    method, listener = some("recurrent"), Listener()
    found = train_stacks([method] * 2, tasks, progress=listener)
    train_stacks([method] * 2, tasks, progress=listener)
    notes = [what for what in listener.stages if what != "training"]
    assert len(notes) == 1
    assert notes[0].startswith("recurrent trains run by run: ")
    assert listener.stages.count("training") == 4
    for task, solution in zip(tasks, found, strict=True):
        alone = method.solve(task)
        torch.testing.assert_close(solution.scores, alone.scores)


@pytest.mark.parametrize(
    ("name", "stacks"), [("pyg-gcn", 1), ("functional-dropout", 2)]
)
def test_dropout_rates_differ_in_a_stack_only_if_they_are_layers(name, stacks):
    tasks = tasks_of(suiting(nodes=60), 2)
    runs = [some(name, dropout=rate) for rate in (0.0, 0.9)]
    listener = Listener()
    still, moved = train_stacks(runs, tasks, progress=listener)
    assert listener.stages.count("training") == stacks
    wanted = runs[0].solve(tasks[0]).curve.losses
    assert still.curve.losses == pytest.approx(wanted, rel=1e-3)
    without = runs[0].solve(tasks[1]).curve.losses
    assert moved.curve.losses != pytest.approx(without, rel=1e-2)


def test_forward_is_that_of_gcn_with_the_same_weights():
    graph = suiting(nodes=60)
    own = METHODS["gcn"](hidden=8, batch_norm=False).network(graph).eval()
    plain = METHODS["pyg-gcn"](hidden=8).network(graph).eval()
    with torch.no_grad():
        for parameter in own.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        first, second = plain.module.first, plain.module.exp_avg_sq
        first.lin.weight.copy_(own.first.weight.T)
        first.bias.copy_(own.blocks[0].norm_act_drop.norm.bias)
        second.lin.weight.copy_(own.blocks[0].linear.weight.T)
        second.bias.copy_(own.bias.bias)
    torch.testing.assert_close(plain(graph), own(graph))


def test_training_is_that_of_an_ordinary_loop():
    (task,) = tasks_of(suiting(nodes=60))
    method = some("pyg-gcn", dropout=0.0, epochs=8)
    torch.manual_seed(task.seed)
    module = PygGCN(task.graph.num_features, 2, dropout=0.0).train()
    data = task.graph.to_pyg()
    adamw = torch.optim.AdamW(
        module.parameters(), lr=SHORT.lr, weight_decay=SHORT.weight_decay
    )
    losses = []
    for _ in range(8):
        adamw.zero_grad()
        logits = module(data.x, data.edge_index)[task.train]
        loss = F.cross_entropy(logits, task.graph.labels[task.train])
        loss.backward()
        adamw.step()
        losses.append(float(loss.detach()))
    assert method.solve(task).curve.losses == pytest.approx(losses, rel=1e-4)


@every_module
def test_a_saved_model_gives_the_same_logits(name, tmp_path):
    (task,) = tasks_of(suiting(nodes=60))
    model, solution = fit_model(some(name), task)
    model.save(tmp_path / "a.safetensors")
    loaded = load_model(tmp_path / "a.safetensors")
    assert loaded.method == model.method
    torch.testing.assert_close(loaded.scores(task.graph), solution.scores)


def test_a_model_of_a_method_that_is_not_registered_is_refused(tmp_path):
    (task,) = tasks_of(suiting(nodes=60))
    fit_model(some("pyg-gcn"), task)[0].save(tmp_path / "a.safetensors")
    del METHODS["pyg-gcn"]
    with pytest.raises(UserError, match=r"No method 'pyg-gcn'.*unalike\.method"):
        load_model(tmp_path / "a.safetensors")


def test_constructor_defaults_are_the_hyperparameters():
    options = options_of(METHODS["pyg-gcn"]())
    assert (options["hidden"], options["dropout"]) == (8, 0.5)
    assert not {"in_channels", "out_channels"} & options.keys()
    (task,) = tasks_of(suiting(nodes=60))
    assert (
        METHODS["pyg-gcn"](hidden=5).network(task.graph).module.first.out_channels == 5
    )


def test_a_function_of_the_graph_is_a_factory():
    made = unalike.method("by-function", lambda g: OnlyFeatures(g.num_features, 2))
    (task,) = tasks_of(suiting(nodes=60))
    assert made(training=SHORT).solve(task).scores.isfinite().all()


def test_a_decorated_class_stays_a_class():
    decorated = unalike.method("decorated")(OnlyFeatures)
    assert decorated is OnlyFeatures
    assert "decorated" in METHODS


def test_a_subclass_of_four_lines_is_a_method():
    @dataclass(frozen=True, kw_only=True)
    class Mine(MessagePassingMethod):
        hidden: int = 4

        def build_module(self, graph):
            return PygGCN(graph.num_features, graph.num_classes, self.hidden)

    unalike.register("mine", Mine)
    runs = unalike.run("chameleon-twin", Mine(training=SHORT), splits=[0, 1])
    assert {one.method for one in runs} == {"mine"}
    assert runs[0].options["hidden"] == 4


class Strange(nn.Module):
    def forward(self, x, neighbours):
        return x


class Narrow(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.linear = nn.Linear(in_channels, 1)

    def forward(self, x):
        return self.linear(x)


def lazily(graph):
    return PygGCN(-1, graph.num_classes)


MISTAKES = [
    (Strange, r"Strange\.forward takes 'neighbours', which is not one of batch, .*x"),
    (Narrow, r"returns a tensor \[\d+, 1\]; logits are \[nodes, classes\]"),
    (lazily, "layers of unknown size"),
    (lambda graph: 3, "builds a int, no nn.Module"),
]


@pytest.mark.parametrize(("module", "words"), MISTAKES)
def test_a_module_that_cannot_be_trained_gives_an_error_of_one_line(module, words):
    (task,) = tasks_of(suiting(nodes=60))
    made = unalike.method("wrong", module)
    with pytest.raises(UserError, match=words) as caught:
        made(training=SHORT).solve(task)
    assert "\n" not in str(caught.value)


class NeedsDepth(nn.Module):
    def __init__(self, in_channels, depth):
        super().__init__()


class HasRate(nn.Module):
    def __init__(self, in_channels, lr=0.1):
        super().__init__()


@pytest.mark.parametrize(
    ("name", "module", "words"),
    [
        ("deep", NeedsDepth, "needs 'depth', which has no default and is not one of"),
        ("rated", HasRate, "'lr', which is an option of training"),
        ("gcn", OnlyFeatures, "There is a method gcn already"),
    ],
)
def test_a_constructor_that_cannot_be_filled_is_refused(name, module, words):
    with pytest.raises(UserError, match=words):
        unalike.method(name, module)


def test_memory_is_estimated_for_layers_without_biases():
    graph = suiting(nodes=60)
    bare = nn.Sequential(nn.Linear(2, 64, bias=False), nn.Linear(64, 2, bias=False))
    wide = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False))
    small, large = (
        stack.memory_per_run(module, graph, row_wise=False) for module in (bare, wide)
    )
    assert 0 < small < large


PACKAGE = '''
import torch


class FromElsewhere(torch.nn.Module):
    """A linear map that another package brings."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.linear = torch.nn.Linear(in_channels, out_channels)

    def forward(self, x):
        return self.linear(x)
'''


def installed(folder, entries):
    """A package with entry points, as an installer leaves it."""
    (folder / "brings_methods.py").write_text(PACKAGE)
    about = folder / "brings_methods-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: brings-methods\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[unalike.methods]\n{entries}\n")


def test_another_package_brings_a_method(tmp_path, monkeypatch):
    installed(tmp_path, "from-elsewhere = brings_methods:FromElsewhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.load_entry_points()
    (task,) = tasks_of(suiting(nodes=60))
    assert METHODS["from-elsewhere"](training=SHORT).solve(task).scores.isfinite().all()
    sys.modules.pop("brings_methods")


def test_a_package_that_fails_is_left_out_with_a_warning(tmp_path, monkeypatch):
    installed(tmp_path, "broken = brings_methods:Missing")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(
        UserWarning, match="broken of brings_methods:Missing is left out"
    ):
        registry.load_entry_points()
    assert "broken" not in METHODS
    sys.modules.pop("brings_methods")


@pytest.mark.long
def test_the_command_line_lists_and_trains_methods_of_other_packages(tmp_path):
    import json
    import os
    import subprocess

    installed(tmp_path, "from-elsewhere = brings_methods:FromElsewhere")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}

    def unalike_command(*words):
        run = [sys.executable, "-m", "unalike", *words, "--json"]
        done = subprocess.run(
            run, capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    rows = unalike_command("list", "methods")
    (row,) = [row for row in rows if row["name"] == "from-elsewhere"]
    assert row["what"] == "A linear map that another package brings."
    words = ["chameleon-twin", "from-elsewhere", "--epochs", "3", "--splits", "0"]
    assert unalike_command("train", *words)["method"] == "from-elsewhere"
