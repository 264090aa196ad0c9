"""`Training`: epochs, lr, weight decay, precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unalike.errors import UserError

Precision = Literal["float32", "tf32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class Training:
    """The settings of gradient descent; the defaults are those of the paper."""

    epochs: int = 500
    """Steps; the scores are those of the epoch with the best validation grade."""
    lr: float = 0.01
    """Learning rate of AdamW."""
    weight_decay: float = 0.001
    """Decoupled weight decay of AdamW."""
    precision: Precision = "float32"
    """Arithmetic on a GPU: float32; tf32 for dense products; bf16 for gathering too."""

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise UserError(f"--epochs is {self.epochs}; at least 1 is needed.")
        if not self.lr > 0:
            raise UserError(f"--lr is {self.lr}; it must be above 0.")
        if self.weight_decay < 0:
            raise UserError(f"--weight-decay is {self.weight_decay}; 0 is the least.")
