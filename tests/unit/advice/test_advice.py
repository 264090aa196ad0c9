"""Recommendations use no test labels and work on graphs of every kind."""

from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from graphs import LATER_METHODS, suiting

from unalike import METHODS, Graph, Split, UserError, random_splits
from unalike.advice import advise as advise_in_time
from unalike.advice import recommend, trials
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
from unalike.advice.recommend import DESCRIPTIONS, IN_BATCHES, cost, graph_findings
from unalike.advice.trials import (
    LIMITS,
    Deadline,
    OutOfTimeError,
    Trial,
    make_folds,
    run_trial,
)
from unalike.data.metrics import ACCURACY, METRICS, Metric
from unalike.methods.gcn import GCN
from unalike.methods.label_propagation import LabelPropagation
from unalike.methods.link import LINK
from unalike.methods.linkx import LINKX
from unalike.methods.mlp import MLP
from unalike.methods.views import Views
from unalike.samplers import SAMPLERS
from unalike.training.state import Training

advise = partial(advise_in_time, seconds=3600.0)


@dataclass
class MemorySource:
    """A source over a graph in memory."""

    graph: Graph
    stored_splits: list[Split]
    metric: Metric = ACCURACY
    name: str = "given"

    def load(self):
        return self.graph

    def prepared(self, *, progress=None):
        return self.graph

    def splits(self):
        return self.stored_splits

    def remarks(self):
        return []


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few epochs and folds, and only the baselines."""
    monkeypatch.setattr(recommend, "SHORT_EPOCHS", 20)
    monkeypatch.setitem(LIMITS, "cpu", replace(LIMITS["cpu"], max_folds=2))
    monkeypatch.setattr(recommend, "SEPARATE_EGO", [])
    monkeypatch.setattr(recommend, "MIXED_EGO", [])
    monkeypatch.setattr(recommend, "DIRECTED", [Candidate(LINKX(directions="both"))])
    monkeypatch.setattr(recommend, "FINALISTS", 0)


def source(graph, **others):
    return MemorySource(graph, random_splits(graph.labels, count=1), **others)


def noise(nodes=300, seed=0):
    """Features that are independent of the classes."""
    return torch.randn(nodes, 4, generator=torch.Generator().manual_seed(seed))


def shuffled_edges(graph, seed=0):
    """The same graph with as many random edges."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(graph.num_nodes, (2, graph.num_edges), generator=generator)
    return Graph.from_edges(
        *ends,
        num_nodes=graph.num_nodes,
        features=graph.features,
        labels=graph.labels,
    )


def test_every_method_is_a_candidate_with_a_description():
    tried = {
        type(candidate.method) for candidate in [*BASELINES, *SEPARATE_EGO, *MIXED_EGO]
    }
    assert tried == {METHODS[name] for name in DESCRIPTIONS}
    assert set(METHODS) - set(DESCRIPTIONS) == LATER_METHODS
    assert set(IN_BATCHES.values()) <= set(SAMPLERS)


def test_candidates_are_named_as_on_the_command_line():
    assert Candidate(LINKX()).command_words == "linkx"
    assert (
        Candidate(LabelPropagation(hops=2)).command_words
        == "label-propagation --hops 2"
    )
    assert [candidate.command_words for candidate in DIRECTED] == [
        "linkx --directions both",
        "link --directions both",
    ]


def test_two_standard_errors_of_a_trial():
    assert Trial(
        Candidate(MLP()), (50.0, 52.0, 54.0, 56.0), 1.0, 30
    ).two_standard_errors == (pytest.approx(2 * 2.5819889 / 2))
    assert Trial(Candidate(MLP()), (50.0,), 1.0, 30).two_standard_errors is None


def test_candidates_similar_to_the_better_baseline_come_first(monkeypatch):
    monkeypatch.setattr(recommend, "SEPARATE_EGO", SEPARATE_EGO)
    monkeypatch.setattr(recommend, "MIXED_EGO", MIXED_EGO)
    by_candidate = {
        GCN_CANDIDATE: Trial(GCN_CANDIDATE, (60.0,), 1.0, 30),
        LINKX_CANDIDATE: Trial(LINKX_CANDIDATE, (70.0,), 1.0, 30),
    }
    assert recommend.order_candidates(by_candidate, directed=False) == [
        *SEPARATE_EGO,
        *MIXED_EGO,
    ]
    by_candidate[GCN_CANDIDATE] = Trial(GCN_CANDIDATE, (80.0,), 1.0, 30)
    assert recommend.order_candidates(by_candidate, directed=False) == [
        *MIXED_EGO,
        *SEPARATE_EGO,
    ]


@pytest.mark.long
def test_both_heads_of_views_are_tried_and_named_with_their_options(monkeypatch):
    heads = [one for one in SEPARATE_EGO if isinstance(one.method, Views)]
    monkeypatch.setattr(recommend, "SEPARATE_EGO", heads)
    groups = "--views structure features spectrum labels duplicates"
    assert {
        f"views-trees {groups} --rounds 1",
        f"views {groups} --head mlp --rounds 1",
    } <= {one.words for one in advise(source(suiting())).ranking}


def test_h2gcn_is_left_out_if_there_are_too_many_two_hop_paths(monkeypatch):
    graph = suiting()
    assert applicable(SEPARATE_EGO, graph) == SEPARATE_EGO
    monkeypatch.setattr("unalike.advice.candidates.MAX_TWO_HOP_PATHS", 10)
    assert {p.command_words for p in SEPARATE_EGO} - {
        p.command_words for p in applicable(SEPARATE_EGO, graph)
    } == {"h2gcn"}


@pytest.mark.long
def test_test_labels_are_not_used():
    graph = suiting()
    first_source = source(graph)
    labels = graph.labels.clone()
    test = first_source.stored_splits[0].test
    labels[test] = 1 - labels[test]
    other = MemorySource(replace(graph, labels=labels), first_source.stored_splits)
    first, second = advise(first_source), advise(other)
    assert [t.trial.scores for t in first.ranking] == [
        t.trial.scores for t in second.ranking
    ]
    assert first.measures == second.measures


def test_scored_nodes_are_neither_train_nor_valid_nodes(monkeypatch):
    limits = replace(LIMITS["cpu"], max_folds=6)
    graph = suiting()
    full = trials.sample_graph(
        graph, random_splits(graph.labels, count=1)[0], 0, limits
    )
    folds = make_folds(full, ACCURACY, 0, limits)
    assert len(folds) == 6
    for fold in folds:
        task = fold.task
        assert (task.graph.labels[fold.score_ids] == -1).all()
        assert torch.equal(fold.score_labels, graph.labels[fold.score_ids])
        parts = torch.cat([task.train, task.valid, fold.score_ids])
        assert len(parts.unique()) == len(parts)
        assert not torch.isin(parts, full.split.test).any()
    assert torch.equal(folds[0].score_ids, folds[1].task.valid)
    assert torch.equal(folds[0].task.train, full.split.train)


def test_features_alone_suffice():
    advice = advise(source(shuffled_edges(suiting())))
    first = advice.ranking[0]
    assert repr(advice).startswith(f"Advice({first.words} {first.trial.mean_score:.1f}")
    assert len(repr(advice)) < 100 * len(advice.ranking)
    assert advice.ranking[0].trial.candidate.method in (MLP(), LINKX())
    assert any("The edges add nothing to the features" in v for v in advice.verdicts)


def test_edges_alone_suffice():
    advice = advise(source(replace(suiting(nodes=300), features=noise())))
    assert advice.ranking[0].trial.candidate.uses_edges
    assert any("The features add nothing to the edges" in v for v in advice.verdicts)


def test_no_finding_without_a_trial_of_edges_and_features_together():
    apart = [
        Trial(Candidate(MLP()), (60.0, 62.0), 1.0, 30),
        Trial(Candidate(LabelPropagation()), (61.0, 61.0), 1.0, 30),
    ]
    assert not graph_findings(apart, 50.0)
    both = Trial(Candidate(LINKX()), (61.0, 61.0), 1.0, 30)
    assert "The edges add nothing" in graph_findings([*apart, both], 50.0)[0]


def test_nothing_suffices():
    graph = replace(shuffled_edges(suiting()), features=noise())
    constant = Trial(Candidate(MLP()), (52.0, 50.0), 1.0, 30)
    assert "Nothing that was tried beats" in graph_findings([constant], 51.0)[0]
    advice = advise(source(graph))
    assert advice.ranking[0].trial.mean_score < advice.constant + 10


@pytest.mark.parametrize(
    "graph",
    [
        suiting(directed=True),
        suiting(classes=4, features="sparse"),
        replace(suiting(), features=torch.zeros(300, 0)),
        suiting(nodes=30),
    ],
    ids=["directed", "sparse", "no features", "tiny"],
)
@pytest.mark.long
def test_graphs_of_every_kind(graph):
    advice = advise(source(graph))
    tried = {each.trial.candidate.command_words for each in advice.ranking}
    assert ("mlp" in tried) == ("gcn" in tried) == bool(graph.num_features)
    assert ("linkx --directions both" in tried) == graph.directed
    deeper = "linkx --lr 0.002 --hidden 128 --feature-layers 2"
    assert (deeper in tried) == bool(graph.num_features)
    for each in advice.ranking:
        assert 0 <= each.trial.mean_score <= 100
        assert each.cost.seconds > 0
        assert each.cost.megabytes > 0
        assert each.reason
    if not graph.num_features:
        assert not any("features" in verdict for verdict in advice.verdicts)


@pytest.mark.parametrize("name", ["roc-auc", "average-precision", "macro-f1"])
@pytest.mark.long
def test_other_metrics(name):
    advice = advise(source(suiting(), metric=METRICS[name]))
    assert advice.ranking[0].trial.mean_score > 70


def test_a_graph_without_splits():
    advice = advise(MemorySource(suiting(), []))
    assert advice.ranking[0].trial.mean_score > 70


def test_few_labels():
    graph = suiting()
    labels = torch.full_like(graph.labels, -1)
    some = (graph.labels >= 0).nonzero()[:20, 0]
    labels[some] = graph.labels[some]
    assert advise(MemorySource(replace(graph, labels=labels), [])).judges > 0
    labels[some[8:]] = -1
    with pytest.raises(UserError, match=r"There are 6 labels .* at least 10"):
        advise(MemorySource(replace(graph, labels=labels), []))


def test_one_class_has_no_roc_auc():
    graph = suiting()
    alone = replace(graph, labels=graph.labels.clamp(max=0))
    with pytest.raises(UserError, match="to score by roc-auc"):
        advise(source(alone, metric=METRICS["roc-auc"]))


def test_a_metric_for_fewer_classes():
    with pytest.raises(UserError, match="roc-auc is for 2 classes; given has 4"):
        advise(source(suiting(classes=4), metric=METRICS["roc-auc"]))


def test_a_split_that_does_not_exist():
    with pytest.raises(UserError, match="given has no split 3; they run from 0 to 0"):
        advise(source(suiting()), split=3)


def test_a_large_graph_is_sampled(monkeypatch):
    graph = suiting(nodes=2000)
    split = random_splits(graph.labels, count=1)[0]
    limits = replace(LIMITS["cpu"], max_nnz=8000)
    monkeypatch.setitem(LIMITS, "cpu", limits)
    sample = trials.sample_graph(graph, split, 0, limits)
    assert not sample.is_full
    assert sample.graph.adjacency.nnz <= 8000
    assert sample.graph.node_ids is None
    scored = sample.split.valid
    assert len(scored) > 10
    features = {tuple(row) for row in graph.features[split.valid].tolist()}
    degrees = dict(
        zip(map(tuple, graph.features.tolist()), graph.adjacency.degrees, strict=True)
    )
    for node in scored.tolist():
        row = tuple(sample.graph.features[node].tolist())
        assert row in features
        assert sample.graph.adjacency.degrees[node] == degrees[row]
    trial = run_trial(
        Candidate(LINK()),
        make_folds(sample, ACCURACY, 0, limits)[:1],
        epochs=2,
        deadline=Deadline.within(60.0),
    )
    small, large = (
        cost(trial, sample.graph, sample.graph),
        cost(trial, sample.graph, graph),
    )
    assert large.seconds > small.seconds
    assert large.megabytes > small.megabytes
    assert advise(MemorySource(graph, [split])).sampled == sample.graph.num_nodes


def test_work_ends_when_its_pace_is_too_slow(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    deadline = Deadline.within(50.0)
    deadline.stage("training", 100, "epochs")
    now[0] += 2
    deadline.advance(5)
    assert deadline.left == 48
    deadline.stage("training", 100, "epochs")
    now[0] += 2
    with pytest.raises(OutOfTimeError):
        deadline.advance(4)


def test_work_ends_when_its_time_is_over():
    with pytest.raises(OutOfTimeError):
        Deadline.within(-1.0).advance(1)
    split, limits = random_splits(suiting().labels, count=1)[0], LIMITS["cpu"]
    folds = make_folds(
        trials.sample_graph(suiting(), split, 0, limits), ACCURACY, 0, limits
    )
    over = Deadline.within(-1.0)
    assert run_trial(Candidate(GCN()), folds, epochs=2, deadline=over) is None
    with pytest.raises(UserError, match="too short to try anything"):
        advise(source(suiting()), seconds=1e-9)


def test_finalists_are_trained_to_the_end(monkeypatch):
    monkeypatch.setattr(recommend, "FINALISTS", 1)
    longer = LINK(training=Training(epochs=25))
    monkeypatch.setattr(recommend, "BASELINES", [Candidate(longer)])
    advice = advise(source(suiting(nodes=60)))
    assert advice.ranking[0].trial.epochs == 25


def test_a_graph_that_does_not_fit_is_trained_in_batches(monkeypatch):
    monkeypatch.setattr("unalike.advice.recommend.free_memory", lambda device: 0)
    advice = advise(source(suiting(nodes=60)))
    words = {each.trial.candidate.command_words: each.words for each in advice.ranking}
    assert words["linkx"] == "linkx rows"
    assert words["gcn"] == "gcn random-parts"
    assert words["label-propagation"] == "label-propagation"
