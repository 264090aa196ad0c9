"""Advise: measure a graph, try methods on it, and rank them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean
from typing import Any

import torch

from unalike.advice.cost import Cost, cost
from unalike.advice.deadline import Deadline
from unalike.advice.draws import draws
from unalike.advice.effort import effort
from unalike.advice.probes import (
    APART,
    AVERAGED,
    BLENDED,
    MIXED,
    OF_DIRECTED,
    QUESTIONS,
    Probe,
    suiting,
)
from unalike.advice.reasons import reason, verdicts
from unalike.advice.sample import Sample, sample
from unalike.advice.trial import SHORT, Trial, attempt
from unalike.datasets import Source
from unalike.errors import UserError
from unalike.experiments.exam import check_classes
from unalike.graph import Graph
from unalike.measures import measure
from unalike.progress import SILENT, Progress
from unalike.split import Split, random_splits

MEASURES = (
    "edge_homophily",
    "class_homophily",
    "adjusted_homophily",
    "label_informativeness",
)
"""Measures that one pass over the edges gives."""
FINALISTS, WITHIN = 6, 4.0
"""How many of the best are trained to the end, if so many points apart at most."""
TURN = 0.35
"""Share of the time left that one contender may take."""
BRIEFLY = 0.6
"""Share of the time that is for brief trials; the rest is for the finalists."""


@dataclass(frozen=True)
class Recommendation:
    """A method, what to expect of it, and why."""

    trial: Trial
    cost: Cost
    reason: str

    @property
    def words(self) -> str:
        """The method as the command line has it, in batches where it must be."""
        return f"{self.trial.probe.words} {self.cost.batching}".rstrip()


@dataclass(frozen=True)
class Advice:
    """Methods, the best first, with what was found out about the graph."""

    ranking: list[Recommendation]
    verdicts: list[str]
    measures: dict[str, Any]
    """Of the graph, by the labels of train and valid nodes."""
    constant: float
    """The percentage of always giving the most frequent answer."""
    judges: int
    """Nodes that judged, each draw counted."""
    sampled: int | None
    """Nodes of the sample; None where methods were tried on the whole graph."""
    left_out: list[str]
    """Methods for which the time was too short."""


def advise(
    source: Source,
    *,
    split: int = 0,
    seconds: float = 60.0,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress = SILENT,
) -> Advice:
    """Which method to try on a graph, found out with train and valid labels alone."""
    graph = source.prepared(progress=progress)
    check_classes(source.metric, graph, source.name)
    most = effort(device)
    part = sample(graph, divided(source, graph, split, seed), seed, most)
    dealt = draws(part, source.metric, seed, most)
    progress.stage("measuring", None, "")
    found = measure(shown(part), only=MEASURES)
    attempted = partial(attempt, draws=dealt, device=device)
    trials, left_out = tried(part.graph, attempted, Deadline.within(seconds), progress)
    constant = mean(draw.constant for draw in dealt)
    return Advice(
        ranking=[
            Recommendation(
                trial,
                cost(trial, part.graph, graph, device),
                reason(trial, trials),
            )
            for trial in trials
        ],
        verdicts=verdicts(trials, constant, features=graph.num_features > 0),
        measures=found,
        constant=constant,
        judges=sum(len(draw.judges) for draw in dealt),
        sampled=None if part.whole else part.graph.num_nodes,
        left_out=left_out,
    )


def divided(source: Source, graph: Graph, number: int, seed: int) -> Split:
    """A split of the source, or one that is drawn where it has none."""
    known = source.splits() or random_splits(graph.labels, count=1, seed=seed)
    if number not in range(len(known)):
        raise UserError(
            f"{source.name} has no split {number}; they run from 0 to {len(known) - 1}."
        )
    split = known[number]
    train, valid = (i[graph.labels[i] >= 0] for i in (split.train, split.valid))
    return Split(train, valid, split.test)


def shown(part: Sample) -> Graph:
    """The graph of a sample with the labels of train and valid nodes alone."""
    labels = torch.full_like(part.graph.labels, -1)
    for ids in (part.split.train, part.split.valid):
        labels[ids] = part.graph.labels[ids]
    return replace(part.graph, labels=labels)


def tried(
    graph: Graph,
    attempted: Callable[..., Trial | None],
    deadline: Deadline,
    progress: Progress,
) -> tuple[list[Trial], list[str]]:
    """Trials, the best first, and what there was no time for.

    Every question is asked, then contenders briefly, then the best to the end.
    """
    every = [*QUESTIONS, *OF_DIRECTED, *APART, *BLENDED]
    progress.stage("trying methods", len(suiting(every, graph)) + FINALISTS, "trials")
    found: dict[Probe, Trial] = {}

    def ask(probe: Probe, epochs: int | None, until: Deadline) -> None:
        progress.advance(1, probe.words)
        trial = attempted(probe, epochs=epochs, deadline=until)
        found.update({} if trial is None else {probe: trial})

    briefly = deadline.part(BRIEFLY)
    for probe in suiting(QUESTIONS, graph):
        ask(probe, SHORT, deadline)
    contenders = suiting(in_order(found, directed=graph.directed), graph)
    for probe in contenders:
        ask(probe, SHORT, briefly.part(TURN))
    for trial in finalists(ranked(found.values())):
        ask(trial.probe, None, deadline)
    if not found:
        raise UserError("The time is too short to try anything; give more seconds.")
    asked = [*suiting(QUESTIONS, graph), *contenders]
    return ranked(found.values()), [p.words for p in asked if p not in found]


def in_order(found: Mapping[Probe, Trial], *, directed: bool) -> list[Probe]:
    """The contenders, those first that are akin to what did well."""
    both_ways = OF_DIRECTED if directed else []
    if {AVERAGED, MIXED} <= set(found) and found[AVERAGED].lead(found[MIXED]) > 0:
        return [*BLENDED, *APART, *both_ways]
    return [*both_ways, *APART, *BLENDED]


def ranked(trials: Iterable[Trial]) -> list[Trial]:
    """The best first."""
    return sorted(trials, key=lambda trial: -trial.expected)


def finalists(trials: Sequence[Trial]) -> list[Trial]:
    """The best of those that were cut short."""
    near = [trial for trial in trials if trials[0].lead(trial) <= WITHIN]
    return [trial for trial in near if trial.epochs is not None][:FINALISTS]
