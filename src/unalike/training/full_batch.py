"""Full-batch epoch: one gradient step on the train rows, then validation."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.training.cuda_graph import GraphedFunction
from unalike.training.masks import RowPlan
from unalike.training.stack import StackedProducts
from unalike.training.state import State
from unalike.training.step import (
    compute_gradients,
    inference_rows,
    optimizer_step,
    predict_into,
)


@dataclass(eq=False)
class FullBatchEpochs:
    """Full-batch epochs of a stack.

    The sparse products that evaluate one epoch are those that the step of the next
    one needs. On a GPU an epoch is captured as a CUDA graph.
    """

    state: State
    plan: RowPlan
    metric: Metric
    graph: Graph
    """All nodes, for the scores at the end."""
    capturable: bool = True
    """Can an epoch be captured as a CUDA graph?"""
    products: StackedProducts = field(init=False)
    progress_note = ""

    def __post_init__(self) -> None:
        self.products = self.state.stack.sparse_products(self.plan.rows)
        single_gpu = self.plan.loss_weight.is_cuda and self.state.stack.world.size == 1
        capture = self.capturable and single_gpu
        self._run = GraphedFunction(self._epoch) if capture else self._epoch

    def run_epoch(self) -> None:
        """Train and evaluate one more epoch."""
        self._run()
        self.state.epoch += 1

    def score(self) -> Float[Tensor, "runs nodes classes"]:
        """Scores of all nodes by the best weights of each run."""
        state, graph = self.state, self.graph
        batches = (
            inference_rows(state, graph, torch.arange(graph.num_nodes))
            if state.stack.row_wise
            else [self.plan.rows]
        )
        scores = torch.empty(state.stack.num_runs, graph.num_nodes, graph.num_classes)
        return predict_into(state, batches, scores, best=True)

    def _epoch(self) -> None:
        plan, stack = self.plan, self.state.stack
        products = {
            name: product[: plan.train_rows.num_nodes]
            for name, product in self.products.items()
        }
        gradients = compute_gradients(
            stack, plan.train_rows, plan.loss_weight, products, self.metric
        )
        optimizer_step(self.state, gradients)
        self.state.record_loss(gradients.loss)
        stack.sparse_products(plan.rows, out=self.products)
        evaluate(self.state, plan, self.products, self.metric)


@torch.no_grad()
def evaluate(
    state: State, plan: RowPlan, products: StackedProducts, metric: Metric
) -> None:
    """Record the score of each run on its validation rows."""
    stack = state.stack
    products = {
        name: product[len(product) - plan.eval_rows.num_nodes :]
        for name, product in products.items()
    }
    labels, weight = plan.eval_rows.labels, plan.eval_weight
    if plan.per_run is not None:
        products = {
            name: plan.per_run.select(product) for name, product in products.items()
        }
        labels, weight = plan.per_run.labels, plan.per_run.weight
    logits = stack.forward(
        plan.eval_rows, products, stack.params.weight[0], stack.buffers, training=False
    )
    state.record_score(metric.score(logits, labels, weight))
