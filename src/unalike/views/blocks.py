"""`Block`: columns of one view, the same in all contexts or one set per context."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Ids

FINE, COARSE = 1, 2
"""Fine folds per context of a block."""


@dataclass(frozen=True, eq=False)
class Block:
    """The columns of one view.

    `values` are [nodes, width], or [nodes, contexts, width] where the columns depend on
    which labels are hidden. `fine_per_context` is 2 if a context hides a coarse fold.
    """

    values: Float[Tensor, nodes * width]
    histogram: bool = False
    """Sums by class, which become log counts, shares and a log total."""
    fine_per_context: int = FINE

    def rows(self, ids: Ids, fine: Int[Tensor, " ids"]) -> Float[Tensor, "ids columns"]:
        """The columns of some nodes, each in the context of a fine fold."""
        if self.values.ndim == 2:
            values = self.values[ids]
        else:
            values = self.values[ids, fine // self.fine_per_context]
        return histogram_columns(values) if self.histogram else values.float()

    @property
    def width(self) -> int:
        width = self.values.shape[-1]
        return 2 * width + 1 if self.histogram else width

    def column_names(self, class_names: list[str] | None = None) -> list[str]:
        """A name for each column, without the name of the view."""
        width = self.values.shape[-1]
        names = class_names if class_names and len(class_names) == width else None
        classes = names or [str(column) for column in range(width)]
        if not self.histogram:
            return classes
        counts = [f"log_count_{name}" for name in classes]
        return [*counts, *(f"share_{name}" for name in classes), "log_total"]


def histogram_columns(
    sums: Float[Tensor, "rows classes"],
) -> Float[Tensor, "rows columns"]:
    """log(1 + count) and smoothed share of every class, and log(1 + total)."""
    total = sums.sum(1, keepdim=True)
    share = (sums + 1 / sums.shape[1]) / (total + 1)
    return torch.cat([sums.log1p(), share, total.log1p()], 1)
