"""Weights, best weights, curves, counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from unalike.nn.optim import AdamWStep, WeightState
from unalike.training.settings import Training
from unalike.training.stack import Stack

CONTIGUOUS = torch.contiguous_format
REST, BUFFER, BEST_BUFFER = "rest of the network", "buffer", "best buffer"
"""First parts of the names of tensors in a checkpoint."""
SAVED_FIELDS = (
    "losses",
    "valid_scores",
    "best_score",
    "best_epoch",
    "improved",
    "epoch_counter",
    "step_counter",
)


@dataclass(eq=False)
class State:
    """The weights, the best weights, and the grades that chose them."""

    stack: Stack
    lr: Float[Tensor, " runs"]
    weight_decay: Float[Tensor, " runs"]
    best_buffers: dict[str, Tensor]
    losses: Float[Tensor, "epochs runs"]
    valid_scores: Float[Tensor, "epochs runs"]
    best_score: Float[Tensor, " runs"]
    """The highest validation grade of each run."""
    best_epoch: Int[Tensor, " runs"]
    """The first epoch with that grade, counted from 1."""
    improved: Bool[Tensor, " runs"]
    """Runs whose present weights are the best, not yet kept."""
    epoch_counter: Int[Tensor, 1]
    """Epochs done, where the device can read them."""
    step_counter: Int[Tensor, 1]
    """Steps taken: as many as epochs, unless an epoch has several batches."""
    epoch: int = 0
    """The same for the program; whoever runs an epoch counts it."""

    @classmethod
    def start(cls, stack: Stack, trainings: Sequence[Training]) -> State:
        """The state before the first epoch."""
        device, runs = stack.params.weight.device, len(trainings)
        rates = torch.tensor([[t.lr, t.weight_decay] for t in trainings])
        rate, decay = rates.float().T.contiguous().to(device)
        notes = torch.zeros(2, trainings[0].epochs, runs, dtype=torch.float64)
        losses, grades = notes.to(device)
        return cls(
            stack=stack,
            lr=rate,
            weight_decay=decay,
            best_buffers={name: b.clone() for name, b in stack.buffers.items()},
            losses=losses,
            valid_scores=grades,
            best_score=torch.full(
                (runs,), -torch.inf, dtype=torch.float64, device=device
            ),
            best_epoch=torch.zeros(runs, dtype=torch.int64, device=device),
            improved=torch.zeros(runs, dtype=torch.bool, device=device),
            epoch_counter=torch.zeros(1, dtype=torch.int64, device=device),
            step_counter=torch.zeros(1, dtype=torch.int64, device=device),
        )

    def next_step(self) -> AdamWStep:
        """The step of AdamW that comes now."""
        self.step_counter += 1
        return self.last_step()

    def last_step(self) -> AdamWStep:
        """The step of AdamW that was taken last."""
        return AdamWStep(self.step_counter, self.lr, self.weight_decay, self.improved)

    def record_loss(self, loss: Float[Tensor, " runs"]) -> None:
        """Take down a training loss."""
        self.losses.index_copy_(0, self.epoch_counter, loss[None].double())

    def record_score(self, grade: Float[Tensor, " runs"]) -> None:
        """Take down a validation grade; the best of each run is marked to be kept."""
        self.valid_scores.index_copy_(0, self.epoch_counter, grade[None])
        self.epoch_counter += 1
        torch.gt(grade, self.best_score, out=self.improved)
        self._keep(self.best_score, grade)
        self._keep(self.best_epoch, self.epoch_counter.expand_as(self.best_epoch))
        for name, now in self.stack.buffers.items():
            self._keep(self.best_buffers[name], now)

    def save_best(self) -> None:
        """Keep the weights of runs that improved, before a step does it or instead."""
        for weights in self._all_weights().values():
            runs, best = self.improved[:, None], weights.best_weight
            torch.where(runs, weights.weight, best, out=best)
        self.improved.zero_()

    def best_state_dict(self, run: int) -> dict[str, Tensor]:
        """The best weights of a run, named as in the state dict of its module."""
        stack = self.stack
        tables = {
            f"{name}.weight": stack.gather_weight(name, run)
            for name in stack.sparse_weights
        }
        buffers = {name: b[run] for name, b in self.best_buffers.items()}
        found = {
            **tables,
            **stack.parameters(stack.params.best_weight[0, run]),
            **buffers,
        }
        return {
            name: t.cpu().clone(memory_format=CONTIGUOUS) for name, t in found.items()
        }

    def check_ranks_agree(self) -> None:
        """Make sure that what every process has computed for itself is the same."""
        if self.stack.world.size == 1:
            return
        digest = sha256()
        for name, weights in self._all_weights().items():
            if name not in self.stack.sharded:
                here = weights.weight.cpu().contiguous().view(torch.uint8)
                digest.update(here.numpy().tobytes())
        self.stack.world.assert_equal_on_all_ranks(
            {"weights after training": digest.hexdigest()}
        )

    def _keep(self, best: Shaped[Tensor, "runs ..."], now: Tensor) -> None:
        runs = self.improved.view(-1, *[1] * (now.dim() - 1))
        best.copy_(torch.where(runs, now, best))

    def _all_weights(self) -> dict[str, WeightState]:
        return {**self.stack.sparse_weights, REST: self.stack.params}

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
        notes = {name: getattr(self, name) for name in SAVED_FIELDS}
        return {**weights, **buffers, **kept, **notes}
