"""Recommend methods for a graph: measure it, try candidates, rank, explain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean
from typing import Any

import torch

from unalike.advice.candidates import (
    BASELINES,
    DIRECTED,
    GCN_CANDIDATE,
    LINKX_CANDIDATE,
    MIXED_EGO,
    SEPARATE_EGO,
    Candidate,
    applicable,
)
from unalike.advice.cost import Cost, cost
from unalike.advice.trials import (
    SHORT_EPOCHS,
    Deadline,
    SampledGraph,
    Trial,
    limits_for,
    make_folds,
    run_trial,
    sample_graph,
)
from unalike.data.graph import Graph
from unalike.data.split import Split, random_splits
from unalike.datasets import GraphSource
from unalike.errors import UserError
from unalike.experiments.evaluation import check_num_classes
from unalike.measures import measure
from unalike.methods import name_of
from unalike.methods.base import Method
from unalike.methods.label_propagation import LabelPropagation
from unalike.progress import NO_PROGRESS, Progress

# Reasons: why a method is recommended, and what a graph's edges are worth.


MIN_GAIN = 1.0
"""Points below which a lead counts for nothing."""

DESCRIPTIONS: dict[str, str] = {
    "mlp": "looks at features alone",
    "label-propagation": "spreads known labels along edges; nothing is trained",
    "correct-and-smooth": "looks at features, then lets errors and labels spread",
    "link": "looks at whom a node is joined to, and at nothing else",
    "sgc": "averages features over neighbours, then a linear map",
    "gcn": "averages features over neighbours, layer by layer",
    "gat": "averages features over neighbours that it weighs",
    "gcn-jk": "averages over neighbours and keeps every layer's view",
    "gat-jk": "weighs neighbours and keeps every layer's view",
    "appnp": "looks at features, then averages the answers over neighbours",
    "h2gcn": "keeps a node, its neighbours and theirs apart",
    "mixhop": "looks at several distances side by side",
    "gpr-gnn": "learns how much each distance counts",
    "gcnii": "averages over neighbours but never forgets a node's own features",
    "link-concat": "looks at whom a node is joined to and at features together",
    "linkx": "looks at whom a node is joined to and at features apart, then mixes",
}
"""Every method in a clause."""

CandidateFilter = Callable[[Candidate], bool]


def best(trials: Sequence[Trial], sight: CandidateFilter) -> Trial | None:
    """The best trial of the probes that see something."""
    seen = [trial for trial in trials if sight(trial.probe)]
    return max(seen, key=lambda trial: trial.mean_score, default=None)


def features_alone(probe: Candidate) -> bool:
    """Does it see features and no edges?"""
    return not probe.uses_edges


def edges_alone(probe: Candidate) -> bool:
    """Does it see edges and no features?"""
    return not probe.uses_features


def reason(trial: Trial, trials: Sequence[Trial]) -> str:
    """What the method of a trial does, and what that gained."""
    told = [describe_method(trial.probe.method)]
    for sight, whose in ((features_alone, "features"), (edges_alone, "edges")):
        rival = best(trials, sight)
        if rival is not None and not sight(trial.probe):
            told.append(f"{trial.advantage_over(rival):+.1f} against {whose} alone")
    return "; ".join(told)


def describe_method(method: Method) -> str:
    """A method in a clause; its paper, where nobody has written one."""
    return DESCRIPTIONS.get(name_of(method), method.paper)


def graph_findings(
    trials: Sequence[Trial], constant: float, *, features: bool = True
) -> list[str]:
    """What the trials say about a graph with or without features, in sentences."""
    top = best(trials, lambda probe: True)
    assert top is not None
    if top.mean_score - constant < MIN_GAIN:
        return [
            f"Nothing that was tried beats the most frequent answer ({constant:.1f}): "
            "neither features nor edges tell the class."
        ]
    return [
        *gain_finding(trials, features_alone, "edges", "features"),
        *(gain_finding(trials, edges_alone, "features", "edges") if features else ()),
        *hop_finding(trials),
    ]


def gain_finding(
    trials: Sequence[Trial], without: CandidateFilter, extra: str, base: str
) -> list[str]:
    """Does something add to what is known without it?"""
    alone = best(trials, without)
    joint = best(trials, lambda probe: not without(probe))
    if alone is None or joint is None:
        return []
    lead = joint.advantage_over(alone)
    told = f"{alone.probe.command_words} {alone.mean_score:.1f}, {joint.probe.command_words}"
    if lead < MIN_GAIN and not any(trial.probe.sees_both for trial in trials):
        # Each alone says nothing of what they are worth together.
        return []
    if lead < MIN_GAIN:
        return [
            f"The {extra} add nothing to the {base} that could be seen "
            f"({told} {joint.mean_score:.1f})."
        ]
    return [
        f"The {extra} add {lead:.1f} points to the {base} "
        f"({told} {joint.mean_score:.1f})."
    ]


def hop_finding(trials: Sequence[Trial]) -> list[str]:
    """Do labels agree one step away, or two?"""
    spread = {
        trial.probe.method.hops: trial
        for trial in trials
        if isinstance(trial.probe.method, LabelPropagation)
    }
    if not {1, 2} <= set(spread):
        return []
    near, far = spread[1], spread[2]
    if abs(far.advantage_over(near)) < MIN_GAIN:
        return []
    nearer = "one step" if near.advantage_over(far) > 0 else "two steps"
    return [
        f"Labels agree better {nearer} away: spreading them gives "
        f"{near.mean_score:.1f} by one hop and {far.mean_score:.1f} by two."
    ]


# Advise: measure a graph, try methods on it, and rank them.


MEASURES = (
    "edge_homophily",
    "class_homophily",
    "adjusted_homophily",
    "label_informativeness",
)
"""Measures that one pass over the edges gives."""
FINALISTS, FINALIST_MARGIN = 6, 4.0
"""How many of the best are trained to the end, if so many points apart at most."""
CANDIDATE_TIME_SHARE = 0.35
"""Share of the time left that one contender may take."""
SHORT_TRIAL_SHARE = 0.6
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
        return f"{self.trial.probe.command_words} {self.cost.batching}".rstrip()


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
    source: GraphSource,
    *,
    split: int = 0,
    seconds: float = 60.0,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress = NO_PROGRESS,
) -> Advice:
    """Which method to try on a graph, found out with train and valid labels alone."""
    graph = source.prepared(progress=progress)
    check_num_classes(source.metric, graph, source.name)
    most = limits_for(device)
    part = sample_graph(graph, load_split(source, graph, split, seed), seed, most)
    dealt = make_folds(part, source.metric, seed, most)
    progress.stage("measuring", None, "")
    found = measure(with_known_labels(part), only=MEASURES)
    attempted = partial(run_trial, draws=dealt, device=device)
    trials, left_out = run_trials(
        part.graph, attempted, Deadline.within(seconds), progress
    )
    constant = mean(draw.majority_baseline for draw in dealt)
    return Advice(
        ranking=[
            Recommendation(
                trial,
                cost(trial, part.graph, graph, device),
                reason(trial, trials),
            )
            for trial in trials
        ],
        verdicts=graph_findings(trials, constant, features=graph.num_features > 0),
        measures=found,
        constant=constant,
        judges=sum(len(draw.score_ids) for draw in dealt),
        sampled=None if part.whole else part.graph.num_nodes,
        left_out=left_out,
    )


def load_split(source: GraphSource, graph: Graph, number: int, seed: int) -> Split:
    """A split of the source, or one that is drawn where it has none."""
    known = source.splits() or random_splits(graph.labels, count=1, seed=seed)
    if number not in range(len(known)):
        raise UserError(
            f"{source.name} has no split {number}; they run from 0 to {len(known) - 1}."
        )
    split = known[number]
    train, valid = (i[graph.labels[i] >= 0] for i in (split.train, split.valid))
    return Split(train, valid, split.test)


def with_known_labels(part: SampledGraph) -> Graph:
    """The graph of a sample with the labels of train and valid nodes alone."""
    labels = torch.full_like(part.graph.labels, -1)
    for ids in (part.split.train, part.split.valid):
        labels[ids] = part.graph.labels[ids]
    return replace(part.graph, labels=labels)


def run_trials(
    graph: Graph,
    attempted: Callable[..., Trial | None],
    deadline: Deadline,
    progress: Progress,
) -> tuple[list[Trial], list[str]]:
    """Trials, the best first, and what there was no time for.

    Every question is asked, then contenders briefly, then the best to the end.
    """
    every = [*BASELINES, *DIRECTED, *SEPARATE_EGO, *MIXED_EGO]
    progress.stage(
        "trying methods", len(applicable(every, graph)) + FINALISTS, "trials"
    )
    found: dict[Candidate, Trial] = {}

    def ask(probe: Candidate, epochs: int | None, until: Deadline) -> None:
        progress.advance(1, probe.command_words)
        trial = attempted(probe, epochs=epochs, deadline=until)
        found.update({} if trial is None else {probe: trial})

    briefly = deadline.fraction(SHORT_TRIAL_SHARE)
    for probe in applicable(BASELINES, graph):
        ask(probe, SHORT_EPOCHS, deadline)
    contenders = applicable(order_candidates(found, directed=graph.directed), graph)
    for probe in contenders:
        ask(probe, SHORT_EPOCHS, briefly.fraction(CANDIDATE_TIME_SHARE))
    for trial in select_finalists(ranked(found.values())):
        ask(trial.probe, None, deadline)
    if not found:
        raise UserError("The time is too short to try anything; give more seconds.")
    asked = [*applicable(BASELINES, graph), *contenders]
    return ranked(found.values()), [p.command_words for p in asked if p not in found]


def order_candidates(
    found: Mapping[Candidate, Trial], *, directed: bool
) -> list[Candidate]:
    """The contenders, those first that are akin to what did well."""
    both_ways = DIRECTED if directed else []
    if {GCN_CANDIDATE, LINKX_CANDIDATE} <= set(found) and found[
        GCN_CANDIDATE
    ].advantage_over(found[LINKX_CANDIDATE]) > 0:
        return [*MIXED_EGO, *SEPARATE_EGO, *both_ways]
    return [*both_ways, *SEPARATE_EGO, *MIXED_EGO]


def ranked(trials: Iterable[Trial]) -> list[Trial]:
    """The best first."""
    return sorted(trials, key=lambda trial: -trial.mean_score)


def select_finalists(trials: Sequence[Trial]) -> list[Trial]:
    """The best of those that were cut short."""
    near = [
        trial for trial in trials if trials[0].advantage_over(trial) <= FINALIST_MARGIN
    ]
    return [trial for trial in near if trial.epochs is not None][:FINALISTS]
