"""Rows: what a kernel reads of a sparse matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Parts(NamedTuple):
    """The arrays of sparse rows, as a kernel makes them."""

    starts: Int[Tensor, " rows_and_one"]
    columns: Int[Tensor, " edges"]
    width: int
    values: Float[Tensor, " edges"] | None


@dataclass(frozen=True, eq=False)
class Rows(ABC):
    """Row i holds columns[starts[i]:starts[i + 1]], ascending and without repeats."""

    starts: Int[Tensor, " rows_and_one"]
    columns: Int[Tensor, " edges"]
    width: int
    values: Float[Tensor, " edges"] | None = None
    """A weight for each entry; None means that all of them are 1."""

    @property
    @abstractmethod
    def transposed(self) -> Rows:
        """The same entries with rows and columns exchanged."""

    @cached_property
    def degrees(self) -> Int[Tensor, " rows"]:
        """Entries in each row."""
        return self.starts[1:] - self.starts[:-1]

    @property
    def num_columns(self) -> int:
        """Columns of the whole matrix, some of which others may hold."""
        return self.width

    @property
    def held(self) -> range:
        """Those of them that are here."""
        return range(self.width)

    @property
    def loads(self) -> Int[Tensor, " rows"]:
        """Entries in each row of the whole matrix."""
        return self.degrees

    @cached_property
    def flows(self) -> dict[Any, Any]:
        """A place for what was propagated along these entries once and for all."""
        return {}

    @cached_property
    def longest_first(self) -> Int[Tensor, " rows"]:
        """The rows by falling length, so that the longest are not begun last."""
        return self.degrees.argsort(descending=True, stable=True).int()


def bounds_of(
    starts: Int[Tensor, " rows_and_one"], ids: Int[Tensor, " ids"]
) -> tuple[Int[Tensor, " ids"], Int[Tensor, " ids_and_one"]]:
    """Where some rows begin, and where they do when one is put behind the other."""
    first, last = starts[:-1][ids], starts[1:][ids]
    begins = torch.zeros(len(ids) + 1, dtype=torch.int64, device=ids.device)
    torch.cumsum(last - first, 0, out=begins[1:])
    return first, begins
