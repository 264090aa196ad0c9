"""`Block`: columns of one view, the same in all contexts or one set per context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Ids
from unalike.nn.weights_on_disk import empty_in_file
from unalike.system import free_memory

FINE, COARSE = 1, 2
"""Fine folds per context of a block."""
MIN_FILE_BYTES = 2**27
"""Smaller columns are always in memory."""
MAX_MEMORY_SHARE = 1 / 64
"""Fraction of the free memory that one view may take; a larger one is in a file."""
CHUNK = 65_536
"""Rows that are copied at once."""


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

    def column_names(self) -> list[str]:
        """A name for each column, without the name of the view."""
        numbers = range(self.values.shape[-1])
        if not self.histogram:
            return [str(number) for number in numbers]
        counts = [f"log_count_{number}" for number in numbers]
        return [*counts, *(f"share_{number}" for number in numbers), "log_total"]


def histogram_columns(
    sums: Float[Tensor, "rows classes"],
) -> Float[Tensor, "rows columns"]:
    """log(1 + count) and smoothed share of every class, and log(1 + total)."""
    total = sums.sum(1, keepdim=True)
    share = (sums + 1 / sums.shape[1]) / (total + 1)
    return torch.cat([sums.log1p(), share, total.log1p()], 1)


def empty_columns(shape: Sequence[int]) -> Float[Tensor, ...]:
    """Uninitialised float32 columns, in an unnamed temporary file if they are large."""
    size = 4 * prod(shape)
    limit = MAX_MEMORY_SHARE * free_memory(torch.device("cpu"))
    if size < MIN_FILE_BYTES or size <= limit:
        return torch.empty(*shape)
    return empty_in_file(shape, "Columns of views")


def store_columns(values: Float[Tensor, ...]) -> Float[Tensor, ...]:
    """Columns of any device in main memory, or in a file if they are large."""
    if 4 * values.numel() < MIN_FILE_BYTES:
        return values.cpu()
    result = empty_columns(values.shape)
    if not values.is_cuda and result.untyped_storage().filename is None:
        return values
    return result.copy_(values)
