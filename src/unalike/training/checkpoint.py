"""Checkpoint: the state of training in one file, to go on from bit for bit."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from unalike.errors import UserError
from unalike.training.state import State

KEY, RANDOM, CUDA_RANDOM = "key", "random", "cuda random"


@dataclass(frozen=True)
class Checkpoint:
    """Where to keep the state, of what, and how often."""

    path: Path
    key: str
    """Says which runs these are; a file of other runs is refused."""
    every: float = 30.0
    """Seconds between two saves, or more where saving takes long; 0: every epoch."""

    def part(self, begin: int) -> Checkpoint:
        """The checkpoint of the stack that begins with this run."""
        path = self.path.with_name(f"{self.path.name}.{begin}")
        return replace(self, path=path, key=f"{self.key} from {begin}")

    def remove(self) -> None:
        """Remove the file, and what writers that were killed left of theirs."""
        self.path.unlink(missing_ok=True)
        for partial in self.path.parent.glob(f".{escape(self.path.name)}.*.partial"):
            partial.unlink(missing_ok=True)

    def save(self, state: State) -> None:
        """Write the state; a file is replaced only by a whole one."""
        tensors = {name: t.contiguous().cpu() for name, t in state.tensors().items()}
        tensors[RANDOM] = torch.get_rng_state()
        if state.best.is_cuda:
            tensors[CUDA_RANDOM] = torch.cuda.get_rng_state(state.best.device)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            save_file(tensors, partial, {KEY: self.key})
            partial.replace(self.path)
        finally:
            partial.unlink(missing_ok=True)

    def restore(self, state: State) -> None:
        """Fill the state from the file, where there is one."""
        if not self.path.exists():
            return
        try:
            with safe_open(self.path, "pt") as file:
                if file.metadata()[KEY] != self.key:
                    raise UserError(f"{self.path} belongs to other runs; remove it.")
                for name, tensor in state.tensors().items():
                    tensor.copy_(file.get_tensor(name))
                torch.set_rng_state(file.get_tensor(RANDOM))
                if state.best.is_cuda:
                    torch.cuda.set_rng_state(file.get_tensor(CUDA_RANDOM))
                state.epoch = int(state.clock)
        except (SafetensorError, RuntimeError, KeyError, TypeError) as error:
            raise UserError(f"{self.path} is no checkpoint ({error}).") from None


SAVING_SHARE = 0.05
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
        if self.checkpoint is None or began < self.next:
            return
        self.checkpoint.save(state)
        now = time.perf_counter()
        rare = (now - began) / SAVING_SHARE if self.checkpoint.every else 0.0
        self.next = now + max(self.checkpoint.every, rare)

    def done(self, state: State) -> None:
        if self.checkpoint is not None:
            self.checkpoint.save(state)
