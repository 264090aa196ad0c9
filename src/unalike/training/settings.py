"""Training options: epochs, learning rate, weight decay, precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unalike.errors import UserError

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

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise UserError(f"--epochs is {self.epochs}; at least 1 is needed.")
        if not self.lr > 0:
            raise UserError(f"--lr is {self.lr}; it must be above 0.")
        if self.weight_decay < 0:
            decay = self.weight_decay
            raise UserError(f"--weight-decay is {decay}; it must be at least 0.")
