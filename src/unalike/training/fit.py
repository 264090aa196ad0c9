"""Fit: the one training loop, over a stack of runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import torch
from torch import nn

from unalike.batchings.batching import Batching
from unalike.batchings.full import Full
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.memory import held_by_others, outlast_others
from unalike.progress import SILENT, Progress
from unalike.task import Curve, Solution, Task
from unalike.training.batches import BatchEpochs
from unalike.training.carry import reside, size_of
from unalike.training.checkpoint import Checkpoint, Saver
from unalike.training.epoch import Epochs
from unalike.training.plan import Plan, show_labels
from unalike.training.roles import Roles
from unalike.training.settings import Training
from unalike.training.sparse_linear import sparse_layers
from unalike.training.stack import Share, Stack, reads_only_products
from unalike.training.state import State
from unalike.training.tables import TABLES
from unalike.training.world import World

GLANCE_SECONDS = 0.2
"""Between two looks at the device, each of which waits for its work."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a stack: how to build its module, its task, its hyperparameters."""

    make: Callable[[Graph], nn.Module]
    task: Task
    training: Training
    batching: Batching = field(default_factory=Full)
    row_wise: bool = False
    """Do the logits of a node depend on its own row alone in evaluation?"""
    capturable: bool = True
    """Can an epoch be captured as a CUDA graph?"""


def fit(
    runs: Sequence[Run],
    *,
    device: torch.device | str = "cpu",
    progress: Progress = SILENT,
    checkpoint: Checkpoint | None = None,
) -> list[Solution]:
    """Train runs that share a graph, shapes and epochs; a solution for each.

    Where the device runs out of memory the stack is halved. One run waits for memory
    that other programs hold.
    """
    device = torch.device(device)
    exact = precise(runs[0].training)
    with suppress(torch.OutOfMemoryError), exact, torch.random.fork_rng():
        return _fit(runs, device, progress, checkpoint)
    torch.cuda.empty_cache()
    alone = World.here().size == 1
    if alone and len(runs) == 1 and outlast_others(device, progress):
        return fit(runs, device=device, progress=progress, checkpoint=checkpoint)
    if len(runs) == 1 or not alone:
        raise UserError(too_little(device))
    middle = (len(runs) + 1) // 2
    progress.stage(f"out of memory: {middle} runs at a time", None, "")
    solutions: list[Solution] = []
    for begin, half in ((0, runs[:middle]), (middle, runs[middle:])):
        part = None if checkpoint is None else checkpoint.part(begin)
        solutions += fit(half, device=device, progress=progress, checkpoint=part)
        if part is not None:
            part.remove()
    return solutions


def too_little(device: torch.device) -> str:
    """What to say where not even one run fits."""
    held = held_by_others(device)
    others = f" beside other programs, which hold {held / 1e9:,.0f} GB" if held else ""
    return (
        f"The device has too little memory for one run{others}; "
        "choose a smaller width or batches of rows."
    )


def _fit(
    runs: Sequence[Run],
    device: torch.device,
    progress: Progress,
    checkpoint: Checkpoint | None,
) -> list[Solution]:
    began = time.perf_counter()
    graph = show_labels([run.task for run in runs])
    state = start(runs, graph, device)
    saver = Saver(checkpoint)
    saver.restore(state)
    epochs = begin(runs, state, graph, progress)
    progress.stage("training", runs[0].training.epochs, "epochs")
    told, seen = 0, began
    while state.epoch < runs[0].training.epochs and not tired(state, runs[0].task):
        epochs.advance()
        now = time.perf_counter()
        if now - seen > GLANCE_SECONDS:
            progress.advance(state.epoch - told, _note(state) + epochs.told)
            told, seen = state.epoch, now
        saver.glance(state)
    saver.done(state)
    state.agree()
    state.keep_best()
    progress.advance(state.epoch - told, _note(state) + epochs.told)
    scores = epochs.score()
    seconds = (time.perf_counter() - began) / len(runs)
    return [
        Solution(
            scores[run],
            _curve(state, run, seconds),
            state.learned(run) if runs[run].task.keep else None,
        )
        for run in range(len(runs))
    ]


def tired(state: State, task: Task) -> bool:
    """Has no run of the stack become better for as long as the task has patience?"""
    if task.patience is None or not state.epoch:
        return False
    return state.epoch - int(state.best_epoch.max()) >= task.patience


def begin(
    runs: Sequence[Run], state: State, graph: Graph, progress: Progress
) -> Epochs | BatchEpochs:
    """The epochs of a stack: of the whole graph, or of batches."""
    task, batching = runs[0].task, runs[0].batching
    device = state.best.device
    if isinstance(batching, Full):
        tasks = [run.task for run in runs]
        plan = Plan.of(state.stack, tasks, graph).to(device)
        capture = runs[0].capturable
        return Epochs(state, plan, task.metric, graph, capturable=capture)
    there = reside(graph, device) if batching.cuts_anywhere else None
    if device.type == "cuda":
        where = "batches stream to the card" if there is None else "all on the card"
        progress.stage(f"{size_of(graph) / 2**30:.1f} GiB graph: {where}", None, "")
    source = graph if there is None else there
    # Processes that divide columns work on the same batch, each on its own of them.
    divides = state.stack.row_wise
    world = World() if divides else state.stack.world
    roles = Roles.of([run.task for run in runs], graph, device)
    return BatchEpochs(state, source, task, roles, batching, device, world)


def start(runs: Sequence[Run], graph: Graph, device: torch.device) -> State:
    """Build the modules, each from its own seed, and the state around them."""

    def make(run: Run) -> nn.Module:
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
        mover=TABLES[runs[0].batching.mover],
        world=World.here(),
        divided={
            name: Share(rows.held, rows.num_columns)
            for name, layer in sparse_layers(networks[0]).items()
            if layer.source == "adjacency"
        },
    )
    torch.manual_seed(runs[0].task.seed)
    return State.start(stack, [run.training for run in runs])


def _note(state: State) -> str:
    loss, valid = state.losses[state.epoch - 1].mean(), state.best.max()
    return f"loss {float(loss):.4f} valid {100 * float(valid):.2f}"


def _curve(state: State, run: int, seconds: float) -> Curve:
    return Curve(
        losses=state.losses[: state.epoch, run].tolist(),
        grades=state.grades[: state.epoch, run].tolist(),
        best_epoch=int(state.best_epoch[run]),
        seconds=seconds,
    )


@contextmanager
def precise(training: Training) -> Iterator[None]:
    """Dense products in float32 or, where asked for, in TF32."""
    before = torch.get_float32_matmul_precision()
    exact = training.precision == "float32"
    torch.set_float32_matmul_precision("highest" if exact else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
