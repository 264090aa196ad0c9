"""State: everything a stack of runs has learned and noted so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from unalike.kernels.update import Held, Step
from unalike.training.settings import Training
from unalike.training.stack import Stack

KEPT = torch.contiguous_format
REST, BUFFER, BEST_BUFFER = "rest of the network", "buffer", "best buffer"
"""First parts of the names of tensors in a checkpoint."""
NOTES = ("losses", "grades", "best", "best_epoch", "improved", "clock", "steps")


@dataclass(eq=False)
class State:
    """The weights, the best weights, and the grades that chose them."""

    stack: Stack
    rate: Float[Tensor, " runs"]
    decay: Float[Tensor, " runs"]
    best_buffers: dict[str, Tensor]
    losses: Float[Tensor, "epochs runs"]
    grades: Float[Tensor, "epochs runs"]
    best: Float[Tensor, " runs"]
    """The highest validation grade of each run."""
    best_epoch: Int[Tensor, " runs"]
    """The first epoch with that grade, counted from 1."""
    improved: Bool[Tensor, " runs"]
    """Runs whose present weights are the best, not yet kept."""
    clock: Int[Tensor, 1]
    """Epochs done, where the device can read them."""
    steps: Int[Tensor, 1]
    """Steps taken: as many as epochs, unless an epoch has several batches."""
    epoch: int = 0
    """The same for the program; whoever runs an epoch counts it."""

    @classmethod
    def start(cls, stack: Stack, trainings: Sequence[Training]) -> State:
        """The state before the first epoch."""
        device, runs = stack.rest.now.device, len(trainings)
        rates = torch.tensor([[t.lr, t.weight_decay] for t in trainings])
        rate, decay = rates.float().T.contiguous().to(device)
        notes = torch.zeros(2, trainings[0].epochs, runs, dtype=torch.float64)
        losses, grades = notes.to(device)
        return cls(
            stack=stack,
            rate=rate,
            decay=decay,
            best_buffers={name: b.clone() for name, b in stack.buffers.items()},
            losses=losses,
            grades=grades,
            best=torch.full((runs,), -torch.inf, dtype=torch.float64, device=device),
            best_epoch=torch.zeros(runs, dtype=torch.int64, device=device),
            improved=torch.zeros(runs, dtype=torch.bool, device=device),
            clock=torch.zeros(1, dtype=torch.int64, device=device),
            steps=torch.zeros(1, dtype=torch.int64, device=device),
        )

    def next_step(self) -> Step:
        """The step of AdamW that comes now."""
        self.steps += 1
        return self.last_step()

    def last_step(self) -> Step:
        """The step of AdamW that was taken last."""
        return Step(self.steps, self.rate, self.decay, self.improved)

    def note_loss(self, loss: Float[Tensor, " runs"]) -> None:
        """Take down a training loss."""
        self.losses.index_copy_(0, self.clock, loss[None].double())

    def note_grade(self, grade: Float[Tensor, " runs"]) -> None:
        """Take down a validation grade; the best of each run is marked to be kept."""
        self.grades.index_copy_(0, self.clock, grade[None])
        self.clock += 1
        torch.gt(grade, self.best, out=self.improved)
        self._keep(self.best, grade)
        self._keep(self.best_epoch, self.clock.expand_as(self.best_epoch))
        for name, now in self.stack.buffers.items():
            self._keep(self.best_buffers[name], now)

    def keep_best(self) -> None:
        """Keep the weights of runs that improved, before a step does it or instead."""
        for weights in self._all_weights().values():
            runs, best = self.improved[:, None], weights.best
            torch.where(runs, weights.now, best, out=best)
        self.improved.zero_()

    def learned(self, run: int) -> dict[str, Tensor]:
        """The best weights of a run, named as in the state dict of its module."""
        stack = self.stack
        tables = {
            f"{name}.weight": stack.whole_table(name, run) for name in stack.tables
        }
        buffers = {name: b[run] for name, b in self.best_buffers.items()}
        found = {**tables, **stack.parameters(stack.rest.best[0, run]), **buffers}
        return {name: t.cpu().clone(memory_format=KEPT) for name, t in found.items()}

    def agree(self) -> None:
        """Make sure that what every process has computed for itself is the same."""
        if self.stack.world.size == 1:
            return
        digest = sha256()
        for name, weights in self._all_weights().items():
            if name not in self.stack.divided:
                here = weights.now.cpu().contiguous().view(torch.uint8)
                digest.update(here.numpy().tobytes())
        self.stack.world.agree({"weights after training": digest.hexdigest()})

    def _keep(self, best: Shaped[Tensor, "runs ..."], now: Tensor) -> None:
        runs = self.improved.view(-1, *[1] * (now.dim() - 1))
        best.copy_(torch.where(runs, now, best))

    def _all_weights(self) -> dict[str, Held]:
        return {**self.stack.tables, REST: self.stack.rest}

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the state by name, to be saved or filled in place."""
        weights = {
            f"{name}/{part}": tensor
            for name, all_parts in self._all_weights().items()
            for part, tensor in vars(all_parts).items()
            if tensor is not None
        }
        buffers = {f"{BUFFER}/{name}": b for name, b in self.stack.buffers.items()}
        kept = {f"{BEST_BUFFER}/{name}": b for name, b in self.best_buffers.items()}
        notes = {name: getattr(self, name) for name in NOTES}
        return {**weights, **buffers, **kept, **notes}
