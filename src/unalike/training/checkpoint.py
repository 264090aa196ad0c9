"""When and where training state is saved and restored."""

from __future__ import annotations

import shutil
import time
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
from unalike.training.state import BEST_BUFFER, BUFFER, REST, State

KEY, COMPLETE_MARK = "runs.json", ".metadata"
FORMAT, FORMAT_FILE = 2, "format"
"""A checkpoint without this file has the parameter names of before."""
RANDOM, CUDA_RANDOM = "random", "cuda random"


@dataclass(frozen=True)
class Checkpoint:
    """Where to keep the state, of what, and how often."""

    path: Path
    key: str
    """Says which runs these are; the state of other runs is refused."""
    every: float = 30.0
    """Seconds between two saves, or more where saving takes long; 0: every epoch."""
    lasting: bool = False
    """Does it stay when the runs are done, for what comes after them?"""

    def for_stack(self, begin: int) -> Checkpoint:
        """The checkpoint of the stack that begins with this run."""
        path = self.path.with_name(f"{self.path.name}.{begin}")
        return replace(self, path=path, key=f"{self.key} from {begin}")

    def remove(self) -> None:
        """Remove every save, and what writers that were killed left of theirs."""
        if World.current().is_main and not self.lasting:
            shutil.rmtree(self.path, ignore_errors=True)

    def save(self, state: State) -> None:
        """Write the state; earlier saves are removed when this one is whole."""
        world, folder = World.current(), self.path / str(state.epoch)
        if world.broadcast_object((folder / COMPLETE_MARK).exists()):
            return
        if world.is_main:
            self._make(folder)
        world.broadcast_object(None)
        # Torch takes seconds to get its checkpoints ready, which few runs need.
        from unalike.training.checkpoint_io import save

        save(state_tensors(state), shard_specs(state), folder)
        if world.is_main:
            for other in self._saves():
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)

    def _make(self, folder: Path) -> None:
        """Make the folder of a save; what is left there by a killed writer goes."""
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
        """Fill the state from the last whole save, where there is one."""
        folder, key = World.current().broadcast_object(self._latest())
        if folder is None:
            return
        if key != self.key:
            raise UserError(f"{self.path} belongs to other runs; remove it.")
        from unalike.training.checkpoint_io import load

        found = state_tensors(state)
        if (folder / FORMAT_FILE).exists():
            load(found, shard_specs(state), folder)
        else:
            before = old_entries(state, found)
            renamed = {
                before[name].name: one for name, one in shard_specs(state).items()
            }
            load({old.name: old.tensor for old in before.values()}, renamed, folder)
            for name, old in before.items():
                found[name].copy_(old.tensor[..., old.columns])
        torch.set_rng_state(found[RANDOM])
        if state.best_score.is_cuda:
            torch.cuda.set_rng_state(found[CUDA_RANDOM], state.best_score.device)
        state.epoch = int(state.epoch_counter)

    def _latest(self) -> tuple[Path | None, str]:
        if self.path.is_file():
            raise UserError(f"{self.path} is a file, no folder of checkpoints.")
        whole = [save for save in self._saves() if (save / COMPLETE_MARK).exists()]
        if not whole:
            return None, ""
        folder = max(whole, key=lambda save: int(save.name))
        return folder, (folder / KEY).read_text("utf-8")

    def _saves(self) -> list[Path]:
        return [save for save in self.path.glob("*") if save.name.isdigit()]


def state_tensors(state: State) -> dict[str, Tensor]:
    """What is kept of a state: its tensors, and where chance stands."""
    tensors = {**state.tensors(), RANDOM: torch.get_rng_state()}
    if state.best_score.is_cuda:
        tensors[CUDA_RANDOM] = torch.cuda.get_rng_state(state.best_score.device)
    return tensors


class OldEntry(NamedTuple):
    """A tensor of a checkpoint of before, and which of its columns are used now."""

    name: str
    tensor: Tensor
    columns: Tensor | EllipsisType = ...


def old_entries(state: State, found: dict[str, Tensor]) -> dict[str, OldEntry]:
    """What the tensors of a checkpoint were before, by their names of today."""
    stack, before = state.stack, {}
    columns = old_columns(stack.module, stack.param_shapes)
    for name, tensor in found.items():
        first, _, last = name.partition("/")
        if first in stack.sparse_weights:
            old = old_name(stack.module, f"{first}.weight").removeprefix("tables.")
            before[name] = OldEntry(f"{old}/{STATE_NAMES.get(last, last)}", tensor)
        elif first == REST:
            where = columns.to(tensor.device)
            old = f"{REST}/{STATE_NAMES.get(last, last)}"
            before[name] = OldEntry(old, torch.empty_like(tensor), where)
        elif first in (BUFFER, BEST_BUFFER):
            old = old_name(stack.module, last)
            before[name] = OldEntry(f"{first}/{old}", tensor)
        else:
            before[name] = OldEntry(STATE_NAMES.get(name, name), tensor)
    return before


def shard_specs(state: State) -> RowShards:
    """Of which entries only some rows are here."""
    stack = state.stack
    return {
        f"{name}/{part}": share
        for name, share in stack.sharded.items()
        for part, tensor in vars(stack.sparse_weights[name]).items()
        if tensor is not None
    }


MAX_SAVE_SHARE = 0.05
"""Share of the time that saving may take."""


class Saver:
    """Saves the state when it is time to, and once more at the end."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint
        self.next = time.perf_counter() + (checkpoint.every if checkpoint else 0)

    def restore(self, state: State) -> None:
        if self.checkpoint is not None:
            self.checkpoint.restore(state)

    def maybe_save(self, state: State) -> None:
        began = time.perf_counter()
        if self.checkpoint is None or World.current().broadcast_object(
            began < self.next
        ):
            return
        self.checkpoint.save(state)
        now = time.perf_counter()
        rare = (now - began) / MAX_SAVE_SHARE if self.checkpoint.every else 0.0
        self.next = now + max(self.checkpoint.every, rare)

    def save_final(self, state: State) -> None:
        if self.checkpoint is not None:
            self.checkpoint.save(state)
