"""Full-batch epoch, CUDA graph capture, validation."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.training.masks import RowPlan
from unalike.training.stack import Stacked
from unalike.training.state import State
from unalike.training.step import (
    compute_gradients,
    inference_rows,
    optimizer_step,
    predict_into,
)

WARMUP_EPOCHS = 3
"""Epochs that warm a card up before one is recorded."""


@dataclass(eq=False)
class FullBatchEpochs:
    """Epochs of a stack, one after the other.

    The products that the grade of one epoch reads are those the step of the next one
    needs. On a card an epoch is recorded and then played again, so that it takes the
    time of its kernels and not that of launching them.
    """

    state: State
    plan: RowPlan
    metric: Metric
    graph: Graph
    """All nodes, to be scored in the end."""
    capturable: bool = True
    """Can an epoch be captured as a CUDA graph?"""
    sparse_products: Stacked = field(init=False)
    cuda_graph: torch.cuda.CUDAGraph | None = None
    done: int = 0
    progress_note = ""
    """Nothing to add to the notes of an epoch."""

    def __post_init__(self) -> None:
        self.sparse_products = self.state.stack.sparse_products(self.plan.rows)

    def run_epoch(self) -> None:
        """One more epoch."""
        if self.cuda_graph is not None:
            self.cuda_graph.replay()
        elif self.capturable and self._is_alone_on_card:
            self._run_and_capture()
        else:
            self._epoch()
        self.done += 1
        self.state.epoch += 1

    def score(self) -> Float[Tensor, "runs nodes classes"]:
        """Score every node with the best weights of each run."""
        state, graph = self.state, self.graph
        everything = torch.arange(graph.num_nodes)
        alone = state.stack.row_wise
        batches = (
            inference_rows(state, graph, everything) if alone else [self.plan.rows]
        )
        scores = torch.empty(state.stack.num_runs, graph.num_nodes, graph.num_classes)
        return predict_into(state, batches, scores, best=True)

    @property
    def _is_alone_on_card(self) -> bool:
        return self.plan.loss_weight.is_cuda and self.state.stack.world.size == 1

    def _run_and_capture(self) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._epoch()
        torch.cuda.current_stream().wait_stream(side)
        if self.done + 1 >= WARMUP_EPOCHS:
            record = torch.cuda.CUDAGraph()
            with torch.cuda.graph(record):
                self._epoch()
            self.cuda_graph = record

    def _epoch(self) -> None:
        plan = self.plan
        leading = {
            name: product[: plan.train_rows.num_nodes]
            for name, product in self.sparse_products.items()
        }
        stack, weight = self.state.stack, plan.loss_weight
        slopes = compute_gradients(stack, plan.train_rows, weight, leading, self.metric)
        optimizer_step(self.state, slopes)
        self.state.record_loss(slopes.loss)
        stack.sparse_products(plan.rows, out=self.sparse_products)
        evaluate(self.state, plan, self.sparse_products, self.metric)


@torch.no_grad()
def evaluate(state: State, plan: RowPlan, first: Stacked, metric: Metric) -> None:
    """Grade the validation rows."""
    stack = state.stack
    trailing = {
        name: product[len(product) - plan.eval_rows.num_nodes :]
        for name, product in first.items()
    }
    labels, weight = plan.eval_rows.labels, plan.eval_weight
    if plan.per_run is not None:
        trailing = {
            name: plan.per_run.of(product) for name, product in trailing.items()
        }
        labels, weight = plan.per_run.labels, plan.per_run.weight
    scores = stack.forward(
        plan.eval_rows, trailing, stack.params.weight[0], stack.buffers, training=False
    )
    state.record_score(metric.score(scores, labels, weight))
