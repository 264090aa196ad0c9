"""When and where training state is saved and restored."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from unalike.errors import UserError
from unalike.training.distributed import World
from unalike.training.stack import RowShards
from unalike.training.state import State

KEY, COMPLETE_MARK = "runs.json", ".metadata"
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

    def part(self, begin: int) -> Checkpoint:
        """The checkpoint of the stack that begins with this run."""
        path = self.path.with_name(f"{self.path.name}.{begin}")
        return replace(self, path=path, key=f"{self.key} from {begin}")

    def remove(self) -> None:
        """Remove every save, and what writers that were killed left of theirs."""
        if World.here().leads and not self.lasting:
            shutil.rmtree(self.path, ignore_errors=True)

    def save(self, state: State) -> None:
        """Write the state; earlier saves are removed when this one is whole."""
        world, folder = World.here(), self.path / str(state.epoch)
        if world.follow((folder / COMPLETE_MARK).exists()):
            return
        if world.leads:
            self._make(folder)
        world.follow(None)
        # Torch takes seconds to get its checkpoints ready, which few runs need.
        from unalike.training.checkpoint_io import save

        save(state_tensors(state), shard_specs(state), folder)
        if world.leads:
            for other in self._saves():
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)

    def _make(self, folder: Path) -> None:
        """Make the folder of a save; what is left there by a killed writer goes."""
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / KEY).write_text(self.key, "utf-8")
        except OSError as error:
            raise UserError(
                f"{self.path} cannot be written ({error.strerror})."
            ) from None

    def restore(self, state: State) -> None:
        """Fill the state from the last whole save, where there is one."""
        folder, key = World.here().follow(self._newest())
        if folder is None:
            return
        if key != self.key:
            raise UserError(f"{self.path} belongs to other runs; remove it.")
        from unalike.training.checkpoint_io import load

        found = state_tensors(state)
        load(found, shard_specs(state), folder)
        torch.set_rng_state(found[RANDOM])
        if state.best.is_cuda:
            torch.cuda.set_rng_state(found[CUDA_RANDOM], state.best.device)
        state.epoch = int(state.clock)

    def _newest(self) -> tuple[Path | None, str]:
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
    if state.best.is_cuda:
        tensors[CUDA_RANDOM] = torch.cuda.get_rng_state(state.best.device)
    return tensors


def shard_specs(state: State) -> RowShards:
    """Of which entries only some rows are here."""
    stack = state.stack
    return {
        f"{name}/{part}": share
        for name, share in stack.divided.items()
        for part, tensor in vars(stack.tables[name]).items()
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

    def glance(self, state: State) -> None:
        began = time.perf_counter()
        if self.checkpoint is None or World.here().follow(began < self.next):
            return
        self.checkpoint.save(state)
        now = time.perf_counter()
        rare = (now - began) / MAX_SAVE_SHARE if self.checkpoint.every else 0.0
        self.next = now + max(self.checkpoint.every, rare)

    def done(self, state: State) -> None:
        if self.checkpoint is not None:
            self.checkpoint.save(state)
