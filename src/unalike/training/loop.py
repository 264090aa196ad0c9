"""`fit`: training loop, early stopping, halving on out-of-memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import torch
from torch import nn

from unalike.data.graph import Graph
from unalike.data.task import Curve, Solution, Task
from unalike.errors import UserError
from unalike.nn.optim import SPARSE_OPTIMIZERS
from unalike.nn.sparse_linear import sparse_layers
from unalike.progress import NO_PROGRESS, Progress
from unalike.samplers.base import FullBatch, Sampler
from unalike.system import wait_for_memory
from unalike.training.checkpoint import Checkpoint, Saver
from unalike.training.distributed import World
from unalike.training.full_batch import FullBatchEpochs
from unalike.training.masks import RowPlan, SplitMasks, merged_labels
from unalike.training.memory import graph_nbytes, move_if_fits, out_of_memory_message
from unalike.training.minibatch import MiniBatchEpochs
from unalike.training.settings import Training
from unalike.training.stack import RowShard, Stack, reads_only_products
from unalike.training.state import State

REPORT_SECONDS = 0.2
"""Between two looks at the device, each of which waits for its work."""


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
    device: torch.device | str = "cpu",
    progress: Progress = NO_PROGRESS,
    checkpoint: Checkpoint | None = None,
) -> list[Solution]:
    """Train runs that share a graph, shapes and epochs; a solution for each.

    Where the device runs out of memory the stack is halved. One run waits for memory
    that other programs hold.
    """
    device = torch.device(device)
    exact = matmul_precision(runs[0].training)
    with suppress(torch.OutOfMemoryError), exact, torch.random.fork_rng():
        return _fit(runs, device, progress, checkpoint)
    torch.cuda.empty_cache()
    alone = World.current().size == 1
    if alone and len(runs) == 1 and wait_for_memory(device, progress):
        return fit(runs, device=device, progress=progress, checkpoint=checkpoint)
    if len(runs) == 1 or not alone:
        raise UserError(out_of_memory_message(device))
    middle = (len(runs) + 1) // 2
    progress.stage(f"out of memory: {middle} runs at a time", None, "")
    solutions: list[Solution] = []
    for begin, half in ((0, runs[:middle]), (middle, runs[middle:])):
        part = None if checkpoint is None else checkpoint.for_stack(begin)
        solutions += fit(half, device=device, progress=progress, checkpoint=part)
        if part is not None:
            part.remove()
    return solutions


def _fit(
    runs: Sequence[FitSpec],
    device: torch.device,
    progress: Progress,
    checkpoint: Checkpoint | None,
) -> list[Solution]:
    began = time.perf_counter()
    graph = merged_labels([run.task for run in runs])
    state = init_state(runs, graph, device)
    saver = Saver(checkpoint)
    saver.restore(state)
    epochs = make_epochs(runs, state, graph, progress)
    progress.stage("training", runs[0].training.epochs, "epochs")
    told, seen = 0, began
    while state.epoch < runs[0].training.epochs and not should_stop_early(
        state, runs[0].task
    ):
        epochs.run_epoch()
        now = time.perf_counter()
        if now - seen > REPORT_SECONDS:
            progress.advance(
                state.epoch - told, _progress_note(state) + epochs.progress_note
            )
            told, seen = state.epoch, now
        saver.maybe_save(state)
    saver.save_final(state)
    state.check_ranks_agree()
    state.save_best()
    progress.advance(state.epoch - told, _progress_note(state) + epochs.progress_note)
    scores = epochs.score()
    seconds = (time.perf_counter() - began) / len(runs)
    return [
        Solution(
            scores[run],
            _curve(state, run, seconds),
            state.best_state_dict(run) if runs[run].task.keep else None,
        )
        for run in range(len(runs))
    ]


def should_stop_early(state: State, task: Task) -> bool:
    """Has no run of the stack become better for as long as the task has patience?"""
    if task.patience is None or not state.epoch:
        return False
    return state.epoch - int(state.best_epoch.max()) >= task.patience


def make_epochs(
    runs: Sequence[FitSpec], state: State, graph: Graph, progress: Progress
) -> FullBatchEpochs | MiniBatchEpochs:
    """The epochs of a stack: of the whole graph, or of batches."""
    task, batching = runs[0].task, runs[0].batching
    device = state.best_score.device
    if isinstance(batching, FullBatch):
        tasks = [run.task for run in runs]
        plan = RowPlan.of(state.stack, tasks, graph).to(device)
        capture = runs[0].capturable
        return FullBatchEpochs(state, plan, task.metric, graph, capturable=capture)
    there = move_if_fits(graph, device) if batching.runs_on_gpu else None
    if device.type == "cuda":
        where = "batches stream to the card" if there is None else "all on the card"
        progress.stage(
            f"{graph_nbytes(graph) / 2**30:.1f} GiB graph: {where}", None, ""
        )
    source = graph if there is None else there
    # Processes that divide columns work on the same batch, each on its own of them.
    divides = state.stack.row_wise
    world = World() if divides else state.stack.world
    roles = SplitMasks.of([run.task for run in runs], graph, device)
    return MiniBatchEpochs(state, source, task, roles, batching, device, world)


def init_state(runs: Sequence[FitSpec], graph: Graph, device: torch.device) -> State:
    """Build the modules, each from its own seed, and the state around them."""

    def make(run: FitSpec) -> nn.Module:
        torch.manual_seed(run.task.seed)
        return run.make(graph)

    half = device.type == "cuda" and runs[0].training.precision == "bf16"
    networks = [make(run) for run in runs]
    rows, row_wise = graph.adjacency, runs[0].row_wise
    stack = Stack.build(
        networks,
        device=device,
        half=half,
        row_wise=row_wise,
        only_products=row_wise and reads_only_products(networks[0], graph),
        mover=SPARSE_OPTIMIZERS[runs[0].batching.sparse_optimizer],
        world=World.current(),
        divided={
            name: RowShard(rows.local_cols, rows.num_cols_global)
            for name, layer in sparse_layers(networks[0]).items()
            if layer.source == "adjacency"
        },
    )
    torch.manual_seed(runs[0].task.seed)
    return State.start(stack, [run.training for run in runs])


def _progress_note(state: State) -> str:
    loss, valid = state.losses[state.epoch - 1].mean(), state.best_score.max()
    return f"loss {float(loss):.4f} valid {100 * float(valid):.2f}"


def _curve(state: State, run: int, seconds: float) -> Curve:
    return Curve(
        losses=state.losses[: state.epoch, run].tolist(),
        valid_scores=state.valid_scores[: state.epoch, run].tolist(),
        best_epoch=int(state.best_epoch[run]),
        seconds=seconds,
    )


@contextmanager
def matmul_precision(training: Training) -> Iterator[None]:
    """Dense products in float32 or, where asked for, in TF32."""
    before = torch.get_float32_matmul_precision()
    exact = training.precision == "float32"
    torch.set_float32_matmul_precision("highest" if exact else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
