"""Inductive evaluation: train without test nodes and their edges, then score them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.split import Split
from unalike.data.task import Solution, Task
from unalike.errors import UserError
from unalike.inference.model import Model, SavedMethod, fit_model
from unalike.methods import name_of
from unalike.methods.base import Method
from unalike.nn.sparse_linear import sparse_layers
from unalike.progress import NO_PROGRESS, Progress


def solve_inductively(
    pairs: Sequence[tuple[Method, Task]],
    splits: Sequence[Split],
    *,
    device: str = "cpu",
    progress: Progress = NO_PROGRESS,
) -> list[Solution]:
    """Solve each task on the graph without the test nodes of its split.

    A method that scores a node by its own row sees edges of test nodes to other nodes
    only, as it does of new nodes. Message passing scores the whole graph at the end.
    """
    solutions = []
    for (method, task), split in zip(pairs, splits, strict=True):
        check_inductive(method)
        known = torch.ones(task.graph.num_nodes, dtype=torch.bool)
        known[split.test] = False
        model, solution = fit_model(
            method, without_nodes(task, known), device=device, progress=progress
        )
        check_no_node_weights(model)
        scores = scores_of_all(model, task, known, solution)
        solutions.append(Solution(scores, curve=solution.curve))
    return solutions


def without_nodes(task: Task, known: Tensor) -> Task:
    """The task on the subgraph of the known nodes, which are numbered anew."""
    ids = known.nonzero()[:, 0]
    number = known.cumsum(0) - 1
    graph = replace(task.graph.subgraph(ids), node_ids=None)
    return replace(
        task, graph=graph, train=number[task.train], valid=number[task.valid]
    )


def scores_of_all(
    model: Model, task: Task, known: Tensor, solution: Solution
) -> Float[Tensor, "nodes classes"]:
    """The scores of all nodes by a model of the known ones."""
    method, graph = model.method, task.graph
    if not scores_new_rows(model):
        return model.score_rows(method.prepare(graph))
    ids, new = known.nonzero()[:, 0], (~known).nonzero()[:, 0]
    edges = _between(graph.adjacency, new, ids)
    entering = _between(graph.adjacency.T, new, ids) if graph.directed else None
    rows, _ = model.new_nodes(edges, graph.features[new], entering=entering)
    scores = torch.empty(graph.num_nodes, solution.scores.shape[1])
    scores[ids] = solution.scores.float()
    scores[new] = model.score_rows(rows)
    return scores


def scores_new_rows(model: Model) -> bool:
    """Whether the scores of a node depend on its own row alone."""
    return model.method.row_wise and not model.method.needs_full_graph


def _between(adjacency: Adjacency, rows: Ids, columns: Ids) -> Adjacency:
    weighted = adjacency.values is not None
    matrix = adjacency.select_rows(rows).to_scipy()[:, columns.numpy()]
    return Adjacency.from_scipy(matrix, weighted=weighted)


def check_inductive(method: Method) -> None:
    """Raise a `UserError` if a method has no model that could score other nodes."""
    if not isinstance(method, SavedMethod):
        raise UserError(
            f"{name_of(method)} cannot be evaluated with --inductive: it has no model "
            "apart from the graph."
        )


def check_no_node_weights(model: Model) -> None:
    """Raise a `UserError` for a weight of each node in what sees the whole graph."""
    layers = sparse_layers(model.network).values()
    if not scores_new_rows(model) and any(one.source != "features" for one in layers):
        raise UserError(
            f"{name_of(model.method)} cannot be evaluated with --inductive: it has a "
            "weight for each node of its graph."
        )
