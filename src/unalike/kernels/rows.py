"""Rows: what a kernel reads of a sparse matrix."""

from typing import Protocol

from jaxtyping import Float, Int
from torch import Tensor


class Rows(Protocol):
    """Sparse rows, as `Adjacency` holds them."""

    @property
    def starts(self) -> Int[Tensor, " rows_and_one"]: ...
    @property
    def columns(self) -> Int[Tensor, " edges"]: ...
    @property
    def values(self) -> Float[Tensor, " edges"] | None: ...
    @property
    def longest_first(self) -> Int[Tensor, " rows"]:
        """The rows by falling length, so that the longest do not finish last."""
