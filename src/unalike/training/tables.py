"""Tables: how the weights that meet sparse rows move.

`adamw` is exact. In a batch of rows most rows of a table get no gradient; AdamW moves
them all the same, by what is left of their moments. The others leave them alone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.adjacency import Adjacency, Ids
from unalike.kernels import kernels_of
from unalike.kernels.update import BETA1, BETA2, EPSILON, Held, Step, Weights
from unalike.spacious import room_like

Kind = TypeVar("Kind", bound="Table")
Slope = Float[Tensor, "nodes runs width"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Held):
    """A table of a stack, and how it moves."""

    @classmethod
    @abstractmethod
    def fresh(
        cls: type[Kind], now: Float[Tensor, "rows runs width"], *, half: bool
    ) -> Kind:
        """The table before the first step."""

    @abstractmethod
    def move(self, matrix: Adjacency, slope: Slope, step: Step) -> None:
        """One step, by the slope of the loss at the product of a matrix and this."""

    def settle(self, step: Step) -> None:
        """Make up for what was left undone, before the table is read as a whole."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Exact(Weights, Table):
    """AdamW of every row in every step."""

    def move(self, matrix: Adjacency, slope: Slope, step: Step) -> None:
        kernels = kernels_of(slope.device)
        kernels.gather_adamw(self, matrix.transposed, slope, step)


@dataclass(frozen=True, eq=False, kw_only=True)
class Lazy(Weights, Table):
    """AdamW of the rows that a batch meets.

    A row that was away for k steps has its moments and its weights decayed k times
    when it returns, as AdamW would have done. What is lost are the k small moves along
    its old first moment.
    """

    seen: Int[Tensor, " rows"]
    """The step up to which each row is done."""

    @classmethod
    def fresh(cls, now: Float[Tensor, "rows runs width"], *, half: bool) -> Lazy:
        seen = torch.zeros(len(now), dtype=torch.int64, device=now.device)
        return cls(**vars(Weights.fresh(now, half=half)), seen=seen)

    def move(self, matrix: Adjacency, slope: Slope, step: Step) -> None:
        ids, gradient = met(matrix, slope)
        self._return(ids, step.count - 1, step)
        mean = self.first[ids].lerp_(gradient, 1 - BETA1)
        square = self.second[ids].mul_(BETA2)
        square.addcmul_(gradient, gradient, value=1 - BETA2)
        self.first[ids], self.second[ids] = mean, square
        scale1, scale2 = step.scales
        spread = square.mul_(scale2).sqrt_().add_(EPSILON)
        pace = step.rate[:, None] * scale1
        shrink = 1 - (step.rate * step.decay)[:, None]
        self.now[ids] = self.now[ids].mul_(shrink).sub_(mean.div_(spread).mul_(pace))
        self.seen[ids] = step.count
        copy_halves(self, ids)

    def settle(self, step: Step) -> None:
        everything = torch.arange(len(self.now), device=self.now.device)
        for ids in everything.split(2**18):
            self._return(ids, step.count, step)
            copy_halves(self, ids)

    def _return(self, ids: Ids, until: Int[Tensor, 1], step: Step) -> None:
        """Decay rows as often as they were away."""
        away = (until - self.seen[ids]).clamp(min=0)[:, None, None]
        shrink = 1 - (step.rate * step.decay)[:, None]
        self.now[ids] *= shrink**away
        self.first[ids] *= BETA1**away
        self.second[ids] *= BETA2**away
        self.seen[ids] = until


@dataclass(frozen=True, eq=False, kw_only=True)
class Adagrad(Table):
    """Row-wise Adagrad: each row divides its rate by the size of its past gradients.

    One number per row and run in place of two per weight (Duchi et al. 2011).
    """

    squares: Float[Tensor, "rows runs 1"]
    """The sum over steps of the mean square of a row's gradient."""

    @classmethod
    def fresh(cls, now: Float[Tensor, "rows runs width"], *, half: bool) -> Adagrad:
        return cls(
            now=now,
            best=room_like(now).copy_(now),
            half=now.to(torch.bfloat16) if half else None,
            squares=torch.zeros_like(now[:, :, :1]),
        )

    def move(self, matrix: Adjacency, slope: Slope, step: Step) -> None:
        ids, gradient = met(matrix, slope)
        squares = self.squares[ids] + gradient.square().mean(-1, keepdim=True)
        self.squares[ids] = squares
        shrink = 1 - (step.rate * step.decay)[:, None]
        moved = gradient.div_(squares.sqrt() + EPSILON).mul_(step.rate[:, None])
        self.now[ids] = self.now[ids].mul_(shrink).sub_(moved)
        copy_halves(self, ids)


def met(matrix: Adjacency, slope: Slope) -> tuple[Ids, Float[Tensor, "met runs width"]]:
    """The rows of a table that a matrix meets, and the gradient of each."""
    columns = matrix.transposed
    ids = columns.degrees.nonzero()[:, 0]
    starts = torch.cat([columns.starts[ids], columns.starts[-1:]])
    rows = Adjacency(starts, columns.columns, columns.width, columns.values)
    gradient = kernels_of(slope.device).gather(rows, slope.flatten(1).float())
    return ids, gradient.unflatten(1, slope.shape[1:])


def copy_halves(table: Held, ids: Ids) -> None:
    """Bring the copy that is gathered from up to date."""
    if table.half is not None:
        table.half[ids] = table.now[ids].to(table.half.dtype)


TABLES: dict[str, type[Table]] = {"adamw": Exact, "lazy": Lazy, "adagrad": Adagrad}
