"""Logistic regressions on sparse rows, many at once, by L-BFGS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import no_type_check

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Features, Graph
from unalike.data.numba_utils import njit
from unalike.data.task import Task
from unalike.views.cross_fit import BaseFit, Fit, LogProbabilities, Models
from unalike.views.folds import Hidden
from unalike.views.rows import NodeRows, unit_rows
from unalike.views.walks import inverse, without_loops

RIDGE, WEAK_RIDGE, STRONG_RIDGE = 0.1, 0.01, 1.0
"""Half of it times the squared weights is added to the sum of losses; the weak one for
rows of features alone, the strong one for features of one and two steps."""
FEATURES, PROPAGATED = FEATURE_ROWS = ("features", "propagated")
TWO_STEPS = "two-steps"
MAX_PROPAGATED = 20_000_000
"""Entries of features and their means over neighbours, at most."""
STEPS = 40
"""Passes over the rows: gradients, those of rejected steps too."""
MEMORY = 6
"""Pairs of steps and gradients that L-BFGS keeps."""
ARMIJO = 1e-4
BATCH_NUMBERS = 1 << 26
"""Numbers that one batch of regressions may hold."""

VIEW = "logistic-"
"""The views of this base begin so, followed by the kind of rows."""
WEIGHT, BIAS = "weight", "bias"

Weights = Float[Tensor, "columns classes fits"]
"""Those of a batch of fits, which are last: sums over all else are fast."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """Edges without self-loops by direction, and features, as sparse rows."""

    edges: Mapping[str, Adjacency]
    features: Adjacency

    @classmethod
    def of(cls, graph: Graph, rows: NodeRows | None = None) -> Inputs:
        """Those of all nodes of a graph, or of other rows over it."""
        steps = {"out": "o", "in": "i"} if graph.directed else {"edges": "a"}
        if rows is not None:
            edges = {name: rows.matrices[step] for name, step in steps.items()}
            return cls(edges, as_sparse(rows.features))
        out = without_loops(graph.adjacency)
        edges = {"out": out, "in": out.T} if graph.directed else {"edges": out}
        return cls(edges, as_sparse(graph.features))

    @cached_property
    def near(self) -> Adjacency:
        """The edges in either direction."""
        return reduce(Adjacency.union, self.edges.values())


def input_rows(graph: Graph, rows: NodeRows | None = None) -> dict[str, Adjacency]:
    """Rows to regress on: edges by direction, features, all of them side by side, and
    features beside their means over neighbours.

    They are those of all nodes of the graph, or other `rows` over it, whose columns are
    scaled alike.
    """
    known, own = Inputs.of(graph), Inputs.of(graph, rows)
    scaled = {
        name: unit_rows(scale_columns(own.edges[name], each))
        for name, each in known.edges.items()
    }
    if graph.num_features:
        scaled[FEATURES] = unit_rows(scale_columns(own.features, known.features))
    if len(scaled) > 1:
        scaled["all"] = reduce(Adjacency.hstack, scaled.values())
    if graph.num_features and has_few_means(known.near, known.features):
        means = neighbour_means(known.near, known.features)
        own_means = means
        if rows is not None:
            own_means = neighbour_means(own.near, known.features)
        propagated = unit_rows(scale_columns(own_means, means))
        scaled[PROPAGATED] = scaled[FEATURES].hstack(propagated)
    far = head_rows(graph, rows)
    return scaled | {name: far[name] for name in far if name == TWO_STEPS}


def head_rows(graph: Graph, rows: NodeRows | None = None) -> dict[str, Adjacency]:
    """Rows of features for linear heads: own ones, and beside them their means over
    neighbours of one step, two steps, and each direction of one step.

    All parts have unit length. Rows are those of all nodes, or others over the graph.
    """
    if not graph.num_features:
        return {}
    known, own = Inputs.of(graph), Inputs.of(graph, rows)
    kinds = {"own": unit_rows(own.features)}
    if not has_few_means(known.near, known.features):
        return kinds
    own_means = neighbour_means(own.near, known.features)
    kinds["one-step"] = kinds["own"].hstack(unit_rows(own_means))
    if graph.directed:
        sides = [neighbour_means(step, known.features) for step in own.edges.values()]
        kinds["directions"] = reduce(
            Adjacency.hstack, [kinds["own"], *map(unit_rows, sides)]
        )
    means = own_means
    if rows is not None:
        means = neighbour_means(known.near, known.features)
    if has_few_means(known.near, means):
        far = unit_rows(neighbour_means(own.near, means))
        kinds[TWO_STEPS] = kinds["one-step"].hstack(far)
    return kinds


def has_few_means(edges: Adjacency, features: Adjacency) -> bool:
    """Whether the means of features over neighbours have few enough entries."""
    limit = float((edges @ features.degrees.float()[:, None]).sum())
    return limit <= MAX_PROPAGATED


def neighbour_means(edges: Adjacency, features: Adjacency) -> Adjacency:
    """The mean features of the neighbours of each node, as sparse rows."""
    share = scipy.sparse.diags_array(inverse(edges).numpy())
    product = share @ edges.to_scipy().astype(np.float32) @ features.to_scipy()
    return Adjacency.from_scipy(scipy.sparse.csr_array(product))


def as_sparse(features: Features) -> Adjacency:
    """Features as sparse rows."""
    if isinstance(features, Adjacency):
        return features
    return Adjacency.from_dense(features.float())


def scale_columns(rows: Adjacency, known: Adjacency) -> Adjacency:
    """Columns divided by the fourth root of their number of entries in `known`."""
    count = known.indices.long().bincount(minlength=rows.num_cols).clamp(min=1)
    values = torch.ones(rows.nnz) if rows.values is None else rows.values
    scale = count.float() ** -0.25
    return Adjacency(
        rows.indptr, rows.indices, rows.num_cols, values * scale[rows.indices.long()]
    )


@dataclass(frozen=True, eq=False)
class LogisticBase:
    """Logistic regressions on edges, features, and both, as a base of views."""

    graph: Graph

    @cached_property
    def rows(self) -> Mapping[str, Adjacency]:
        return input_rows(self.graph)

    def makes(self, view: str) -> bool:
        return view.startswith(VIEW)

    def __call__(self, fits: Sequence[Fit]) -> dict[str, list[BaseFit]]:
        return {VIEW + name: self.on(name, fits) for name in self.rows}

    def on(self, name: str, fits: Sequence[Fit]) -> list[BaseFit]:
        """The regressions on one kind of rows."""
        ridge = STRONG_RIDGE if name == TWO_STEPS else RIDGE
        ridge = WEAK_RIDGE if name in FEATURE_ROWS else ridge
        train = [fit.folds.known(fit.task.train, fit.hidden) for fit in fits]
        return fit_rows(self.rows[name], [fit.task for fit in fits], train, ridge)

    def score_rows(
        self, rows: NodeRows, models: Models
    ) -> dict[str, dict[Hidden, LogProbabilities]]:
        inputs = input_rows(self.graph, rows)
        return {
            VIEW + name: {
                hidden: (own @ model[WEIGHT] + model[BIAS]).log_softmax(1)
                for hidden, model in models[VIEW + name].items()
            }
            for name, own in inputs.items()
            if VIEW + name in models
        }


def fit_rows(
    rows: Adjacency, tasks: Sequence[Task], train: Sequence[Ids], ridge: float
) -> list[BaseFit]:
    """Regressions on rows, one per task and its set of train nodes, in batches."""
    classes = tasks[0].graph.num_classes
    per_fit = classes * (rows.num_cols * (2 * MEMORY + 4) + 6 * rows.num_rows)
    size = max(1, BATCH_NUMBERS // per_fit)
    results: list[BaseFit] = []
    for start in range(0, len(tasks), size):
        part = tasks[start : start + size]
        # A task shows the labels of its own split; those of `train` are used.
        labels = torch.stack([task.graph.labels for task in part]).amax(0)
        weights, bias = regress(
            rows, one_hot_rows(labels, classes), train[start : start + size], ridge
        )
        logits = (rows @ weights.flatten(1)).view(-1, *bias.shape) + bias
        log_p = logits.log_softmax(1)
        for number, task in enumerate(part):
            kept = {WEIGHT: weights[..., number], BIAS: bias[:, number]}
            kept = {name: tensor.clone() for name, tensor in kept.items()}
            scores = log_p[..., number].contiguous()
            results.append(BaseFit(scores, kept if task.keep else None))
    return results


def one_hot_rows(
    labels: Int[Tensor, " nodes"], num_classes: int
) -> Float[Tensor, "nodes classes"]:
    """One-hot labels; those of unlabelled nodes are never read."""
    return F.one_hot(labels.clamp(min=0), num_classes).float()


def regress(
    rows: Adjacency,
    one_hot: Float[Tensor, "nodes classes"],
    train: Sequence[Ids],
    ridge: float,
) -> tuple[Weights, Float[Tensor, "classes fits"]]:
    """Weights and biases of least penalised loss, one per set of train nodes.

    All start at 0: a start at another solution would carry labels over that it has
    seen.
    """
    inside = torch.zeros(rows.num_rows, len(train), dtype=torch.bool)
    for number, ids in enumerate(train):
        inside[ids, number] = True
    # All rows, with weight 0 outside: sums are grouped alike whoever is a train node.
    problem = Regression(rows, rows.T, one_hot, inside, ridge)
    start = torch.zeros(rows.num_cols + 1, one_hot.shape[1], len(train))
    solution = minimise(problem, start)
    return solution[:-1], solution[-1]


@dataclass(frozen=True, eq=False)
class Regression:
    """The penalised mean losses of several regressions, and their gradients."""

    rows: Adjacency
    transposed: Adjacency
    one_hot: Float[Tensor, "rows classes"]
    inside: Bool[Tensor, "rows fits"]
    ridge: float

    def __call__(self, x: Weights) -> tuple[Float[Tensor, " fits"], Weights]:
        """The loss of each fit and its gradient; the last row of x are biases."""
        weights = x[:-1]
        logits = (self.rows @ weights.flatten(1)).view(-1, *x.shape[1:]) + x[-1]
        log_p = logits.log_softmax(1)
        count = self.inside.sum(0).clamp(min=1)
        target = self.one_hot[:, :, None]
        share = (self.inside / count)[:, None, :]
        residual = (log_p.exp() - target) * share
        penalty = self.ridge / count
        gradient = torch.empty_like(x)
        product = self.transposed @ residual.flatten(1)
        gradient[:-1] = product.view(weights.shape) + penalty * weights
        gradient[-1] = residual.sum(0)
        loss = -(log_p * target * share).sum((0, 1))
        return loss + penalty / 2 * dot(weights, weights), gradient


@dataclass
class History:
    """The last steps and changes of gradients, by which L-BFGS scales a gradient."""

    pairs: list[tuple[Weights, Weights, Tensor]] = field(default_factory=list)

    def add(self, step: Weights, change: Weights) -> None:
        """Remember a step; a fit that stood still contributes nothing."""
        product = dot(step, change)
        curvature = torch.where(product > 1e-12, 1 / product.clamp(min=1e-12), 0.0)
        self.pairs = [*self.pairs[-MEMORY + 1 :], (step, change, curvature)]

    def direction(self, gradient: Weights) -> Weights:
        """The inverse Hessian times the gradient, by the two-loop recursion."""
        q, factors = gradient.clone(), []
        for step, change, curvature in reversed(self.pairs):
            factor = curvature * dot(step, q)
            q.addcmul_(factor, change, value=-1)
            factors.append(factor)
        scale = torch.ones(gradient.shape[-1])
        for step, change, curvature in self.pairs:
            length = dot(change, change)
            fresh = dot(step, change) / length.clamp(min=1e-30)
            scale = torch.where(curvature > 0, fresh, scale)
        q *= scale
        for (step, change, curvature), factor in zip(
            self.pairs, reversed(factors), strict=True
        ):
            q.addcmul_(factor - curvature * dot(change, q), step)
        return q


def minimise(problem: Regression, x: Weights) -> Weights:
    """L-BFGS with backtracking; each fit has its own length of step."""
    history = History()
    loss, gradient = problem(x)
    size = torch.ones(x.shape[-1])
    direction = -gradient / dot(gradient, gradient).sqrt().clamp(min=1e-12)
    for _ in range(STEPS):
        step = size * direction
        new_loss, new_gradient = problem(x + step)
        enough = new_loss <= loss + ARMIJO * dot(step, gradient)
        moved = enough.float()
        step *= moved
        new_gradient = gradient.lerp(new_gradient, moved)
        history.add(step, new_gradient - gradient)
        x, gradient = x + step, new_gradient
        loss = torch.where(enough, new_loss, loss)
        direction = -history.direction(gradient)
        size = torch.where(enough, 1.0, size / 4)
    return x


def dot(a: Weights, b: Weights) -> Float[Tensor, " fits"]:
    """The inner product of each fit, in float64: its rounding would steer the steps."""
    sums = np.zeros(a[0].numel())
    _add_products(sums, a.flatten(1).numpy(), b.flatten(1).numpy())
    return torch.from_numpy(sums).view(a.shape[1:]).sum(0).float()


@no_type_check
@njit()
def _add_products(sums, a, b):
    for row in range(len(a)):
        for column in range(len(sums)):
            sums[column] += np.float64(a[row, column]) * np.float64(b[row, column])
