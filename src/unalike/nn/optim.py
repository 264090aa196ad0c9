"""AdamW state and step; AdamW, lazy AdamW and row-wise Adagrad of sparse-input weights."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.memmap import empty_like
from unalike.nn.sparse import backend

# Update: what one AdamW step needs to know of a stack of weights.


AdamWStateT = TypeVar("AdamWStateT", bound="AdamWState")

BETA1, BETA2, ADAM_EPS = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightState:
    """Weights of a stack of runs, and the best so far."""

    weight: Float[Tensor, "rows runs width"]
    best_weight: Float[Tensor, "rows runs width"]
    """The weights of each run's best epoch."""
    weight_bf16: Float[Tensor, "rows runs width"] | None = None
    """A bfloat16 copy to gather from, where it is asked for."""

    @property
    def read_weight(self) -> Float[Tensor, "rows runs width"]:
        """What a sparse product reads."""
        return self.weight if self.weight_bf16 is None else self.weight_bf16


@dataclass(frozen=True, eq=False, kw_only=True)
class AdamWState(WeightState):
    """Weights with the moments of AdamW."""

    exp_avg: Float[Tensor, "rows runs width"]
    """Moving average of the gradient."""
    exp_avg_sq: Float[Tensor, "rows runs width"]
    """Moving average of its square."""

    @classmethod
    def create(
        cls: type[AdamWStateT], now: Float[Tensor, "rows runs width"], *, half: bool
    ) -> AdamWStateT:
        """Weights before the first step."""
        return cls(
            weight=now,
            best_weight=empty_like(now).copy_(now),
            weight_bf16=now.to(torch.bfloat16) if half else None,
            exp_avg=empty_like(now).zero_(),
            exp_avg_sq=empty_like(now).zero_(),
        )


@dataclass(frozen=True, eq=False)
class AdamWStep:
    """One step of AdamW: rates differ by run, the count of steps does not.

    All of it lies on the device, so that a recorded step can be played again.
    """

    step: Shaped[Tensor, 1]
    """Steps taken, this one included."""
    lr: Float[Tensor, " runs"]
    weight_decay: Float[Tensor, " runs"]
    improved: Bool[Tensor, " runs"]
    """Runs whose weights before this step are their best so far, to be kept."""

    @cached_property
    def bias_corrections(self) -> Float[Tensor, 2]:
        """1 / (1 - beta^count): what makes up for moving averages that begin at 0."""
        count = self.step.double()
        return torch.cat([1 / (1 - beta**count) for beta in (BETA1, BETA2)]).float()


# Tables: how the weights that meet sparse rows move.
#
# `adamw` is exact. In a batch of rows most rows of a table get no gradient; AdamW moves
# them all the same, by what is left of their moments. The others leave them alone.


SparseOptimizerT = TypeVar("SparseOptimizerT", bound="SparseOptimizer")
Slope = Float[Tensor, "nodes runs width"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseOptimizer(WeightState):
    """A table of a stack, and how it moves."""

    @classmethod
    @abstractmethod
    def create(
        cls: type[SparseOptimizerT],
        now: Float[Tensor, "rows runs width"],
        *,
        half: bool,
    ) -> SparseOptimizerT:
        """The table before the first step."""

    @abstractmethod
    def step(self, matrix: Adjacency, slope: Slope, step: AdamWStep) -> None:
        """One step, by the slope of the loss at the product of a matrix and this."""

    def catch_up(self, step: AdamWStep) -> None:
        """Make up for what was left undone, before the table is read as a whole."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AdamW(AdamWState, SparseOptimizer):
    """AdamW of every row in every step."""

    def step(self, matrix: Adjacency, slope: Slope, step: AdamWStep) -> None:
        kernels = backend(slope.device)
        kernels.spmm_adamw(self, matrix.T, slope, step)


@dataclass(frozen=True, eq=False, kw_only=True)
class LazyAdamW(AdamWState, SparseOptimizer):
    """AdamW of the rows that a batch meets.

    A row that was away for k steps has its moments and its weights decayed k times
    when it returns, as AdamW would have done. What is lost are the k small moves along
    its old first moment.
    """

    last_step: Int[Tensor, " rows"]
    """The step up to which each row is done."""

    @classmethod
    def create(cls, now: Float[Tensor, "rows runs width"], *, half: bool) -> LazyAdamW:
        seen = torch.zeros(len(now), dtype=torch.int64, device=now.device)
        return cls(**vars(AdamWState.create(now, half=half)), last_step=seen)

    def step(self, matrix: Adjacency, slope: Slope, step: AdamWStep) -> None:
        ids, gradient = touched_rows_gradient(matrix, slope)
        self._decay_skipped_steps(ids, step.step - 1, step)
        mean = self.exp_avg[ids].lerp_(gradient, 1 - BETA1)
        square = self.exp_avg_sq[ids].mul_(BETA2)
        square.addcmul_(gradient, gradient, value=1 - BETA2)
        self.exp_avg[ids], self.exp_avg_sq[ids] = mean, square
        scale1, scale2 = step.bias_corrections
        spread = square.mul_(scale2).sqrt_().add_(ADAM_EPS)
        pace = step.lr[:, None] * scale1
        shrink = 1 - (step.lr * step.weight_decay)[:, None]
        self.weight[ids] = (
            self.weight[ids].mul_(shrink).sub_(mean.div_(spread).mul_(pace))
        )
        self.last_step[ids] = step.step
        sync_bf16(self, ids)

    def catch_up(self, step: AdamWStep) -> None:
        everything = torch.arange(len(self.weight), device=self.weight.device)
        for ids in everything.split(2**18):
            self._decay_skipped_steps(ids, step.step, step)
            sync_bf16(self, ids)

    def _decay_skipped_steps(
        self, ids: Ids, until: Int[Tensor, 1], step: AdamWStep
    ) -> None:
        """Decay rows as often as they were away."""
        away = (until - self.last_step[ids]).clamp(min=0)[:, None, None]
        shrink = 1 - (step.lr * step.weight_decay)[:, None]
        self.weight[ids] *= shrink**away
        self.exp_avg[ids] *= BETA1**away
        self.exp_avg_sq[ids] *= BETA2**away
        self.last_step[ids] = until


@dataclass(frozen=True, eq=False, kw_only=True)
class RowwiseAdagrad(SparseOptimizer):
    """Row-wise Adagrad: each row divides its rate by the size of its past gradients.

    One number per row and run in place of two per weight (Duchi et al. 2011).
    """

    squares: Float[Tensor, "rows runs 1"]
    """The sum over steps of the mean square of a row's gradient."""

    @classmethod
    def create(
        cls, now: Float[Tensor, "rows runs width"], *, half: bool
    ) -> RowwiseAdagrad:
        return cls(
            weight=now,
            best_weight=empty_like(now).copy_(now),
            weight_bf16=now.to(torch.bfloat16) if half else None,
            squares=torch.zeros_like(now[:, :, :1]),
        )

    def step(self, matrix: Adjacency, slope: Slope, step: AdamWStep) -> None:
        ids, gradient = touched_rows_gradient(matrix, slope)
        squares = self.squares[ids] + gradient.square().mean(-1, keepdim=True)
        self.squares[ids] = squares
        shrink = 1 - (step.lr * step.weight_decay)[:, None]
        moved = gradient.div_(squares.sqrt() + ADAM_EPS).mul_(step.lr[:, None])
        self.weight[ids] = self.weight[ids].mul_(shrink).sub_(moved)
        sync_bf16(self, ids)


def touched_rows_gradient(
    matrix: Adjacency, slope: Slope
) -> tuple[Ids, Float[Tensor, "met runs width"]]:
    """The rows of a table that a matrix meets, and the gradient of each."""
    columns = matrix.T
    ids = columns.degrees.nonzero()[:, 0]
    starts = torch.cat([columns.indptr[ids], columns.indptr[-1:]])
    rows = Adjacency(starts, columns.indices, columns.num_cols, columns.values)
    gradient = backend(slope.device).spmm(rows, slope.flatten(1).float())
    return ids, gradient.unflatten(1, slope.shape[1:])


def sync_bf16(table: WeightState, ids: Ids) -> None:
    """Bring the copy that is gathered from up to date."""
    if table.weight_bf16 is not None:
        table.weight_bf16[ids] = table.weight[ids].to(table.weight_bf16.dtype)


SPARSE_OPTIMIZERS: dict[str, type[SparseOptimizer]] = {
    "adamw": AdamW,
    "lazy": LazyAdamW,
    "adagrad": RowwiseAdagrad,
}
