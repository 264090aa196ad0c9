"""AdamW, lazy AdamW and row-wise Adagrad for the weights of sparse inputs.

A batch of rows gives no gradient to most rows of such a weight. `AdamW` updates them
all the same, by what is left of their moments; the others skip them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.csr import nonempty_columns
from unalike.nn.sparse import backend
from unalike.nn.weights_on_disk import empty_like

WeightStateT = TypeVar("WeightStateT", bound="WeightState")
GradOut = Float[Tensor, "nodes runs width"]
"""The gradient of the loss by the output of a sparse linear layer."""

BETA1, BETA2, ADAM_EPS = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightState:
    """Weights of a stack of runs, and the best so far."""

    weight: Float[Tensor, "rows runs width"]
    best_weight: Float[Tensor, "rows runs width"]
    """The weights of each run's best epoch."""
    weight_bf16: Float[Tensor, "rows runs width"] | None = None
    """A bfloat16 copy for sparse products, where it is asked for."""

    @classmethod
    def create(
        cls: type[WeightStateT], weight: Float[Tensor, "rows runs width"], *, bf16: bool
    ) -> WeightStateT:
        """The weights before the first step."""
        return cls(
            weight=weight,
            best_weight=empty_like(weight).copy_(weight),
            weight_bf16=weight.to(torch.bfloat16) if bf16 else None,
            **cls.initial_state(weight),
        )

    @staticmethod
    @abstractmethod
    def initial_state(weight: Float[Tensor, "rows runs width"]) -> dict[str, Tensor]:
        """What the optimizer stores for these weights, before the first step."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {name: t for name, t in vars(self).items() if t is not None}

    def cpu(self: WeightStateT) -> WeightStateT:
        """A copy in main memory, without that in bfloat16."""
        tensors = {name: tensor.cpu() for name, tensor in self.tensors.items()}
        return replace(replace(self, **tensors), weight_bf16=None)

    @property
    def read_weight(self) -> Float[Tensor, "rows runs width"]:
        """The copy that a sparse product reads."""
        return self.weight if self.weight_bf16 is None else self.weight_bf16


@dataclass(frozen=True, eq=False, kw_only=True)
class AdamWState(WeightState):
    """Weights with the moments of AdamW, whose names are those of torch."""

    exp_avg: Float[Tensor, "rows runs width"]
    """Moving average of the gradient."""
    exp_avg_sq: Float[Tensor, "rows runs width"]
    """Moving average of its square."""

    @staticmethod
    def initial_state(weight: Float[Tensor, "rows runs width"]) -> dict[str, Tensor]:
        names = ("exp_avg", "exp_avg_sq")
        return {name: empty_like(weight).zero_() for name in names}


@dataclass(frozen=True, eq=False)
class AdamWStep:
    """One step of AdamW; lr and weight decay may differ by run, the step does not.

    All of it lies on the device, so that a CUDA graph can replay the step.
    """

    step: Shaped[Tensor, 1]
    """Steps taken, this one included."""
    lr: Float[Tensor, " runs"]
    weight_decay: Float[Tensor, " runs"]
    improved: Bool[Tensor, " runs"]
    """Runs whose weights before this step are their best so far, to be saved."""

    @cached_property
    def bias_corrections(self) -> Float[Tensor, 2]:
        """1 / (1 - beta^step) for both moments, which begin at 0."""
        step = self.step.double()
        return torch.cat([1 / (1 - beta**step) for beta in (BETA1, BETA2)]).float()


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseOptimizer(WeightState):
    """The weight of a sparse input for a stack of runs, with its optimizer."""

    @abstractmethod
    def step(self, matrix: Adjacency, grad_out: GradOut, step: AdamWStep) -> None:
        """One step, from the gradient of the loss by matrix @ weight."""

    def catch_up(self, step: AdamWStep) -> None:
        """Apply skipped updates, before all rows of the weight are read."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AdamW(AdamWState, SparseOptimizer):
    """AdamW of every row in every step."""

    def step(self, matrix: Adjacency, grad_out: GradOut, step: AdamWStep) -> None:
        backend(grad_out.device).spmm_adamw(self, matrix.T, grad_out, step)


@dataclass(frozen=True, eq=False, kw_only=True)
class LazyAdamW(AdamWState, SparseOptimizer):
    """AdamW of the rows that get a gradient in a batch.

    A row that was skipped for k steps has its moments and its weights decayed k times
    in its next step, as AdamW would have done. What is lost are the k small updates
    along its old first moment.
    """

    last_step: Int[Tensor, " rows"]
    """The last step that was applied to each row."""

    @staticmethod
    def initial_state(weight: Float[Tensor, "rows runs width"]) -> dict[str, Tensor]:
        last_step = torch.zeros(len(weight), dtype=torch.int64, device=weight.device)
        return {**AdamWState.initial_state(weight), "last_step": last_step}

    def step(self, matrix: Adjacency, grad_out: GradOut, step: AdamWStep) -> None:
        ids, grad = touched_rows_gradient(matrix, grad_out)
        self._decay_skipped_steps(ids, step.step - 1, step)
        exp_avg = self.exp_avg[ids].lerp_(grad, 1 - BETA1)
        exp_avg_sq = self.exp_avg_sq[ids].mul_(BETA2)
        exp_avg_sq.addcmul_(grad, grad, value=1 - BETA2)
        self.exp_avg[ids], self.exp_avg_sq[ids] = exp_avg, exp_avg_sq
        correction1, correction2 = step.bias_corrections
        denominator = exp_avg_sq.mul_(correction2).sqrt_().add_(ADAM_EPS)
        step_size = step.lr[:, None] * correction1
        decay_factor = 1 - (step.lr * step.weight_decay)[:, None]
        self.weight[ids] = (
            self.weight[ids]
            .mul_(decay_factor)
            .sub_(exp_avg.div_(denominator).mul_(step_size))
        )
        self.last_step[ids] = step.step
        sync_bf16(self, ids)

    def catch_up(self, step: AdamWStep) -> None:
        all_ids = torch.arange(len(self.weight), device=self.weight.device)
        for ids in all_ids.split(2**18):
            self._decay_skipped_steps(ids, step.step, step)
            sync_bf16(self, ids)

    def _decay_skipped_steps(
        self, ids: Ids, last: Int[Tensor, 1], step: AdamWStep
    ) -> None:
        """Decay rows once for each step that they were skipped."""
        skipped = (last - self.last_step[ids]).clamp(min=0)[:, None, None]
        decay_factor = 1 - (step.lr * step.weight_decay)[:, None]
        self.weight[ids] *= decay_factor**skipped
        self.exp_avg[ids] *= BETA1**skipped
        self.exp_avg_sq[ids] *= BETA2**skipped
        self.last_step[ids] = last


@dataclass(frozen=True, eq=False, kw_only=True)
class RowwiseAdagrad(SparseOptimizer):
    """Row-wise Adagrad: each row divides its lr by the size of its past gradients.

    One value per row and run instead of two per weight (Duchi et al. 2011).
    """

    squares: Float[Tensor, "rows runs 1"]
    """The sum over steps of the mean square of a row's gradient."""

    @staticmethod
    def initial_state(weight: Float[Tensor, "rows runs width"]) -> dict[str, Tensor]:
        return {"squares": torch.zeros_like(weight[:, :, :1])}

    def step(self, matrix: Adjacency, grad_out: GradOut, step: AdamWStep) -> None:
        ids, grad = touched_rows_gradient(matrix, grad_out)
        squares = self.squares[ids] + grad.square().mean(-1, keepdim=True)
        self.squares[ids] = squares
        decay_factor = 1 - (step.lr * step.weight_decay)[:, None]
        update = grad.div_(squares.sqrt() + ADAM_EPS).mul_(step.lr[:, None])
        self.weight[ids] = self.weight[ids].mul_(decay_factor).sub_(update)
        sync_bf16(self, ids)


def touched_rows_gradient(
    matrix: Adjacency, grad_out: GradOut
) -> tuple[Ids, Float[Tensor, "touched runs width"]]:
    """The rows of a weight with entries in the matrix, and their gradient."""
    ids, columns = nonempty_columns(matrix)
    spmm = backend(grad_out.device).spmm
    grad = spmm(Adjacency(*columns), grad_out.flatten(1).float())
    return ids, grad.unflatten(1, grad_out.shape[1:])


def sync_bf16(state: WeightState, ids: Ids) -> None:
    """Copy rows of the weight to the bfloat16 copy."""
    if state.weight_bf16 is not None:
        state.weight_bf16[ids] = state.weight[ids].to(state.weight_bf16.dtype)


SPARSE_OPTIMIZERS: dict[str, type[SparseOptimizer]] = {
    "adamw": AdamW,
    "lazy": LazyAdamW,
    "adagrad": RowwiseAdagrad,
}
