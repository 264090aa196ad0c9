"""Checkpoints of training: when and where the state is saved and restored."""

from __future__ import annotations

import re
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import EllipsisType
from typing import NamedTuple

import torch
from torch import Tensor

from unalike.errors import UserError
from unalike.training.distributed import World
from unalike.training.old_names import STATE_NAMES, old_columns, old_name
from unalike.training.stack import RowShards
from unalike.training.state import BEST_BUFFER, BUFFER, PARAMS, State

KEY = "runs.json"
INDEX_FILE, PICKLED_INDEX_FILE = "index.json", ".metadata"
"""The index is written last. Checkpoints before format 3 have a pickled one."""
FORMAT, FORMAT_FILE = 3, "format"
"""A checkpoint without this file has the parameter names of `old_names`."""
RANDOM, CUDA_RANDOM = "random", "cuda random"


@dataclass(frozen=True)
class Checkpoint:
    """Folder of the saved states of a stack, and how often to save."""

    path: Path
    key: str
    """Identifies the runs; the state of other runs is refused."""
    every: float = 30.0
    """Seconds between two saves, or more where saving takes long; 0: every epoch."""
    lasting: bool = False
    """Keep it after the runs are finished."""

    def __post_init__(self) -> None:
        if not self.path.name:
            raise UserError(f"'{self.path}' is no name for a checkpoint.")

    def for_stack(self, begin: int) -> Checkpoint:
        """The checkpoint of the stack whose first run has this index."""
        path = self.path.with_name(f"{self.path.name}.{begin}")
        return replace(self, path=path, key=f"{self.key} from {begin}")

    def remove(self) -> None:
        """Remove all saves, also incomplete ones, and the folder if it is empty."""
        if World.current().is_main and not self.lasting:
            for save in self._saves():
                shutil.rmtree(save, ignore_errors=True)
            with suppress(OSError):
                self.path.rmdir()

    def save(self, state: State) -> None:
        """Write the state; earlier saves are removed when this one is complete."""
        world, folder = World.current(), self.path / str(state.epoch)
        if world.broadcast_object(is_complete(folder)):
            return
        if world.is_main:
            self._make_folder(folder)
        world.broadcast_object(None)
        # Importing torch.distributed.checkpoint takes seconds, and few runs need it.
        from unalike.training.checkpoint_io import save

        save(state_tensors(state), shard_specs(state), folder)
        if world.is_main:
            for other in self._saves():
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)

    def _make_folder(self, folder: Path) -> None:
        """Make the folder of a save in place of an incomplete one."""
        if folder.exists() and folder not in self._saves() and any(folder.iterdir()):
            raise UserError(
                f"{folder} exists and is not a checkpoint; use another name."
            )
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / KEY).write_text(self.key, "utf-8")
            (folder / FORMAT_FILE).write_text(str(FORMAT), "utf-8")
        except OSError as error:
            raise UserError(
                f"{self.path} cannot be written ({error.strerror})."
            ) from None

    def restore(self, state: State) -> None:
        """Load the last complete save into the state, if there is one."""
        folder, key = World.current().broadcast_object(self._latest())
        if folder is None:
            return
        if not same_runs(key, self.key):
            raise UserError(f"{self.path} belongs to other runs; remove it.")
        from unalike.training.checkpoint_io import load

        tensors = state_tensors(state)
        if (folder / FORMAT_FILE).exists():
            load(tensors, shard_specs(state), folder)
        else:
            old = old_tensors(state, tensors)
            shards = {old[name].name: one for name, one in shard_specs(state).items()}
            load({one.name: one.tensor for one in old.values()}, shards, folder)
            for name, one in old.items():
                tensors[name].copy_(one.tensor[..., one.columns])
        torch.set_rng_state(tensors[RANDOM])
        if state.best_score.is_cuda:
            torch.cuda.set_rng_state(tensors[CUDA_RANDOM], state.best_score.device)
        state.epoch = int(state.epoch_counter)

    def _latest(self) -> tuple[Path | None, str]:
        if self.path.is_file():
            raise UserError(f"{self.path} is a file, not a folder of checkpoints.")
        complete = [save for save in self._saves() if is_complete(save)]
        if not complete:
            return None, ""
        folder = max(complete, key=lambda save: int(save.name))
        try:
            return folder, (folder / KEY).read_text("utf-8", "replace")
        except OSError as error:
            raise UserError(
                f"{self.path} is no checkpoint ({KEY}: {error.strerror})."
            ) from None

    def _saves(self) -> list[Path]:
        """Folders of this checkpoint, also incomplete ones; other folders are kept."""
        return [key.parent for key in self.path.glob(f"*/{KEY}") if _is_epoch(key)]


def _is_epoch(key: Path) -> bool:
    return key.parent.name.isdecimal() and key.parent.name.isascii()


def is_complete(save: Path) -> bool:
    """Whether everything of a save was written."""
    return any((save / name).exists() for name in (INDEX_FILE, PICKLED_INDEX_FILE))


DATA_HASH = re.compile(r'"data": "\w+", ')


def same_runs(saved: str, own: str) -> bool:
    """Whether two keys are of the same runs; older keys have no hash of the graph."""
    if not DATA_HASH.search(saved):
        own = DATA_HASH.sub("", own)
    return without_threads(saved) == without_threads(own)


def without_threads(text: str) -> str:
    """The name of a CPU, also within a key, without its number of threads.

    Keys of older checkpoints have the number.
    """
    return re.sub(r" cpu, \d+ threads", " cpu", text)


def state_tensors(state: State) -> dict[str, Tensor]:
    """The tensors of a checkpoint: those of the state and of the random generators."""
    tensors = {**state.tensors(), RANDOM: torch.get_rng_state()}
    if state.best_score.is_cuda:
        tensors[CUDA_RANDOM] = torch.cuda.get_rng_state(state.best_score.device)
    return tensors


class OldTensor(NamedTuple):
    """A tensor of a checkpoint without a format, and its columns in today's order."""

    name: str
    tensor: Tensor
    columns: Tensor | EllipsisType = ...


def old_tensors(state: State, tensors: dict[str, Tensor]) -> dict[str, OldTensor]:
    """The tensors of a checkpoint without a format, by their names of today."""
    stack, old = state.stack, {}
    columns = old_columns(stack.module, stack.param_shapes)
    for name, tensor in tensors.items():
        first, _, last = name.partition("/")
        field = STATE_NAMES.get(last, last)
        if first in stack.sparse_weights:
            layer = old_name(stack.module, f"{first}.weight").removeprefix("tables.")
            old[name] = OldTensor(f"{layer}/{field}", tensor)
        elif first == PARAMS:
            own_columns = columns.to(tensor.device)
            empty = torch.empty_like(tensor)
            old[name] = OldTensor(f"{PARAMS}/{field}", empty, own_columns)
        elif first in (BUFFER, BEST_BUFFER):
            old[name] = OldTensor(f"{first}/{old_name(stack.module, last)}", tensor)
        else:
            old[name] = OldTensor(STATE_NAMES.get(name, name), tensor)
    return old


def shard_specs(state: State) -> RowShards:
    """The tensors of a checkpoint of which each process has some rows."""
    stack = state.stack
    return {
        f"{name}/{field}": shard
        for name, shard in stack.sharded.items()
        for field in stack.sparse_weights[name].tensors
    }


MAX_SAVE_SHARE = 0.05
"""Fraction of the time that saving may take."""


class Saver:
    """Saves the state of a stack at intervals, and once more at the end."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint
        self.next_save = time.perf_counter() + (checkpoint.every if checkpoint else 0)

    def save(self, state: State, *, final: bool = False) -> None:
        """Save the state if it is time to, or if it is the final one."""
        start, world = time.perf_counter(), World.current()
        if self.checkpoint is None:
            return
        if not final and world.broadcast_object(start < self.next_save):
            return
        self.checkpoint.save(state)
        now, every = time.perf_counter(), self.checkpoint.every
        min_interval = (now - start) / MAX_SAVE_SHARE if every else 0.0
        self.next_save = now + max(every, min_interval)
