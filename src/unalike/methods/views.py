"""VIEWS: leak-free columns per node from graph and labels, then trees or an MLP."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unalike.data.adjacency import Adjacency, NewRows
from unalike.data.graph import Graph
from unalike.data.task import Solution, Task
from unalike.errors import UserError, lookup
from unalike.methods.base import Method, RowWiseMethod, with_directions
from unalike.options import options_of, with_options
from unalike.parallel import one_thread_each
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.checkpoint import Checkpoint
from unalike.views import BASES, OPTIONAL_VIEWS, VIEWS
from unalike.views.cross_fit import (
    Base,
    BaseFit,
    CrossFit,
    Fit,
    LogProbabilities,
    Models,
    cross_fit,
)
from unalike.views.fitted import FittedViews
from unalike.views.folds import NO_FOLDS, Folds, Hidden
from unalike.views.heads import BaseScores, fit_trees
from unalike.views.linear_heads import LinearScores, fit_linear_heads
from unalike.views.logistic import LogisticBase
from unalike.views.mlp_head import fit_mlp
from unalike.views.problem import HeadFit, Problem, mean_valid
from unalike.views.rows import NodeRows
from unalike.views.table import SharedViews, ViewTable

AUTO = ("auto",)
LOGISTIC = "logistic"
"""The base of logistic regressions on edges, features and both."""
MAX_LOGISTIC_NODES = 50_000
"""Nodes up to which the logistic regressions are a base, else LINK, which is faster."""
BASE_LR = {"link": 0.1}
"""Learning rates of bases."""
PATIENCE = 10
"""Epochs without a better score of the held-out train nodes before a base stops."""
DEEP_GCN, DEEP_PATIENCE = "deep-gcn", 200
"""A base for labels that depend on nodes many steps away, and its early stopping."""
DEEP_OPTIONS: dict[str, object] = {
    "layers": 12,
    "hidden": 128,
    "dropout": 0.2,
    "residual": True,
    "weight_decay": 0.0,
    "epochs": 2000,
}
MAX_ROUNDS = 3
MANY_SEARCH_ROWS, SEARCHED_TASKS = 2_000, 3
"""Train rows above which groups of views are chosen by a few tasks, and how many."""
DROPPED: tuple[tuple[str, ...], ...] = (
    (),
    ("bases",),
    ("spectrum",),
    ("spectrum", "bases"),
    ("features", "spectrum", "bases"),
    ("labels", "duplicates"),
    ("structure", "spectrum", "labels", "duplicates"),
)
"""Groups that are left out in each set of views that `--views auto` tries."""

MAX_MEMBERS = 4
"""Heads in a mean of heads."""

Head = Literal["auto", "mlp", "trees", "linear", "mean"]


@dataclass(frozen=True, eq=False)
class BestRound:
    """The best round of all tasks, with the tables that its heads were fitted on."""

    valid: float
    head: str
    number: int
    fits: list[HeadFit]
    tables: list[ViewTable]


@dataclass(frozen=True, kw_only=True)
class Views(Method):
    """A classifier of rows of views, cross-fitted; no message passing in training.

    Views are columns made from the graph and the labels of train nodes: structure,
    features and labels along walks, duplicates, spectrum, log probabilities of base
    methods. No row depends on its own label. Groups of views, head and rounds are
    chosen by the mean validation score over the splits, unless they are given.
    """

    paper: ClassVar[str] = "unalike, docs/views.md"
    suits: ClassVar[str] = (
        "a label can be read off counts of labels, duplicates or structure nearby"
    )
    uses_edge_weights = False
    family: ClassVar[str] = "row-wise"
    row_wise: ClassVar[bool] = True

    views: tuple[str, ...] = AUTO
    """Groups of views: structure, features, spectrum, labels, duplicates,
    near-duplicates, bases; auto: the best of a few sets by validation."""
    head: Head = "auto"
    """The classifier of rows: an MLP, gradient-boosted trees, linear: logistic
    regression on features, mean: of MLP and trees; auto: the best of these and of the
    bases by validation, or the best mean of several."""
    rounds: int = 0
    """1: known labels alone; 2 or 3: more rounds, with probabilities where labels are
    unknown; 0: rounds are added while validation improves."""
    bases: tuple[str, ...] = AUTO
    """Methods whose cross-fitted log probabilities are views, or logistic: logistic
    regressions on edges, features and both, or deep-gcn: gcn with 12 residual layers;
    auto: logistic, on large graphs link, and with features linkx."""
    hops: int = 2
    """Steps of walks, up to 3."""
    folds: int = 5
    """Folds of cross-fitting."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.rounds <= MAX_ROUNDS:
            raise UserError(f"--rounds is {self.rounds}; 0 to 3 are possible.")
        if self.rounds >= self.folds:
            raise UserError(
                f"--rounds {self.rounds} needs more folds than --folds {self.folds}."
            )
        if not 1 <= self.hops <= 3:
            raise UserError(f"--hops is {self.hops}; 1, 2 or 3 are possible.")
        for name in self.views:
            if name not in AUTO:
                lookup(dict.fromkeys(VIEWS), name, "group of views")

    @property
    def splits_are_independent(self) -> bool:
        chosen_over_splits = "auto" in self.views or self.head in ("auto", "linear")
        return self.rounds > 0 and not chosen_over_splits

    def solve_all(
        self,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = NO_PROGRESS,
        checkpoint: Checkpoint | None = None,
    ) -> list[Solution]:
        problems = self.problems(tasks, device, progress)
        groups = self.choose_groups(problems, progress)
        for problem in problems:
            problem.keep(groups)
        best = self.best_round(problems, device, progress)
        progress.stage(
            f"chosen: {', '.join(groups)}; {best.head}, round {best.number} "
            f"(valid {100 * best.valid:.2f})",
            None,
            "",
        )
        return [
            Solution(
                fit.scores,
                weights=problem.fitted(fit, table, best.number).to_tensors()
                if problem.task.keep
                else None,
            )
            for problem, fit, table in zip(
                problems, best.fits, best.tables, strict=True
            )
        ]

    def prepare(self, graph: Graph) -> Graph:
        """The graph with rows of both directions if it is directed."""
        return with_directions(graph, "both") if graph.directed else graph

    def fitted(self, weights: Mapping[str, Tensor]) -> FittedViews:
        """The model in the weights of a solution."""
        fitted = FittedViews.from_tensors(weights, self.hops)
        heads = [head.name for head in fitted.heads if isinstance(head, BaseScores)]
        bases = [
            base
            for base in self.bases_of(fitted.task.graph, "cpu", NO_PROGRESS)
            if BASES in fitted.groups or any(map(base.makes, heads))
        ]
        return replace(fitted, bases=bases)

    def problems(
        self,
        tasks: Sequence[Task],
        device: torch.device | str,
        progress: Progress,
    ) -> list[Problem]:
        """The views of the first round of all tasks, with bases fitted in one stack."""
        graph = tasks[0].graph
        bases = self.bases_of(graph, device, progress)
        groups = [name for name in VIEWS if name not in OPTIONAL_VIEWS]
        if "auto" not in self.views:
            groups = [name for name in VIEWS if name in self.views]
        progress.stage("views of the graph", None, "")
        shared = SharedViews.of(graph, groups, self.hops, device)
        shared = replace(shared, bases=bases)
        fits = [
            CrossFit(Folds.draw(graph.num_nodes, self.folds, task.seed))
            for task in tasks
        ]
        cross_fit(bases, tasks, fits, 1)
        progress.stage("views of labels", len(tasks), "splits")
        problems = []
        for task, fit in zip(tasks, fits, strict=True):
            problems.append(Problem.of(shared, task, fit))
            progress.advance(1)
        return problems

    def bases_of(
        self, graph: Graph, device: torch.device | str, progress: Progress
    ) -> list[Base]:
        """The base methods, with both directions of directed edges."""
        if "auto" not in self.views and BASES not in self.views:
            return []
        names = self.bases
        if "auto" in names:
            large = graph.num_nodes > MAX_LOGISTIC_NODES
            names = ("link",) if large else (LOGISTIC,)
            names += ("linkx",) * bool(graph.num_features)
        return [
            LogisticBase(graph)
            if name == LOGISTIC
            else MethodBase.of(name, graph, device, progress)
            for name in names
        ]

    def choose_groups(
        self, problems: Sequence[Problem], progress: Progress
    ) -> tuple[str, ...]:
        """The set of groups whose quick trees score unseen nodes best over tasks."""
        groups = tuple(problems[0].table.groups)
        if "auto" not in self.views or len(groups) == 1:
            return groups
        sets = [tuple(g for g in groups if g not in dropped) for dropped in DROPPED]
        sets = [chosen for chosen in dict.fromkeys(sets) if chosen]
        many = len(problems[0].task.train) > MANY_SEARCH_ROWS
        searched = problems[:SEARCHED_TASKS] if many else problems
        scores: dict[tuple[str, ...], float] = {}
        for chosen in sets:
            progress.stage(f"trying {', '.join(chosen)}", len(searched), "splits")
            values = []
            score = methodcaller("quick_score", chosen)
            for value in one_thread_each(score, searched):
                values.append(value)
                progress.advance(1, f"score {100 * value:.2f}")
            scores[chosen] = sum(values) / len(values)
        return max(scores, key=lambda chosen: scores[chosen])

    def best_round(
        self,
        problems: Sequence[Problem],
        device: torch.device | str,
        progress: Progress,
    ) -> BestRound:
        """The head and round with the best mean validation score.

        Without a given number of rounds, another one follows while it is better.
        """
        best: BestRound | None = None
        fitted_once = self.linear_heads(problems) | self.base_heads(problems)
        for number in range(1, (self.rounds or min(MAX_ROUNDS, self.folds - 1)) + 1):
            if number > 1:
                self.add_round(problems, number, progress)
            if self.rounds not in (0, number):
                continue
            progress.stage(f"round {number}: fitting heads", None, "")
            fits = self.fit_heads(problems, fitted_once, device)
            valid = {name: mean_valid(problems, own) for name, own in fits.items()}
            name = max(valid, key=lambda name: valid[name])
            text = ", ".join(f"{key} {100 * v:.2f}" for key, v in valid.items())
            progress.stage(f"round {number}: valid {text}", None, "")
            if best is not None and valid[name] <= best.valid:
                break
            tables = [problem.table for problem in problems]
            best = BestRound(valid[name], name, number, fits[name], tables)
        assert best is not None
        return best

    def add_round(
        self, problems: Sequence[Problem], number: int, progress: Progress
    ) -> None:
        """Add the guesses of a round, with the fits of bases that they need."""
        if BASES in problems[0].table.groups:
            tasks = [problem.task for problem in problems]
            bases = problems[0].shared.bases
            cross_fit(bases, tasks, [problem.bases for problem in problems], number)
        if number < self.rounds:
            return
        progress.stage(f"round {number}: guesses", len(problems), "splits")
        for _ in one_thread_each(methodcaller("add_guesses", number), problems):
            progress.advance(1)

    def fit_heads(
        self,
        problems: Sequence[Problem],
        fitted_once: Mapping[str, list[HeadFit]],
        device: torch.device | str,
    ) -> dict[str, list[HeadFit]]:
        """The fits of each head for all tasks, and of the best means of several."""
        fit_on_device = methodcaller("fit", partial(fit_mlp, device=device))
        kinds = {
            "mlp": map(fit_on_device, problems),
            "trees": one_thread_each(methodcaller("fit", fit_trees), problems),
        }
        used = (name for name in kinds if self.head in (name, "mean", "auto"))
        fits = {name: list(kinds[name]) for name in used}
        if self.head == "mean":
            return {mean_name(fits): means_of(list(fits.values()))}
        fits |= fitted_once
        return fits if self.head != "auto" else fits | best_means(problems, fits)

    def linear_heads(self, problems: Sequence[Problem]) -> dict[str, list[HeadFit]]:
        """The linear head of each kind of rows with the best penalty by validation."""
        graph = problems[0].task.graph
        if self.head not in ("auto", "linear"):
            return {}
        if self.head == "linear" and not graph.num_features:
            raise UserError("--head linear needs features, which this graph lacks.")
        if self.head == "auto" and graph.num_nodes > MAX_LOGISTIC_NODES:
            return {}
        tasks = [problem.task for problem in problems]
        chosen = {}
        for kind, by_ridge in fit_linear_heads(graph, tasks).items():
            fits = [
                [
                    HeadFit.of_columns(
                        LinearScores(kind, fit.weights or {}), fit.log_probabilities
                    )
                    for fit in own
                ]
                for own in by_ridge.values()
            ]
            chosen[f"linear {kind}"] = max(
                fits, key=lambda own: mean_valid(problems, own)
            )
        return chosen

    def base_heads(self, problems: Sequence[Problem]) -> dict[str, list[HeadFit]]:
        """Each base, fitted on all train labels and stopped early by validation."""
        if self.head != "auto":
            return {}
        fits = [problem.bases for problem in problems]
        tasks = [problem.task for problem in problems]
        cross_fit(problems[0].shared.bases, tasks, fits, 0)
        return {
            f"base {view}": [
                HeadFit.of_columns(BaseScores(view), fit.by_view[view][NO_FOLDS])
                for fit in fits
            ]
            for view in fits[0].by_view
        }


@dataclass(frozen=True, kw_only=True)
class ViewsTrees(Views):
    """VIEWS with gradient-boosted trees: LightGBM if installed, else scikit-learn's."""

    suits: ClassVar[str] = "views suit, and trees are preferred to an MLP"

    head: Head = "trees"


def best_means(
    problems: Sequence[Problem], fits: Mapping[str, list[HeadFit]]
) -> dict[str, list[HeadFit]]:
    """Means of heads: the best head, then each time the one that improves it most."""
    means: dict[str, list[HeadFit]] = {}
    members: list[str] = []
    valid = -1.0
    while len(members) < min(MAX_MEMBERS, len(fits)):
        tried = {
            name: means_of([fits[member] for member in (*members, name)])
            for name in fits
            if name not in members
        }
        values = {name: mean_valid(problems, own) for name, own in tried.items()}
        name = max(values, key=lambda name: values[name])
        if values[name] <= valid:
            break
        valid, members = values[name], [*members, name]
        if len(members) > 1:
            means[mean_name(members)] = tried[name]
    return means


def means_of(fits: Sequence[list[HeadFit]]) -> list[HeadFit]:
    """The mean of several heads for each task."""
    return [HeadFit.mean(own) for own in zip(*fits, strict=True)]


def mean_name(members: Collection[str]) -> str:
    """The name of a mean of heads in the progress."""
    return "mean of " + ", ".join(members)


@dataclass(frozen=True, eq=False)
class MethodBase:
    """A method as a base, trained in stacks.

    Early stopping is by train nodes that are held out for it, so that labels of valid
    nodes change no model. Every row is computed, so that a model does not depend on the
    train nodes of other models in its stack.
    """

    name: str
    method: Method
    graph: Graph
    device: torch.device | str
    progress: Progress

    @classmethod
    def of(
        cls, name: str, graph: Graph, device: torch.device | str, progress: Progress
    ) -> MethodBase:
        """A method with large steps, few units and both directions of edges."""
        from unalike.methods import METHODS

        kind = lookup(METHODS, "gcn" if name == DEEP_GCN else name, "method")
        wanted: dict[str, object] = {"lr": BASE_LR.get(name, 0.01), "hidden": 16}
        if graph.directed:
            wanted["directions"] = "both"
        has = options_of(kind(), omit=False)
        options = {key: value for key, value in wanted.items() if key in has}
        if name == DEEP_GCN:
            options |= DEEP_OPTIONS
        method = with_options(kind(), options, name)
        return cls(name, method, graph, device, progress)

    def makes(self, view: str) -> bool:
        return view == self.name

    def __call__(self, fits: Sequence[Fit]) -> dict[str, list[BaseFit]]:
        patience = DEEP_PATIENCE if self.name == DEEP_GCN else PATIENCE
        tasks = []
        for each in fits:
            train, stop = each.task.train, each.task.valid
            if each.hidden:
                train, stop = each.folds.without(train, each.hidden)
            task = replace(each.task, train=train, valid=stop)
            tasks.append(replace(task, patience=patience, every_row=True))
        # Only the weights of a method that scores a node by its own row are of use.
        row_wise = isinstance(self.method, RowWiseMethod)
        solutions = self.method.solve_all(
            tasks, device=self.device, progress=self.progress
        )
        return {
            self.name: [
                BaseFit(one.logits.log_softmax(1), one.weights if row_wise else None)
                for one in solutions
            ]
        }

    def score_rows(
        self, rows: NodeRows, models: Models
    ) -> dict[str, dict[Hidden, LogProbabilities]]:
        if self.name not in models:
            raise UserError(
                f"This model of views cannot score new nodes: its base {self.name} "
                "does not score a node by its own row alone."
            )
        assert isinstance(self.method, RowWiseMethod)
        out, *incoming = (
            with_self_loops(rows.matrices[step], rows)
            for step in "oia"
            if step in rows.matrices
        )
        edges = NewRows.of(out, *(incoming or [out]), directed=self.graph.directed)
        batch = self.method.prepare(
            Graph.build(
                edges,
                features=rows.features,
                num_classes=self.graph.num_classes,
                directed=self.graph.directed,
            )
        )
        network, scores = self.method.network_on_meta(batch), {}
        for hidden, weights in models[self.name].items():
            network.load_state_dict(dict(weights), assign=True)
            with torch.no_grad():
                scores[hidden] = network.eval()(batch).float().log_softmax(1)
        return {self.name: scores}


def with_self_loops(edges: Adjacency, rows: NodeRows) -> Adjacency:
    """Edges of rows with the self-loops of those that are known nodes."""
    if rows.ids is None or not bool(rows.loops.any()):
        return edges
    own = rows.loops.nonzero()[:, 0]
    return edges.union(Adjacency.from_edges(own, rows.ids[own], shape=edges.shape))
