"""Spread: a sparse matrix, scaled at both ends, with something added to its loops."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.kernels.rows import Rows


@dataclass(frozen=True, eq=False)
class Spread:
    """S (A + L) S, where S and L are diagonal: nothing is kept for each entry."""

    rows: Rows
    scale: Float[Tensor, " nodes"]
    added: Float[Tensor, " nodes"]

    @property
    def transposed(self) -> Spread:
        """The same with rows and columns exchanged."""
        return Spread(self.rows.transposed, self.scale, self.added)
