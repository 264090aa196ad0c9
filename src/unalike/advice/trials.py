"""Short trials: sampled graph, folds of known labels, deadline, scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from statistics import mean, stdev

import torch

from unalike.advice.candidates import Candidate
from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.data.split import Split, stratified_holdout
from unalike.data.task import Solution, Task
from unalike.errors import UserError
from unalike.experiments.evaluation import has_score, percent_score
from unalike.options import options_of, with_options

SHORT_EPOCHS = 100


@dataclass(frozen=True)
class Trial:
    """The scores of a candidate on all folds, in percent."""

    candidate: Candidate
    scores: tuple[float, ...]
    seconds: float
    """Time of one fold."""
    epochs: int | None
    """None if the method is not trained."""

    @property
    def mean_score(self) -> float:
        return mean(self.scores)

    @property
    def std(self) -> float | None:
        return stdev(self.scores) if len(self.scores) > 1 else None

    @property
    def two_standard_errors(self) -> float | None:
        return None if self.std is None else 2 * self.std / len(self.scores) ** 0.5

    def advantage_over(self, other: Trial) -> float:
        """The difference of the mean scores, in points."""
        return self.mean_score - other.mean_score


def run_trial(
    candidate: Candidate,
    folds: Sequence[Fold],
    *,
    epochs: int | None,
    deadline: Deadline,
    device: str = "cpu",
) -> Trial | None:
    """Train a candidate; None if the time is up or training diverges on a fold."""
    if deadline.left < 0:
        return None
    method = candidate.method
    default = options_of(method).get("epochs")
    limited = default if epochs is None or default is None else min(epochs, default)
    if limited != default:
        method = with_options(method, {"epochs": limited}, candidate.command_words)
    start = time.perf_counter()
    try:
        solutions = method.solve_all(
            [fold.task for fold in folds], device=device, progress=deadline
        )
    except OutOfTimeError:
        return None
    if any(solution.error for solution in solutions):
        return None
    seconds = (time.perf_counter() - start) / len(folds)
    scores = tuple(
        fold.score(solution) for fold, solution in zip(folds, solutions, strict=True)
    )
    return Trial(candidate, scores, seconds, limited)


MIN_SECONDS_TO_EXTRAPOLATE = 1.0
"""Seconds of a stage before its total time is extrapolated."""


class OutOfTimeError(Exception):
    """Work that is not done before its deadline, or will not be."""


@dataclass
class Deadline:
    """A progress listener that raises `OutOfTimeError` at a time of `perf_counter`.

    It raises early if the pace of a stage shows that it will not be done in time.
    """

    end: float
    start: float = 0.0
    total: float | None = None
    done: float = 0.0

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        return cls(time.perf_counter() + seconds)

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.end - time.perf_counter()

    def fraction(self, fraction: float) -> Deadline:
        """An earlier deadline after a fraction of the time left."""
        return Deadline.within(fraction * self.left)

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.start, self.total, self.done = time.perf_counter(), total, 0.0
        self._check()

    def advance(self, amount: int | float, note: str = "") -> None:
        self.done += amount
        self._check()

    def _check(self) -> None:
        now = time.perf_counter()
        expected_end, elapsed = now, now - self.start
        if self.total and self.done and elapsed > MIN_SECONDS_TO_EXTRAPOLATE:
            expected_end = self.start + elapsed * self.total / self.done
        if expected_end > self.end:
            raise OutOfTimeError


@dataclass(frozen=True)
class TrialLimits:
    """Limits of size that make trials short."""

    max_nnz: int
    """Maximum nnz of an adjacency; a larger one is sampled or gets fewer folds."""
    max_nodes: int
    """Maximum nodes; a larger graph is sampled."""
    max_folds: int


LIMITS = {
    "cpu": TrialLimits(max_nnz=2**20, max_nodes=2**16, max_folds=6),
    "cuda": TrialLimits(max_nnz=2**25, max_nodes=2**20, max_folds=20),
}
"""Limits for about a minute, by type of device."""


@dataclass(frozen=True, eq=False)
class SampledGraph:
    """A graph for trials, with the split of its known labels."""

    graph: Graph
    split: Split
    is_full: bool


def sample_graph(
    graph: Graph, split: Split, seed: int, limits: TrialLimits
) -> SampledGraph:
    """The graph itself if it is small, else some nodes with all their neighbours.

    Sampled nodes have complete rows, their neighbours may not: methods are scored on
    sampled nodes only.
    """
    if graph.num_nodes <= limits.max_nodes and graph.adjacency.nnz <= limits.max_nnz:
        return SampledGraph(graph, split, is_full=True)
    generator = torch.Generator().manual_seed(seed)
    sampled = torch.cat([split.train, split.valid])
    sampled = sampled[torch.randperm(len(sampled), generator=generator)]
    while True:
        sampled, nodes = sample_with_neighbours(graph, sampled, generator, limits)
        subgraph = replace(graph.subgraph(nodes), node_ids=None)
        if subgraph.adjacency.nnz <= limits.max_nnz or len(sampled) == 1:
            break
        sampled = sampled[: len(sampled) // 2]
    train = positions_in(split.train, nodes)
    valid = positions_in(sampled[torch.isin(sampled, split.valid)], nodes)
    no_test = torch.empty(0, dtype=torch.int64)
    return SampledGraph(subgraph, Split(train, valid, no_test), is_full=False)


def sample_with_neighbours(
    graph: Graph, candidates: Ids, generator: torch.Generator, limits: TrialLimits
) -> tuple[Ids, Ids]:
    """The first candidates within the limits, and these with their neighbours."""
    nnz = graph.adjacency.degrees[candidates].cumsum(0)
    num_fitting = int((nnz <= limits.max_nnz // 4).sum())
    sampled = candidates[: max(1, min(num_fitting, limits.max_nodes // 4))]
    neighbours = graph.adjacency.select_rows(sampled).indices.long().unique()
    others = neighbours[~torch.isin(neighbours, sampled)]
    order = torch.randperm(len(others), generator=generator)
    others = others[order[: limits.max_nodes - len(sampled)]]
    return sampled, torch.cat([sampled, others]).sort().values


def positions_in(ids: Ids, nodes: Ids) -> Ids:
    """The positions in ascending `nodes` of those `ids` that are among them."""
    return torch.searchsorted(nodes, ids[torch.isin(ids, nodes)])


SCORING_FRACTION = 0.5
"""Fraction of the valid nodes that are scored; the others select the epoch."""
DEFAULT_VALID_FRACTION = 0.3
"""Fraction of the known labels that are valid, if the split has no valid nodes."""
SCORING_NODES = 4000
"""Target number of scored nodes over all folds."""
MIN_LABELS = 10


@dataclass(frozen=True, eq=False)
class Fold:
    """A task, and the nodes whose hidden labels score its solution."""

    task: Task
    score_ids: Ids
    score_labels: Ids

    def score(self, solution: Solution) -> float:
        scores = solution.scores[self.score_ids]
        return percent_score(self.task.metric, scores, self.score_labels)

    @property
    def majority_baseline(self) -> float:
        """The score of the most frequent train class, in percent."""
        labels = self.task.graph.labels
        num_classes = self.task.graph.num_classes
        counts = labels[self.task.train].bincount(minlength=num_classes)
        return self.score(Solution(counts.float().expand(len(labels), -1)))

    @property
    def metric_is_defined(self) -> bool:
        """Whether the metric is defined on the valid and on the scored nodes."""
        task, graph = self.task, self.task.graph
        has_valid = has_score(task.metric, graph.labels[task.valid], graph.num_classes)
        return has_valid and not isnan(self.majority_baseline)


def make_folds(
    sample: SampledGraph, metric: Metric, seed: int, limits: TrialLimits
) -> list[Fold]:
    """Folds of the known labels: first of the split itself, then of random ones.

    Half of the valid nodes select the epoch and the other half are scored, then the
    other way round. Labels of test nodes are never used.
    """
    graph, split = sample.graph, sample.split
    labelled = torch.cat([split.train, split.valid])
    if len(labelled) < MIN_LABELS:
        raise UserError(
            f"There are {len(labelled)} labels to train and score by; "
            f"advice needs at least {MIN_LABELS}."
        )
    generator = torch.Generator().manual_seed(seed)
    fraction = len(split.valid) / len(labelled) or DEFAULT_VALID_FRACTION
    count = num_folds(graph, fraction * len(labelled), limits)
    folds: list[Fold] = []
    while len(folds) < count:
        train, valid = split.train, split.valid
        if folds or not len(valid):
            train, valid = stratified_holdout(
                labelled, graph.labels, fraction, generator
            )
        halves = stratified_holdout(valid, graph.labels, SCORING_FRACTION, generator)
        for stop_ids, score_ids in (halves, halves[::-1]):
            fold = Split(train, stop_ids, score_ids)
            task = Task.from_split(graph, fold, metric, seed)
            folds.append(Fold(task, score_ids, graph.labels[score_ids]))
        seed += 1
    scored = [fold for fold in folds[:count] if fold.metric_is_defined]
    if not scored:
        raise UserError(
            f"Too few labels of a class are known to score by {metric.name}; "
            "label more nodes, or choose another metric."
        )
    return scored


def num_folds(graph: Graph, num_valid: float, limits: TrialLimits) -> int:
    """The number of folds that scores enough nodes in limited time."""
    by_nodes = int(SCORING_NODES / max(1.0, SCORING_FRACTION * num_valid))
    by_work = limits.max_nnz // max(1, graph.adjacency.nnz)
    return max(1, min(by_nodes, by_work, limits.max_folds))
