"""A training that stops at a gate in the middle, until it is opened.

Run as a program by every process of a world, with a folder that all of them see.
"""

import os
import pickle
import sys
import time
from pathlib import Path

import torch
from graphs import suiting, tasks_of

from unalike.errors import UserError
from unalike.methods.base import train_stacks
from unalike.methods.linkx import LINKX
from unalike.training.checkpoint import Checkpoint
from unalike.training.distributed import init_distributed
from unalike.training.loop import FullBatchEpochs
from unalike.training.state import Training

GATE = 7
METHOD = LINKX(hidden=8, layers=2, training=Training(epochs=12))
TIMEOUT = 5.0


def gate(folder, rank):
    """Advance as ever, but wait at the gate the first time."""
    run_epoch, epochs = FullBatchEpochs.run_epoch, []
    open_gate = folder / "open"

    def waiting(self):
        epochs.append(self.state.epoch)
        if self.state.epoch == GATE and not open_gate.exists():
            (folder / f"reached-{rank}").touch()
            while not open_gate.exists():
                time.sleep(0.05)
        run_epoch(self)

    FullBatchEpochs.run_epoch = waiting
    return epochs


def main(folder):
    torch.set_num_threads(1)
    with init_distributed(timeout=TIMEOUT) as world:
        epochs = gate(folder, world.rank)
        keep = Checkpoint(folder / "state", "key", every=0.0)
        (one,) = train_stacks([METHOD], tasks_of(suiting()), checkpoint=keep)
        if world.is_main:
            result = (one.scores.tolist(), one.curve.losses, one.curve.valid_scores)
            (folder / "answer").write_bytes(pickle.dumps((result, epochs[0])))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except UserError as error:
        sys.exit(f"{os.uname().nodename}: {error}")
