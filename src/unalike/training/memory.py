"""Out of memory: train half of the runs at a time; does a graph fit on the GPU?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from unalike.data.graph import Graph
from unalike.data.task import Solution
from unalike.errors import UserError
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import free_memory, memory_used_by_others, wait_for_memory
from unalike.training.checkpoint import Checkpoint
from unalike.training.distributed import World

MAX_GRAPH_SHARE = 0.4
"""Fraction of free GPU memory that a graph may take; a larger one is streamed."""


def halve_on_out_of_memory(
    train: Callable[..., list[Solution]],
    runs: Sequence[Any],
    *,
    device: torch.device,
    progress: Progress = NO_PROGRESS,
    checkpoint: Checkpoint | None = None,
) -> list[Solution]:
    """Train a stack of runs, in two halves if the device runs out of memory.

    A single run waits for memory that other programs use.
    """
    # The exception must be gone before memory is freed: its frames hold tensors.
    with suppress(torch.OutOfMemoryError):
        return train(runs, device=device, progress=progress, checkpoint=checkpoint)
    torch.cuda.empty_cache()
    retry = partial(halve_on_out_of_memory, train, device=device, progress=progress)
    one_process = World.current().size == 1
    if one_process and len(runs) == 1 and wait_for_memory(device, progress):
        return retry(runs, checkpoint=checkpoint)
    if len(runs) == 1 or not one_process:
        used = memory_used_by_others(device)
        others = f" next to other programs, which use {used / 1e9:,.0f} GB"
        raise UserError(
            f"The device has too little memory for one run{others if used else ''}; "
            "choose a smaller width or batches of rows."
        )
    middle = (len(runs) + 1) // 2
    progress.stage(f"out of memory: {middle} runs at a time", None, "")
    solutions: list[Solution] = []
    for begin, half in ((0, runs[:middle]), (middle, runs[middle:])):
        part = None if checkpoint is None else checkpoint.for_stack(begin)
        solutions += retry(half, checkpoint=part)
        if part is not None:
            part.remove()
    return solutions


def move_if_fits(graph: Graph, device: torch.device) -> Graph | None:
    """The graph on the device, or None if it takes too much of its free memory."""
    if device.type != "cuda":
        return graph
    fits = graph.nbytes < MAX_GRAPH_SHARE * free_memory(device)
    return graph.to(device) if fits else None
