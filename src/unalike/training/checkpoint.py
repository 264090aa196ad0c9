"""Checkpoint: the state of training in one file, to go on from bit for bit."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from unalike.errors import UserError
from unalike.training.state import State

EPOCH, RANDOM, CUDA_RANDOM = "epoch", "random", "cuda random"


def save(path: Path, state: State) -> None:
    """Write the state; a file is replaced only by a whole one."""
    tensors = {name: t.contiguous().cpu() for name, t in state.tensors().items()}
    tensors[RANDOM] = torch.get_rng_state()
    if state.best.is_cuda:
        tensors[CUDA_RANDOM] = torch.cuda.get_rng_state(state.best.device)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        save_file(tensors, partial, metadata={EPOCH: str(state.epoch)})
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def restore(path: Path, state: State) -> None:
    """Fill the state from a file, where there is one."""
    if not path.exists():
        return
    try:
        with safe_open(path, "pt") as file:
            for name, tensor in state.tensors().items():
                tensor.copy_(file.get_tensor(name))
            torch.set_rng_state(file.get_tensor(RANDOM))
            if state.best.is_cuda:
                torch.cuda.set_rng_state(file.get_tensor(CUDA_RANDOM))
            state.epoch = int(file.metadata()[EPOCH])
    except (SafetensorError, RuntimeError, KeyError) as error:
        raise UserError(
            f"{path} is no checkpoint of this run ({error}); remove it to begin."
        ) from None
