"""The training loop: rows of an epoch, curves, best epoch, out of memory."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from graphs import HAND_DRAWN, suiting, tasks_of

from unalike import Metric, UserError
from unalike.data.metrics import ACCURACY, cross_entropy
from unalike.methods import METHODS, base
from unalike.methods.base import TrainedMethod, train_stacks
from unalike.methods.link import LINK
from unalike.methods.linkx import LINKX
from unalike.nn.init import linear_parameters
from unalike.nn.linear import Dropout
from unalike.training import memory, step
from unalike.training.masks import RowPlan, merged_labels
from unalike.training.stack import Stack
from unalike.training.state import Training


class Listener:
    """Records progress."""

    def __init__(self):
        self.stages, self.done = [], 0

    def stage(self, what, total, unit):
        self.stages.append((what, total, unit))

    def advance(self, amount, note=""):
        self.done += amount


def plan_of(method, tasks):
    graph = merged_labels(tasks)
    return RowPlan.of(stack_of(method, graph), tasks, graph)


def stack_of(method, graph):
    network = method.network(graph)
    return Stack.build(
        [network],
        device=torch.device("cpu"),
        bf16=False,
        row_wise=True,
    )


def test_only_train_and_valid_rows_are_needed():
    tasks = tasks_of(suiting(), 2)
    plan = plan_of(LINKX(layers=1), tasks)
    needed = [torch.cat([task.train for task in tasks]).unique()]
    needed.append(torch.cat([task.valid for task in tasks]).unique())
    assert torch.equal(plan.train_rows.ids.sort()[0], needed[0])
    assert torch.equal(plan.eval_rows.ids.sort()[0], needed[1])
    assert torch.equal(plan.rows.ids.sort()[0], torch.cat(needed).unique())


def test_batch_norm_needs_all_rows():
    tasks = tasks_of(suiting())
    plan = plan_of(LINKX(layers=2), tasks)
    assert torch.equal(plan.train_rows.ids.sort()[0], torch.arange(300))
    assert torch.equal(plan.eval_rows.ids.sort()[0], tasks[0].valid.sort()[0])


@pytest.mark.parametrize("layers", [1, 2])
def test_weights_choose_the_nodes_of_each_run(layers):
    tasks = tasks_of(suiting(), 3)
    plan = plan_of(LINKX(layers=layers), tasks)
    for run, task in enumerate(tasks):
        for rows, weight, wanted in (
            (plan.train_rows, plan.loss_weight[run], task.train),
            (plan.eval_rows, plan.eval_weight[run], task.valid),
        ):
            assert torch.equal(rows.ids[weight > 0].sort()[0], wanted.sort()[0])
            assert set(weight.tolist()) <= {0.0, 1.0}
            labels = task.graph.labels[rows.ids[weight > 0]]
            assert torch.equal(rows.labels[weight > 0], labels)


def test_train_and_validation_rows_are_views_of_the_same_rows():
    plan = plan_of(LINK(), tasks_of(suiting()))
    count = plan.rows.num_nodes
    assert torch.equal(plan.train_rows.ids, plan.rows.ids[: plan.train_rows.num_nodes])
    assert torch.equal(
        plan.eval_rows.ids, plan.rows.ids[count - plan.eval_rows.num_nodes :]
    )
    base = plan.rows.features.untyped_storage().data_ptr()
    for part in (plan.train_rows, plan.eval_rows):
        assert part.features.untyped_storage().data_ptr() == base


def test_every_row_on_demand():
    tasks = tasks_of(suiting())
    graph = merged_labels(tasks)
    plan = RowPlan.of(stack_of(LINK(), graph), tasks, graph, every_row=True)
    assert plan.eval_rows.num_nodes == 300
    assert int(plan.eval_weight.sum()) == len(tasks[0].valid)


def test_the_first_of_equal_scores_is_the_best():
    level = Metric("level", lambda s, y, w: ACCURACY.score(s, y, w) * 0, cross_entropy)
    (task,) = tasks_of(suiting(), metric=level)
    long = LINK(training=Training(epochs=5)).solve(task)
    short = LINK(training=Training(epochs=1)).solve(task)
    assert long.curve.best_epoch == 1
    assert torch.equal(long.scores, short.scores)


def own_best_epoch(valid_scores, patience):
    """The best epoch of a run that is trained alone."""
    best = 0
    for epoch, score in enumerate(valid_scores, 1):
        if epoch - best > patience:
            break
        if best == 0 or score > valid_scores[best - 1]:
            best = epoch
    return best


def test_each_run_of_a_stack_stops_by_its_own_patience():
    tasks = [replace(task, patience=3) for task in tasks_of(suiting(), 4)]
    method = LINKX(hidden=8, training=Training(epochs=60))
    curves = [solution.curve for solution in method.solve_all(tasks)]
    assert [curve.best_epoch for curve in curves] == [
        own_best_epoch(curve.valid_scores, 3) for curve in curves
    ]
    assert any(
        max(curve.valid_scores) > curve.valid_scores[curve.best_epoch - 1]
        for curve in curves
    )


def nearness(scores, labels, weight):
    """A score that is highest in the middle of training, and never the same twice."""
    return 1 - (cross_entropy(scores, labels, weight).double() - 0.3).abs()


@pytest.mark.parametrize("layers", [1, 2])
def test_scores_are_those_of_the_best_epoch(layers):
    metric = Metric("nearness", nearness, cross_entropy)
    (task,) = tasks_of(suiting(), metric=metric)
    method = LINKX(layers=layers, training=Training(epochs=30, lr=0.005))
    whole = method.solve(task)
    best = whole.curve.best_epoch
    assert 1 < best < 30
    until = replace(method, training=Training(epochs=best, lr=0.005)).solve(task)
    assert torch.equal(whole.scores, until.scores)
    valid = task.valid
    labels, ones = task.graph.labels[valid], torch.ones(len(valid))
    found = nearness(whole.scores[valid], labels, ones)
    assert float(found) == pytest.approx(whole.curve.valid_scores[best - 1], rel=1e-5)


def test_losses_are_those_of_the_weights_before_each_step():
    (task,) = tasks_of(suiting())
    method = LINK(training=Training(epochs=1))
    torch.manual_seed(task.seed)
    scores = method.network(task.graph)(task.graph)[task.train].detach()
    wanted = cross_entropy(
        scores, task.graph.labels[task.train], torch.ones(len(task.train))
    )
    assert method.solve(task).curve.losses == pytest.approx([float(wanted)], rel=1e-5)


def test_inference_in_batches_changes_nothing(monkeypatch):
    (task,) = tasks_of(suiting())
    method = LINKX(layers=2, training=Training(epochs=3))
    whole = method.solve(task).scores
    monkeypatch.setitem(step.MAX_NUMEL, "cpu", 160 * 7)
    torch.testing.assert_close(method.solve(task).scores, whole)


def test_progress_is_reported():
    listener = Listener()
    tasks = tasks_of(suiting())
    train_stacks([LINK(training=Training(epochs=7))], tasks, progress=listener)
    assert listener.stages == [("training", 7, "epochs")]
    assert listener.done == 7


def test_matmul_precision_is_restored():
    before = torch.get_float32_matmul_precision()
    (task,) = tasks_of(suiting())
    LINK(training=Training(epochs=1, precision="tf32")).solve(task)
    assert torch.get_float32_matmul_precision() == before


THREADS = """
import torch
torch.set_num_threads(1)
torch.rand(9).sum()
from unalike.nn import cpu
from unalike.nn.optim import AdamWState, AdamWStep
weights = AdamWState.create(torch.zeros(2, 1, 2), bf16=False)
step = AdamWStep(torch.ones(1), *torch.ones(2, 1), torch.ones(1) > 0)
cpu.adamw(weights, torch.ones(2, 1, 2), step)
print(torch.get_num_threads())
"""


@pytest.mark.long
def test_the_number_of_threads_stays_as_it_was_set():
    run = [sys.executable, "-c", THREADS]
    found = subprocess.run(run, capture_output=True, text=True, check=True)
    assert found.stdout == "1\n"


def test_a_stack_that_does_not_fit_is_halved(monkeypatch):
    fit, sizes = base.fit, []

    def fit_two(runs, **options):
        sizes.append(len(runs))
        if len(runs) > 2:
            raise torch.OutOfMemoryError
        return fit(runs, **options)

    tasks = tasks_of(suiting(), 5)
    method = LINK(training=Training(epochs=2))
    expected = train_stacks([method] * 5, tasks)
    monkeypatch.setattr(base, "fit", fit_two)
    solutions = train_stacks([method] * 5, tasks)
    assert sizes == [5, 3, 2, 1, 2]
    for solution, other in zip(solutions, expected, strict=True):
        torch.testing.assert_close(solution.scores, other.scores)


@pytest.mark.parametrize(
    ("used", "words"),
    [(0, "run; choose"), (97_300_000_000, "next to other programs, which use 97 GB;")],
)
def test_one_run_that_does_not_fit_is_an_error(used, words, monkeypatch):
    def out_of_memory(*_, **options):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(base, "fit", out_of_memory)
    monkeypatch.setattr(memory, "memory_used_by_others", lambda device: used)
    with pytest.raises(UserError, match=f"too little memory for one.*{words}"):
        LINK().solve(tasks_of(suiting())[0])


def test_one_run_waits_for_memory_that_other_programs_use(monkeypatch):
    fit, calls = base.fit, []

    def out_of_memory_twice(runs, **options):
        calls.append(runs)
        if len(calls) < 3:
            raise torch.OutOfMemoryError
        return fit(runs, **options)

    (task,) = tasks_of(suiting())
    method = LINK(training=Training(epochs=2))
    expected = method.solve(task)
    monkeypatch.setattr(base, "fit", out_of_memory_twice)
    monkeypatch.setattr(memory, "wait_for_memory", lambda *_: True)
    torch.testing.assert_close(method.solve(task).scores, expected.scores)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epochs": 0}, "--epochs is 0; at least 1"),
        ({"lr": 0.0}, r"--lr is 0\.0; it must be above 0"),
        ({"lr": float("nan")}, "--lr is nan"),
        ({"weight_decay": -0.1}, r"--weight-decay is -0\.1"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, words):
    with pytest.raises(UserError, match=words):
        Training(**wrong)


def test_dropout_keeps_the_mean_and_rests_outside_training():
    layer, ones = Dropout(0.75), torch.ones(100_000)
    dropped = layer.train()(ones)
    assert set(dropped.tolist()) == {0.0, 4.0}
    assert float(dropped.mean()) == pytest.approx(1, abs=0.05)
    assert layer.eval()(ones) is ones
    assert torch.equal(Dropout(0.0).train()(ones), ones)


def test_sparse_weights_are_drawn_like_those_of_linear_layers():
    torch.manual_seed(0)
    for rows, fan_in in ((400, None), (100, 900)):
        drawn = linear_parameters(rows, 30, fan_in=fan_in)
        weight, bias = (part.detach() for part in drawn)
        assert weight.shape == (rows, 30)
        inputs = fan_in or rows
        for part in (weight, bias):
            assert 0.8 / inputs**0.5 < float(part.abs().max()) <= 1 / inputs**0.5
    assert linear_parameters(0, 3)[0].shape == (0, 3)


@pytest.mark.parametrize(
    "name", [name for name, kind in METHODS.items() if issubclass(kind, TrainedMethod)]
)
def test_a_stack_has_the_logits_of_its_modules(name):
    method = METHODS[name]()
    graph = method.prepare(HAND_DRAWN["star"])
    made = [method.network(graph) for _ in range(3)]
    wanted = torch.stack([network.eval()(graph).detach() for network in made])
    stack = Stack.build(made, device=torch.device("cpu"), bf16=False)
    assert stack.num_runs == 3
    scores = stack.forward(
        graph,
        stack.sparse_products(graph),
        stack.params.weight[0],
        stack.buffers,
        training=False,
    )
    torch.testing.assert_close(scores, wanted)
