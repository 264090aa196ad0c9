"""Training options, and the state of a stack: weights, best weights, losses, scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from unalike.errors import UserError, check_at_least_one
from unalike.nn.optim import AdamWStep, WeightState
from unalike.options import check_options, later_option
from unalike.training.stack import Stack

Precision = Literal["float32", "tf32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class Training:
    """Hyperparameters of training; the defaults are those of the paper."""

    epochs: int = 500
    """Epochs; the scores are those of the epoch with the best validation score."""
    lr: float = 0.01
    """Learning rate of AdamW."""
    weight_decay: float = 0.001
    """Decoupled weight decay of AdamW."""
    precision: Precision = "float32"
    """On a GPU: float32; tf32 for dense products; bf16 for sparse products too."""
    coupled_decay: bool = later_option(False)
    """Add the decay to the gradient, as Adam with an L2 penalty does."""
    sharpening: float = later_option(0.0)
    """Weight of transductive sharpening: lower the entropy of nodes that are not
    trained on, and raise that of train nodes (Zaz et al. 2026)."""

    def __post_init__(self) -> None:
        check_at_least_one("--epochs", self.epochs)
        if not self.lr > 0:
            raise UserError(f"--lr is {self.lr}; it must be above 0.")
        check_options(self)


PARAMS, BUFFER, BEST_BUFFER = "rest of the network", "buffer", "best buffer"
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
    """The weights of a stack, its best weights, and the scores that chose them."""

    stack: Stack
    lr: Float[Tensor, " runs"]
    weight_decay: Float[Tensor, " runs"]
    best_buffers: dict[str, Tensor]
    losses: Float[Tensor, "epochs runs"]
    valid_scores: Float[Tensor, "epochs runs"]
    best_score: Float[Tensor, " runs"]
    """The highest validation score of each run."""
    best_epoch: Int[Tensor, " runs"]
    """The first epoch with that score, counted from 1."""
    improved: Bool[Tensor, " runs"]
    """Runs whose current weights are the best and are not saved yet."""
    epoch_counter: Int[Tensor, 1]
    """Finished epochs, on the device."""
    step_counter: Int[Tensor, 1]
    """Optimizer steps: as many as epochs, unless an epoch has several batches."""
    use_last: bool = False
    """Every epoch counts as the best so far, so that the last one is used."""
    patience: int | None = None
    """Epochs without a better score after which no later weights of a run are used,
    however long the others of the stack go on."""
    coupled_decay: bool = False
    """Is the decay a part of the gradient, as in Adam with an L2 penalty?"""
    sharpening: float = 0.0
    """Weight of transductive sharpening in the loss."""
    epoch: int = 0
    """Finished epochs, on the host; whoever runs an epoch counts it."""

    @classmethod
    def start(
        cls,
        stack: Stack,
        trainings: Sequence[Training],
        *,
        use_last: bool = False,
        patience: int | None = None,
    ) -> State:
        runs, epochs, exact = len(trainings), trainings[0].epochs, torch.float64
        numbers = torch.tensor([[t.lr, t.weight_decay] for t in trainings]).float()
        lr, weight_decay = numbers.T.contiguous().to(stack.params.weight.device)
        with stack.params.weight.device:
            return cls(
                stack=stack,
                lr=lr,
                weight_decay=weight_decay,
                best_buffers={name: b.clone() for name, b in stack.buffers.items()},
                losses=torch.zeros(epochs, runs, dtype=exact),
                valid_scores=torch.zeros(epochs, runs, dtype=exact),
                best_score=torch.full((runs,), -torch.inf, dtype=exact),
                best_epoch=torch.zeros(runs, dtype=torch.int64),
                improved=torch.zeros(runs, dtype=torch.bool),
                epoch_counter=torch.zeros(1, dtype=torch.int64),
                step_counter=torch.zeros(1, dtype=torch.int64),
                use_last=use_last,
                patience=patience,
                coupled_decay=trainings[0].coupled_decay,
                sharpening=trainings[0].sharpening,
            )

    def next_step(self) -> AdamWStep:
        """Count one more step of AdamW."""
        self.step_counter += 1
        return self.last_step()

    def last_step(self) -> AdamWStep:
        return AdamWStep(self.step_counter, self.lr, self.weight_decay, self.improved)

    def record_loss(self, loss: Float[Tensor, " runs"]) -> None:
        self.losses.index_copy_(0, self.epoch_counter, loss[None].double())

    def record_score(self, score: Float[Tensor, " runs"]) -> None:
        """Record a validation score and mark the runs that improved."""
        self.valid_scores.index_copy_(0, self.epoch_counter, score[None])
        self.epoch_counter += 1
        torch.gt(score, self.best_score, out=self.improved)
        if self.use_last:
            self.improved.fill_(True)
        if self.patience is not None:
            self.improved &= self.epoch_counter - self.best_epoch <= self.patience
        self._update_improved(self.best_score, score)
        epoch = self.epoch_counter.expand_as(self.best_epoch)
        self._update_improved(self.best_epoch, epoch)
        for name, buffer in self.stack.buffers.items():
            self._update_improved(self.best_buffers[name], buffer)

    def save_best(self) -> None:
        """Copy the weights of runs that improved; otherwise the next step does it."""
        for weights in self._all_weights().values():
            runs, best = self.improved[:, None], weights.best_weight
            torch.where(runs, weights.weight, best, out=best)
        self.improved.zero_()

    def best_state_dict(self, run: int) -> dict[str, Tensor]:
        """The best weights of a run, named as in the state dict of its module."""
        stack = self.stack
        sparse = stack.sparse_weights
        tensors = {
            **{f"{name}.weight": stack.gather_weight(name, run) for name in sparse},
            **stack.parameters(stack.params.best_weight[0, run]),
            **{name: buffer[run] for name, buffer in self.best_buffers.items()},
        }
        return {
            name: t.cpu().clone(memory_format=torch.contiguous_format)
            for name, t in tensors.items()
        }

    def check_ranks_agree(self) -> None:
        """Raise unless all processes have computed the same weights."""
        if self.stack.world.size == 1:
            return
        digest = sha256()
        for name, weights in self._all_weights().items():
            if name not in self.stack.sharded:
                local = weights.weight.cpu().contiguous().view(torch.uint8)
                digest.update(local.numpy().tobytes())
        self.stack.world.assert_equal_on_all_ranks(
            {"weights after training": digest.hexdigest()}
        )

    def _update_improved(self, best: Shaped[Tensor, "runs ..."], new: Tensor) -> None:
        runs = self.improved.view(-1, *[1] * (new.dim() - 1))
        best.copy_(torch.where(runs, new, best))

    def _all_weights(self) -> dict[str, WeightState]:
        return {**self.stack.sparse_weights, PARAMS: self.stack.params}

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the state by name, to be saved or filled in place."""
        weights = {
            f"{name}/{field}": tensor
            for name, state in self._all_weights().items()
            for field, tensor in state.tensors.items()
        }
        buffers = {f"{BUFFER}/{name}": b for name, b in self.stack.buffers.items()}
        best = {f"{BEST_BUFFER}/{name}": b for name, b in self.best_buffers.items()}
        fields = {name: getattr(self, name) for name in SAVED_FIELDS}
        return {**weights, **buffers, **best, **fields}
