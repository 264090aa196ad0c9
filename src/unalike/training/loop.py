"""Training loop of a stack of runs, full-batch epochs, early stopping."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.data.task import Curve, Solution, Task
from unalike.device import fork_rng
from unalike.nn.optim import SPARSE_OPTIMIZERS
from unalike.nn.sparse_linear import sparse_layers
from unalike.progress import NO_PROGRESS, Progress
from unalike.samplers.base import FullBatch, Sampler
from unalike.training.checkpoint import Checkpoint, Saver
from unalike.training.cuda_graph import GraphedFunction
from unalike.training.distributed import World
from unalike.training.masks import RowPlan, SplitMasks, merged_labels
from unalike.training.memory import move_if_fits
from unalike.training.minibatch import MiniBatchEpochs
from unalike.training.stack import RowShard, Stack, StackedProducts
from unalike.training.state import State, Training
from unalike.training.step import (
    compute_gradients,
    inference_rows,
    optimizer_step,
    predict_into,
)

REPORT_SECONDS = 0.2
"""Seconds between two progress reports, each of which waits for the device."""


@dataclass(frozen=True, eq=False)
class FitSpec:
    """One run of a stack: how to build its module, its task, its hyperparameters."""

    make: Callable[[Graph], nn.Module]
    task: Task
    training: Training
    batching: Sampler = field(default_factory=FullBatch)
    row_wise: bool = False
    """Do the logits of a node depend on its own row alone in evaluation?"""
    capturable: bool = True
    """Can an epoch be captured as a CUDA graph?"""


def fit(
    runs: Sequence[FitSpec],
    *,
    device: torch.device,
    progress: Progress = NO_PROGRESS,
    checkpoint: Checkpoint | None = None,
) -> list[Solution]:
    """Train runs that share a graph, shapes and epochs as one stack."""
    start = time.perf_counter()
    task, training = runs[0].task, runs[0].training
    with fork_rng(device), matmul_precision(training):
        graph = merged_labels([run.task for run in runs])
        state = init_state(runs, graph, device)
        saver = Saver(checkpoint)
        if checkpoint is not None:
            checkpoint.restore(state)
        epochs = make_epochs(runs, state, graph, progress)
        progress.stage("training", training.epochs, "epochs")
        reported, last_report = 0, start

        def report() -> None:
            loss, valid = state.losses[state.epoch - 1].mean(), state.best_score.max()
            note = f"loss {float(loss):.4f} valid {100 * float(valid):.2f}"
            progress.advance(state.epoch - reported, note + epochs.progress_note)

        while state.epoch < training.epochs and not should_stop_early(state, task):
            epochs.run_epoch()
            now = time.perf_counter()
            if now - last_report > REPORT_SECONDS:
                report()
                reported, last_report = state.epoch, now
            saver.save(state)
        saver.save(state, final=True)
        state.check_ranks_agree()
        state.save_best()
        report()
        scores = epochs.score()
        scores[diverged(state, runs)] = torch.nan
    seconds = (time.perf_counter() - start) / len(runs)
    return [
        Solution(
            scores[index],
            Curve(
                losses=state.losses[: state.epoch, index].tolist(),
                valid_scores=state.valid_scores[: state.epoch, index].tolist(),
                best_epoch=int(state.best_epoch[index]),
                seconds=seconds,
            ),
            state.best_state_dict(index) if run.task.keep else None,
        )
        for index, run in enumerate(runs)
    ]


def should_stop_early(state: State, task: Task) -> bool:
    """Early stopping: no run of the stack has improved for `task.patience` epochs.

    Runs that would have stopped before keep the weights that they would have had.
    """
    if task.patience is None or not state.epoch:
        return False
    return state.epoch - int(state.best_epoch.max()) >= task.patience


def diverged(state: State, runs: Sequence[FitSpec]) -> Bool[Tensor, " runs"]:
    """Runs without a finite validation score, whose best weights are untrained."""
    validated = [len(run.task.valid) > 0 for run in runs]
    return (state.best_epoch == 0).cpu() & torch.tensor(validated)


def init_state(runs: Sequence[FitSpec], graph: Graph, device: torch.device) -> State:
    """Build the modules, each from its own seed, and the state around them."""

    def make(run: FitSpec) -> nn.Module:
        torch.manual_seed(run.task.seed)
        return run.make(graph)

    modules = [make(run) for run in runs]
    adjacency, row_wise = graph.adjacency, runs[0].row_wise
    stack = Stack.build(
        modules,
        device=device,
        bf16=device.type == "cuda" and runs[0].training.precision == "bf16",
        row_wise=row_wise,
        sparse_optimizer=SPARSE_OPTIMIZERS[runs[0].batching.sparse_optimizer],
        world=World.current(),
        sharded={
            name: RowShard(adjacency.local_cols, adjacency.num_cols_global)
            for name, layer in sparse_layers(modules[0]).items()
            if layer.source == "adjacency"
        },
    )
    task, trainings = runs[0].task, [run.training for run in runs]
    torch.manual_seed(task.seed)
    return State.start(stack, trainings, use_last=task.use_last, patience=task.patience)


def make_epochs(
    runs: Sequence[FitSpec], state: State, graph: Graph, progress: Progress
) -> FullBatchEpochs | MiniBatchEpochs:
    """The epochs of a stack: full-batch, or over the batches of a sampler."""
    task, batching = runs[0].task, runs[0].batching
    tasks, device = [run.task for run in runs], state.best_score.device
    if isinstance(batching, FullBatch):
        plan = RowPlan.of(
            state.stack,
            tasks,
            graph,
            every_row=task.every_row,
            train_on_all=task.every_row or state.sharpening > 0,
        ).to(device)
        capture = runs[0].capturable
        return FullBatchEpochs(state, plan, task.metric, graph, capturable=capture)
    resident = move_if_fits(graph, device) if batching.runs_on_gpu else None
    if device.type == "cuda":
        where = "batches stream to the GPU" if resident is None else "all on the GPU"
        size = f"{graph.nbytes / 2**30:.1f} GiB graph"
        progress.stage(f"{size}: {where}", None, "")
    source = graph if resident is None else resident
    # Column-parallel processes work on the same batch, each on its own columns.
    world = World() if state.stack.row_wise else state.stack.world
    masks = SplitMasks.of(tasks, graph, device)
    return MiniBatchEpochs(state, source, task, masks, batching, device, world)


@contextmanager
def matmul_precision(training: Training) -> Iterator[None]:
    """Dense products in float32 or, with another precision, in TF32."""
    before = torch.get_float32_matmul_precision()
    exact = training.precision == "float32"
    torch.set_float32_matmul_precision("highest" if exact else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@dataclass(eq=False)
class FullBatchEpochs:
    """Full-batch epochs of a stack.

    The sparse products that evaluate one epoch are those that the step of the next
    one needs. On a GPU an epoch is captured as a CUDA graph.
    """

    state: State
    plan: RowPlan
    metric: Metric
    graph: Graph
    """All nodes, for the scores at the end."""
    capturable: bool = True
    """Can an epoch be captured as a CUDA graph?"""
    products: StackedProducts = field(init=False)
    progress_note = ""

    def __post_init__(self) -> None:
        self.products = self.state.stack.sparse_products(self.plan.rows)
        single_gpu = self.plan.loss_weight.is_cuda and self.state.stack.world.size == 1
        capture = self.capturable and single_gpu
        self._run = GraphedFunction(self._epoch) if capture else self._epoch

    def run_epoch(self) -> None:
        """Train and evaluate one more epoch."""
        self._run()
        self.state.epoch += 1

    def score(self) -> Float[Tensor, "runs nodes classes"]:
        """Scores of all nodes by the best weights of each run."""
        state, graph = self.state, self.graph
        batches = (
            inference_rows(state, graph, torch.arange(graph.num_nodes))
            if state.stack.row_wise
            else [self.plan.rows]
        )
        scores = torch.empty(state.stack.num_runs, graph.num_nodes, graph.num_classes)
        return predict_into(state, batches, scores, best=True)

    def _epoch(self) -> None:
        plan, stack, state = self.plan, self.state.stack, self.state
        products = {
            name: product[: plan.train_rows.num_nodes]
            for name, product in self.products.items()
        }
        gradients = compute_gradients(
            state, plan.train_rows, plan.loss_weight, products, self.metric
        )
        optimizer_step(state, gradients)
        state.record_loss(gradients.loss)
        stack.sparse_products(plan.rows, out=self.products)
        self._evaluate()

    @torch.no_grad()
    def _evaluate(self) -> None:
        """Record the score of each run on its validation rows."""
        plan, stack, rows = self.plan, self.state.stack, self.plan.eval_rows
        products = {
            name: product[len(product) - rows.num_nodes :]
            for name, product in self.products.items()
        }
        params, buffers = stack.params.weight[0], stack.buffers
        logits = stack.forward(rows, products, params, buffers, training=False)
        score = self.metric.score(logits, rows.labels, plan.eval_weight)
        self.state.record_score(score)
