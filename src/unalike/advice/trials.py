"""Short trials: sampled graph, folds of known labels, deadline, scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

import torch

from unalike.advice.candidates import Candidate
from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.data.split import Split
from unalike.data.task import Solution, Task
from unalike.errors import UserError
from unalike.options import options_of, with_options

# Deadline: a listener that ends work which takes too long.


MIN_SECONDS_TO_EXTRAPOLATE = 1.0
"""Seconds of a stage after which it can be told how long it will take."""


class OutOfTimeError(Exception):
    """The time that was given for some work is over, or will be."""


@dataclass
class Deadline:
    """A silent listener to work that has to end at a moment of `perf_counter`.

    Work whose pace shows that it will not be done by then is ended early.
    """

    end: float
    began: float = 0.0
    """When the present stage began."""
    total: float | None = None
    done: float = 0.0

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """A deadline so many seconds from now."""
        return cls(time.perf_counter() + seconds)

    @property
    def left(self) -> float:
        """Seconds until then; below 0 when it is over."""
        return self.end - time.perf_counter()

    def fraction(self, share: float) -> Deadline:
        """A deadline that comes when a share of the time left is over."""
        return Deadline.within(share * self.left)

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.began, self.total, self.done = time.perf_counter(), total, 0.0
        self._check()

    def advance(self, amount: int | float, note: str = "") -> None:
        self.done += amount
        self._check()

    def _check(self) -> None:
        now = time.perf_counter()
        spent = now - self.began
        foreseen = now
        if self.total and self.done and spent > MIN_SECONDS_TO_EXTRAPOLATE:
            foreseen = self.began + spent * self.total / self.done
        if foreseen > self.end:
            raise OutOfTimeError


# Effort: how much of a graph is tried, and how often, by what computes.


@dataclass(frozen=True)
class TrialLimits:
    """What keeps trials short."""

    entries: int
    """Entries of an adjacency past which it is sampled, or drawn from fewer times."""
    nodes: int
    """Nodes past which a graph is sampled."""
    draws: int
    """Draws at most."""


EFFORTS = {
    "cpu": TrialLimits(entries=2**20, nodes=2**16, draws=6),
    "cuda": TrialLimits(entries=2**25, nodes=2**20, draws=20),
}


def limits_for(device: str) -> TrialLimits:
    """What a device can try in a minute."""
    return EFFORTS[torch.device(device).type]


# Sample: a part of a graph that is small enough to try methods on.


@dataclass(frozen=True, eq=False)
class SampledGraph:
    """A graph to try methods on, and which of its nodes to judge them by."""

    graph: Graph
    split: Split
    whole: bool
    """Is it the graph itself?"""


def sample_graph(
    graph: Graph, split: Split, seed: int, most: TrialLimits
) -> SampledGraph:
    """The graph itself, or some nodes with all their neighbours, if it is large.

    Rows of the drawn nodes are whole, those of their neighbours need not be: methods
    are judged by drawn nodes only.
    """
    if graph.num_nodes <= most.nodes and graph.adjacency.nnz <= most.entries:
        return SampledGraph(graph, split, whole=True)
    chance = torch.Generator().manual_seed(seed)
    known = torch.cat([split.train, split.valid])
    known = known[torch.randperm(len(known), generator=chance)]
    drawn, nodes = draw_with_neighbours(graph, known, chance, most)
    cut = replace(graph.subgraph(nodes), node_ids=None)
    while cut.adjacency.nnz > most.entries and len(drawn) > 1:
        half = drawn[: len(drawn) // 2]
        drawn, nodes = draw_with_neighbours(graph, half, chance, most)
        cut = replace(graph.subgraph(nodes), node_ids=None)
    train = positions_in(split.train, nodes, graph.num_nodes)
    judges = drawn[torch.isin(drawn, split.valid)]
    valid = positions_in(judges, nodes, graph.num_nodes)
    none = torch.empty(0, dtype=torch.int64)
    return SampledGraph(cut, Split(train, valid, none), whole=False)


def draw_with_neighbours(
    graph: Graph, known: Ids, chance: torch.Generator, most: TrialLimits
) -> tuple[Ids, Ids]:
    """The first nodes whose neighbours are not too many, and both together."""
    entries = graph.adjacency.degrees[known].cumsum(0)
    fitting = int((entries <= most.entries // 4).sum())
    drawn = known[: max(1, min(fitting, most.nodes // 4))]
    around = graph.adjacency.select_rows(drawn).indices.long().unique()
    others = around[~torch.isin(around, drawn)]
    spare = torch.randperm(len(others), generator=chance)[: most.nodes - len(drawn)]
    return drawn, torch.cat([drawn, others[spare]]).sort().values


def positions_in(ids: Ids, nodes: Ids, num_nodes: int) -> Ids:
    """Where those of `ids` that are among ascending `nodes` stand there."""
    there = torch.full((num_nodes,), -1)
    there[nodes] = torch.arange(len(nodes))
    return there[ids][there[ids] >= 0]


# Draws: known labels, dealt out to learn from, to stop by and to judge by.


HALF = 0.5
"""Share of the valid nodes that judge, while the others choose the epoch."""
USUAL = 0.3
"""Share of the known labels that are valid, where none is."""
SCORING_NODES = 4000
"""Nodes that should judge in all."""
MIN_LABELS = 10
"""Known labels below which nothing can be judged."""


@dataclass(frozen=True, eq=False)
class Fold:
    """A task that hides its judges, and the answers they judge by."""

    task: Task
    score_ids: Ids
    score_labels: Ids

    def grade(self, solution: Solution) -> float:
        """The percentage that a solution reaches with the judges."""
        metric, weight = self.task.metric, torch.ones(len(self.score_ids))
        return 100 * float(
            metric.score(solution.scores[self.score_ids], self.score_labels, weight)
        )

    @property
    def majority_baseline(self) -> float:
        """The percentage of always giving the most frequent answer."""
        labels = self.task.graph.labels
        usual = labels[self.task.train].bincount(minlength=self.task.graph.num_classes)
        return self.grade(Solution(usual.float().expand(len(labels), -1)))


def make_folds(
    sample: SampledGraph, metric: Metric, seed: int, most: TrialLimits
) -> list[Fold]:
    """The split's own division first, then others of the same nodes, two draws each.

    Half of the valid nodes choose the epoch and the other half judge, then they change
    places. Labels of test nodes are never looked at.
    """
    graph, split = sample.graph, sample.split
    known = torch.cat([split.train, split.valid])
    if len(known) < MIN_LABELS:
        raise UserError(
            f"There are {len(known)} labels to learn and judge by; "
            f"advice needs at least {MIN_LABELS}."
        )
    chance = torch.Generator().manual_seed(seed)
    share = len(split.valid) / len(known) or USUAL
    wanted = num_folds(graph, share * len(known), most)
    found: list[Fold] = []
    while len(found) < wanted:
        own = not found and len(split.valid)
        train, valid = split.train, split.valid
        if not own:
            train, valid = stratified_split(graph, known, share, chance)
        halves = stratified_split(graph, valid, HALF, chance)
        for stop, judges in (halves, halves[::-1]):
            task = Task.from_split(graph, Split(train, stop, judges), metric, seed)
            found.append(Fold(task, judges, graph.labels[judges]))
        seed += 1
    return [
        draw for draw in found[:wanted] if is_gradable(draw)
    ] or raise_too_few_labels(metric)


def num_folds(graph: Graph, num_valid: float, most: TrialLimits) -> int:
    """How many draws it takes to judge by enough nodes, in bounded time."""
    by_nodes = int(SCORING_NODES / max(1.0, HALF * num_valid))
    by_work = most.entries // max(1, graph.adjacency.nnz)
    return max(1, min(by_nodes, by_work, most.draws))


def stratified_split(
    graph: Graph, ids: Ids, share: float, chance: torch.Generator
) -> tuple[Ids, Ids]:
    """Two parts of some nodes; the second has about this share of every class."""
    ids = ids[torch.randperm(len(ids), generator=chance)]
    labels = graph.labels[ids]
    ids = ids[labels.argsort(stable=True)]
    sizes = labels.bincount(minlength=graph.num_classes)
    place = torch.arange(len(ids)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    wanted = (share * sizes).round().clamp(min=1).where(sizes > 1, 0)
    second = place < wanted.repeat_interleave(sizes)
    return ids[~second], ids[second]


def is_gradable(draw: Fold) -> bool:
    """Can its judges, and those who choose the epoch, grade anything?"""
    task, labels = draw.task, draw.task.graph.labels
    flat = torch.zeros(len(task.valid), task.graph.num_classes)
    chosen = task.metric.score(flat, labels[task.valid], torch.ones(len(task.valid)))
    return bool(chosen.isfinite()) and draw.majority_baseline == draw.majority_baseline


def raise_too_few_labels(metric: Metric) -> list[Fold]:
    """Say that the known labels do not suffice."""
    raise UserError(
        f"The known labels are too few of a class to judge by {metric.name}; "
        "label more nodes, or judge by another metric."
    )


# Trial: what a probe reached on the draws of a graph.


SHORT_EPOCHS = 100
"""Epochs of a first trial."""


@dataclass(frozen=True)
class Trial:
    """The grades of a probe, one for each draw, in percent."""

    probe: Candidate
    grades: tuple[float, ...]
    seconds: float
    """Of one draw, with the epochs of the trial."""
    epochs: int | None
    """None where nothing is trained."""

    @property
    def mean_score(self) -> float:
        """The mean grade."""
        return mean(self.grades)

    @property
    def std(self) -> float | None:
        """The deviation between draws."""
        return stdev(self.grades) if len(self.grades) > 1 else None

    @property
    def two_standard_errors(self) -> float | None:
        """Points that the mean may be off by: two standard errors."""
        spread = self.std
        return None if spread is None else 2 * spread / len(self.grades) ** 0.5

    def advantage_over(self, other: Trial) -> float:
        """By how many points it is better on average."""
        return self.mean_score - other.mean_score


def run_trial(
    probe: Candidate,
    draws: Sequence[Fold],
    *,
    epochs: int | None,
    deadline: Deadline,
    device: str = "cpu",
) -> Trial | None:
    """Try a probe, with its usual epochs or fewer; None if the time is too short."""
    if deadline.left < 0:
        return None
    usual = options_of(probe.method).get("epochs")
    wanted = usual if epochs is None or usual is None else min(epochs, usual)
    method = probe.method
    if wanted != usual:
        method = with_options(method, {"epochs": wanted}, probe.command_words)
    began = time.perf_counter()
    try:
        solutions = method.solve_all(
            [draw.task for draw in draws], device=device, progress=deadline
        )
    except OutOfTimeError:
        return None
    each = (time.perf_counter() - began) / len(draws)
    grades = tuple(
        draw.grade(solution) for draw, solution in zip(draws, solutions, strict=True)
    )
    return Trial(probe, grades, each, wanted)
