"""Recommend methods for a graph: measure it, try candidates, rank, estimate costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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
from unalike.advice.trials import (
    LIMITS,
    SHORT_EPOCHS,
    Deadline,
    Trial,
    make_folds,
    run_trial,
    sample_graph,
)
from unalike.data.graph import Graph
from unalike.data.regression import check_has_classes
from unalike.data.split import Split, random_splits
from unalike.data.task import Task
from unalike.datasets import GraphSource
from unalike.datasets.registry import as_source
from unalike.errors import UserError, check_seed
from unalike.experiments.evaluation import check_num_classes, check_split_number
from unalike.measures import measure
from unalike.methods import name_of
from unalike.methods.base import Method, TrainedMethod
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.methods.label_propagation import LabelPropagation
from unalike.options import options_of
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import free_memory
from unalike.training.stack import memory_per_run

MIN_GAIN = 1.0
"""Minimum difference of scores that counts, in points."""

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
    "views": "learns on columns made from structure, features and labels nearby",
    "views-trees": "the same with gradient-boosted trees",
    "linkx": "looks at whom a node is joined to and at features apart, then mixes",
}
"""What each method does, in a clause."""

MEASURES = (
    "edge_homophily",
    "class_homophily",
    "adjusted_homophily",
    "label_informativeness",
)
"""Measures of one pass over the edges."""
FINALISTS, FINALIST_MARGIN = 6, 4.0
"""How many candidates are trained to the end, and their maximum distance in points."""
CANDIDATE_TIME_SHARE = 0.35
"""Fraction of the time left that one candidate may take."""
SHORT_TRIAL_SHARE = 0.6
"""Fraction of the time for short trials; the rest is for the finalists."""


NUMBERS_PER_CLASS = 4
"""Copies of the scores in memory during label propagation."""
IN_BATCHES = {"row-wise": "rows", "message passing": "random-parts"}
"""The batching that needs the least memory, by the family of a method."""


@dataclass(frozen=True)
class Cost:
    """Seconds and memory of one split."""

    seconds: float
    megabytes: float
    batching: str = ""
    """The batching to use if the graph does not fit; empty if it fits."""


@dataclass(frozen=True)
class Recommendation:
    """A method with its trial, its estimated cost, and the reason to use it."""

    trial: Trial
    cost: Cost
    reason: str

    @property
    def words(self) -> str:
        """The method on the command line, with a batching if it needs one."""
        return f"{self.trial.candidate.command_words} {self.cost.batching}".rstrip()


@dataclass(frozen=True, repr=False)
class Advice:
    """Recommended methods, the best first, and what trials say about the graph."""

    ranking: list[Recommendation]
    verdicts: list[str]
    """Sentences about what features and edges add."""
    measures: dict[str, Any]
    """Homophily measures by the labels of train and valid nodes."""
    constant: float
    """The score of the most frequent class, in percent."""
    judges: int
    """Scored nodes over all folds."""
    sampled: int | None
    """Nodes of the sample; None if the trials used the full graph."""
    left_out: list[str]
    """Methods without a trial: the time was up, or training diverged."""

    def __repr__(self) -> str:
        tried = (f"{one.words} {one.trial.mean_score:.1f}" for one in self.ranking)
        return f"Advice({', '.join(tried)})"


def advise(
    source: GraphSource | Graph | str | Path,
    *,
    split: int = 0,
    seconds: float = 60.0,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress = NO_PROGRESS,
) -> Advice:
    """Recommend methods for a graph by trials on train and valid labels alone."""
    check_seed(seed)
    source = as_source(source)
    graph = source.prepared(progress=progress)
    check_has_classes(graph, "Advice")
    check_num_classes(source.metric, graph, source.name)
    limits = LIMITS[torch.device(device).type]
    sample = sample_graph(graph, load_split(source, graph, split, seed), seed, limits)
    folds = make_folds(sample, source.metric, seed, limits)
    progress.stage("measuring", None, "")
    known = Task.from_split(sample.graph, sample.split, source.metric).graph
    measures = measure(known, only=MEASURES)
    try_candidate = partial(run_trial, folds=folds, device=device)
    trials, left_out = run_trials(
        sample.graph, try_candidate, Deadline.within(seconds), progress
    )
    baseline = mean(fold.majority_baseline for fold in folds)
    return Advice(
        ranking=[
            Recommendation(
                trial,
                cost(trial, sample.graph, graph, device),
                reason(trial, trials),
            )
            for trial in trials
        ],
        verdicts=graph_findings(trials, baseline, features=graph.num_features > 0),
        measures=measures,
        constant=baseline,
        judges=sum(len(fold.score_ids) for fold in folds),
        sampled=None if sample.is_full else sample.graph.num_nodes,
        left_out=left_out,
    )


def load_split(source: GraphSource, graph: Graph, number: int, seed: int) -> Split:
    """The labelled nodes of a split; a random split if the source has none."""
    splits = source.splits() or random_splits(graph.labels, count=1, seed=seed)
    check_split_number(number, len(splits), source.name)
    split = splits[number]
    train, valid = (i[graph.labels[i] >= 0] for i in (split.train, split.valid))
    return Split(train, valid, split.test)


def run_trials(
    graph: Graph,
    try_candidate: Callable[..., Trial | None],
    deadline: Deadline,
    progress: Progress,
) -> tuple[list[Trial], list[str]]:
    """Trials, the best first, and the methods without one."""
    every = [*BASELINES, *DIRECTED, *SEPARATE_EGO, *MIXED_EGO]
    progress.stage(
        "trying methods", len(applicable(every, graph)) + FINALISTS, "trials"
    )
    trials: dict[Candidate, Trial] = {}

    def run_one(candidate: Candidate, epochs: int | None, until: Deadline) -> None:
        progress.advance(1, candidate.command_words)
        trial = try_candidate(candidate, epochs=epochs, deadline=until)
        if trial is not None:
            trials[candidate] = trial

    short_deadline = deadline.fraction(SHORT_TRIAL_SHARE)
    baselines = applicable(BASELINES, graph)
    for candidate in baselines:
        run_one(candidate, SHORT_EPOCHS, deadline)
    others = applicable(order_candidates(trials, directed=graph.directed), graph)
    for candidate in others:
        until = short_deadline.fraction(CANDIDATE_TIME_SHARE)
        run_one(candidate, SHORT_EPOCHS, until)
    for trial in select_finalists(ranked(trials.values())):
        run_one(trial.candidate, None, deadline)
    if not trials:
        raise UserError(
            "The time is too short to try anything, or training diverges; give more "
            "seconds, or look for NaN and huge values in the features."
        )
    left_out = [one.command_words for one in (*baselines, *others) if one not in trials]
    return ranked(trials.values()), left_out


def order_candidates(
    trials: Mapping[Candidate, Trial], *, directed: bool
) -> list[Candidate]:
    """The other candidates, first those similar to the better of GCN and LINKX."""
    both_directions = DIRECTED if directed else []
    gcn, linkx = trials.get(GCN_CANDIDATE), trials.get(LINKX_CANDIDATE)
    if gcn and linkx and gcn.advantage_over(linkx) > 0:
        return [*MIXED_EGO, *SEPARATE_EGO, *both_directions]
    return [*both_directions, *SEPARATE_EGO, *MIXED_EGO]


def ranked(trials: Iterable[Trial]) -> list[Trial]:
    """Trials sorted by mean score, the best first."""
    return sorted(trials, key=lambda trial: -trial.mean_score)


def select_finalists(trials: Sequence[Trial]) -> list[Trial]:
    """The best trained methods, which get a trial with all their epochs."""
    near = (one for one in trials if trials[0].advantage_over(one) <= FINALIST_MARGIN)
    return [trial for trial in near if trial.epochs is not None][:FINALISTS]


# Time and memory of training on the full graph


def cost(trial: Trial, sample: Graph, full: Graph, device: str = "cpu") -> Cost:
    """The cost of the default epochs on the full graph, from a trial on a sample."""
    method = trial.candidate.method
    epochs = options_of(method).get("epochs")
    epoch_ratio = epochs / trial.epochs if epochs and trial.epochs else 1.0
    scale = node_ratio = full.num_nodes / max(1, sample.num_nodes)
    if trial.candidate.uses_edges:
        size = full.num_nodes + full.adjacency.nnz
        scale = size / max(1, sample.num_nodes + sample.adjacency.nnz)
    nbytes = full.nbytes + working_bytes(method, sample) * node_ratio
    fits = nbytes < free_memory(torch.device(device))
    return Cost(
        trial.seconds * epoch_ratio * scale,
        nbytes / 2**20,
        "" if fits else IN_BATCHES.get(method.family, ""),
    )


def working_bytes(method: Method, graph: Graph) -> int:
    """The memory of a method besides the graph."""
    if isinstance(method, CorrectAndSmooth):
        return working_bytes(method.base, graph)
    if not isinstance(method, TrainedMethod):
        return 4 * NUMBERS_PER_CLASS * graph.num_nodes * max(1, graph.num_classes)
    prepared = method.prepare(graph)
    network = method.network_on_meta(prepared)
    return memory_per_run(network, prepared, row_wise=method.row_wise)


# Reasons and findings


CandidateFilter = Callable[[Candidate], bool]


def best(trials: Sequence[Trial], accepts: CandidateFilter) -> Trial | None:
    """The best trial of the candidates that a filter accepts."""
    accepted = [trial for trial in trials if accepts(trial.candidate)]
    return max(accepted, key=lambda trial: trial.mean_score, default=None)


ALONE: dict[str, CandidateFilter] = {
    "features": lambda candidate: not candidate.uses_edges,
    "edges": lambda candidate: not candidate.uses_features,
}
"""The candidates that use one input and not the other."""


def reason(trial: Trial, trials: Sequence[Trial]) -> str:
    """What a method does, and its advantage over features alone and edges alone."""
    method = trial.candidate.method
    clauses = [DESCRIPTIONS.get(name_of(method), method.paper)]
    for name, accepts in ALONE.items():
        baseline = best(trials, accepts)
        if baseline is not None and not accepts(trial.candidate):
            advantage = trial.advantage_over(baseline)
            clauses.append(f"{advantage:+.1f} against {name} alone")
    return "; ".join(clauses)


def graph_findings(
    trials: Sequence[Trial], majority_baseline: float, *, features: bool = True
) -> list[str]:
    """Sentences about what the trials show of a graph with or without features."""
    top = best(trials, lambda candidate: True)
    assert top is not None
    if top.mean_score - majority_baseline < MIN_GAIN:
        return [
            "Nothing that was tried beats the most frequent answer "
            f"({majority_baseline:.1f}): neither features nor edges predict the class."
        ]
    return [
        *gain_finding(trials, "edges", "features"),
        *(gain_finding(trials, "features", "edges") if features else ()),
        *hop_finding(trials),
    ]


def gain_finding(trials: Sequence[Trial], extra: str, base: str) -> list[str]:
    """A sentence about how much an input adds to the other one."""
    alone = best(trials, ALONE[base])
    combined = best(trials, lambda candidate: not ALONE[base](candidate))
    if alone is None or combined is None:
        return []
    gain = combined.advantage_over(alone)
    scores = (
        f"{alone.candidate.command_words} {alone.mean_score:.1f}, "
        f"{combined.candidate.command_words} {combined.mean_score:.1f}"
    )
    if gain < MIN_GAIN:
        # Trials of each input alone do not show what both give together.
        if best(trials, lambda one: one.uses_edges and one.uses_features) is None:
            return []
        return [f"The {extra} add nothing to the {base} that could be seen ({scores})."]
    return [f"The {extra} add {gain:.1f} points to the {base} ({scores})."]


def hop_finding(trials: Sequence[Trial]) -> list[str]:
    """A sentence about whether labels agree better over one hop or two."""
    by_hops = {
        trial.candidate.method.hops: trial
        for trial in trials
        if isinstance(trial.candidate.method, LabelPropagation)
    }
    if not {1, 2} <= set(by_hops):
        return []
    one_hop, two_hop = by_hops[1], by_hops[2]
    if abs(two_hop.advantage_over(one_hop)) < MIN_GAIN:
        return []
    better = "one step" if one_hop.advantage_over(two_hop) > 0 else "two steps"
    return [
        f"Labels agree better {better} away: spreading them gives "
        f"{one_hop.mean_score:.1f} by one hop and {two_hop.mean_score:.1f} by two."
    ]
