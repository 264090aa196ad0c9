"""Advice: what it is made of, what it may look at, and graphs of every kind."""

from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from graphs import suiting

from unalike import METHODS, Graph, Split, UserError, random_splits
from unalike.advice import advise as advise_within
from unalike.advice import candidates, trials
from unalike.advice import cost as costs
from unalike.advice import recommend as advising
from unalike.advice.candidates import (
    BASELINES,
    DIRECTED,
    GCN_CANDIDATE,
    LINKX_CANDIDATE,
    MIXED_EGO,
    SEPARATE_EGO,
    Candidate,
)
from unalike.advice.candidates import applicable as fitting
from unalike.advice.cost import IN_BATCHES, cost
from unalike.advice.recommend import DESCRIPTIONS, graph_findings
from unalike.advice.trials import (
    EFFORTS,
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
from unalike.samplers import SAMPLERS
from unalike.training.settings import Training

advise = partial(advise_within, seconds=3600.0)


@dataclass
class Given:
    """A source over a graph in memory."""

    graph: Graph
    told: list[Split]
    metric: Metric = ACCURACY
    name: str = "given"

    def load(self):
        return self.graph

    def prepared(self, *, progress=None):
        return self.graph

    def splits(self):
        return self.told

    def remarks(self):
        return []


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few epochs and draws, and the questions alone."""
    monkeypatch.setattr(advising, "SHORT_EPOCHS", 20)
    monkeypatch.setitem(EFFORTS, "cpu", replace(EFFORTS["cpu"], draws=2))
    monkeypatch.setattr(advising, "SEPARATE_EGO", [])
    monkeypatch.setattr(advising, "MIXED_EGO", [])
    monkeypatch.setattr(advising, "DIRECTED", [Candidate(LINKX(directions="both"))])
    monkeypatch.setattr(advising, "FINALISTS", 0)


def source(graph, **others):
    return Given(graph, random_splits(graph.labels, count=1), **others)


def noise(nodes=300, seed=0):
    """Features that tell nothing."""
    return torch.randn(nodes, 4, generator=torch.Generator().manual_seed(seed))


def shuffled_edges(graph, seed=0):
    """The same graph with as many edges, drawn at random."""
    draw = torch.Generator().manual_seed(seed)
    ends = torch.randint(graph.num_nodes, (2, graph.num_edges), generator=draw)
    return Graph.from_edges(
        *ends,
        num_nodes=graph.num_nodes,
        features=graph.features,
        labels=graph.labels,
    )


def test_every_method_is_tried_and_told_in_words():
    tried = {type(probe.method) for probe in [*BASELINES, *SEPARATE_EGO, *MIXED_EGO]}
    assert tried == set(METHODS.values())
    assert set(DESCRIPTIONS) == set(METHODS)
    assert set(IN_BATCHES.values()) <= set(SAMPLERS)


def test_probes_are_named_as_the_command_line_has_them():
    assert Candidate(LINKX()).words == "linkx"
    assert Candidate(LabelPropagation(hops=2)).words == "label-propagation --hops 2"
    assert [probe.words for probe in DIRECTED] == [
        "linkx --directions both",
        "link --directions both",
    ]


def test_two_standard_errors_are_in_doubt():
    assert Trial(
        Candidate(MLP()), (50.0, 52.0, 54.0, 56.0), 1.0, 30
    ).two_standard_errors == (pytest.approx(2 * 2.5819889 / 2))
    assert Trial(Candidate(MLP()), (50.0,), 1.0, 30).two_standard_errors is None


def test_contenders_akin_to_what_did_well_come_first(monkeypatch):
    monkeypatch.setattr(advising, "SEPARATE_EGO", SEPARATE_EGO)
    monkeypatch.setattr(advising, "MIXED_EGO", MIXED_EGO)
    found = {
        GCN_CANDIDATE: Trial(GCN_CANDIDATE, (60.0,), 1.0, 30),
        LINKX_CANDIDATE: Trial(LINKX_CANDIDATE, (70.0,), 1.0, 30),
    }
    assert advising.order_candidates(found, directed=False) == [
        *SEPARATE_EGO,
        *MIXED_EGO,
    ]
    found[GCN_CANDIDATE] = Trial(GCN_CANDIDATE, (80.0,), 1.0, 30)
    assert advising.order_candidates(found, directed=False) == [
        *MIXED_EGO,
        *SEPARATE_EGO,
    ]


def test_neighbours_of_neighbours_are_left_alone_where_they_are_too_many(monkeypatch):
    graph = suiting()
    assert fitting(SEPARATE_EGO, graph) == SEPARATE_EGO
    monkeypatch.setattr(candidates, "MAX_TWO_HOP_PATHS", 10)
    assert {p.words for p in SEPARATE_EGO} - {
        p.words for p in fitting(SEPARATE_EGO, graph)
    } == {"h2gcn"}


def test_test_labels_play_no_part():
    graph = suiting()
    told = source(graph)
    labels = graph.labels.clone()
    test = told.told[0].test
    labels[test] = 1 - labels[test]
    other = Given(replace(graph, labels=labels), told.told)
    first, second = advise(told), advise(other)
    assert [t.trial.grades for t in first.ranking] == [
        t.trial.grades for t in second.ranking
    ]
    assert first.measures == second.measures


def test_judges_neither_teach_nor_choose(monkeypatch):
    most = replace(EFFORTS["cpu"], draws=6)
    graph = suiting()
    whole = trials.sample_graph(graph, random_splits(graph.labels, count=1)[0], 0, most)
    dealt = make_folds(whole, ACCURACY, 0, most)
    assert len(dealt) == 6
    for draw in dealt:
        task = draw.task
        assert (task.graph.labels[draw.judges] == -1).all()
        assert torch.equal(draw.answers, graph.labels[draw.judges])
        parts = torch.cat([task.train, task.valid, draw.judges])
        assert len(parts.unique()) == len(parts)
        assert not torch.isin(parts, whole.split.test).any()
    assert torch.equal(dealt[0].judges, dealt[1].task.valid)
    assert torch.equal(dealt[0].task.train, whole.split.train)


def test_features_alone_suffice():
    found = advise(source(shuffled_edges(suiting())))
    assert found.ranking[0].trial.probe.method in (MLP(), LINKX())
    assert any("The edges add nothing to the features" in v for v in found.verdicts)


def test_edges_alone_suffice():
    found = advise(source(replace(suiting(nodes=300), features=noise())))
    assert found.ranking[0].trial.probe.uses_edges
    assert any("The features add nothing to the edges" in v for v in found.verdicts)


def test_edges_and_features_are_not_judged_apart():
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
    found = advise(source(graph))
    assert found.ranking[0].trial.mean_score < found.constant + 10


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
def test_graphs_of_every_kind(graph):
    found = advise(source(graph))
    tried = {each.trial.probe.words for each in found.ranking}
    assert ("mlp" in tried) == ("gcn" in tried) == bool(graph.num_features)
    assert ("linkx --directions both" in tried) == graph.directed
    for each in found.ranking:
        assert 0 <= each.trial.mean_score <= 100
        assert each.cost.seconds > 0
        assert each.cost.megabytes > 0
        assert each.reason
    if not graph.num_features:
        assert not any("features" in verdict for verdict in found.verdicts)


@pytest.mark.parametrize("name", ["roc-auc", "average-precision", "macro-f1"])
def test_other_metrics(name):
    found = advise(source(suiting(), metric=METRICS[name]))
    assert found.ranking[0].trial.mean_score > 70


def test_a_graph_without_splits():
    found = advise(Given(suiting(), []))
    assert found.ranking[0].trial.mean_score > 70


def test_few_labels():
    graph = suiting()
    labels = torch.full_like(graph.labels, -1)
    some = (graph.labels >= 0).nonzero()[:20, 0]
    labels[some] = graph.labels[some]
    assert advise(Given(replace(graph, labels=labels), [])).judges > 0
    labels[some[8:]] = -1
    with pytest.raises(UserError, match=r"There are 6 labels .* at least 10"):
        advise(Given(replace(graph, labels=labels), []))


def test_one_class_cannot_be_judged_by_a_curve():
    graph = suiting()
    alone = replace(graph, labels=graph.labels.clamp(max=0))
    with pytest.raises(UserError, match="too few of a class to judge by roc-auc"):
        advise(source(alone, metric=METRICS["roc-auc"]))


def test_a_metric_for_fewer_classes():
    with pytest.raises(UserError, match="roc-auc is for 2 classes; given has 4"):
        advise(source(suiting(classes=4), metric=METRICS["roc-auc"]))


def test_a_split_that_is_not_there():
    with pytest.raises(UserError, match="given has no split 3; they run from 0 to 0"):
        advise(source(suiting()), split=3)


def test_a_large_graph_is_sampled(monkeypatch):
    graph = suiting(nodes=2000)
    split = random_splits(graph.labels, count=1)[0]
    most = replace(EFFORTS["cpu"], entries=8000)
    monkeypatch.setitem(EFFORTS, "cpu", most)
    part = trials.sample_graph(graph, split, 0, most)
    assert not part.whole
    assert part.graph.adjacency.num_entries <= 8000
    assert part.graph.node_ids is None
    judged = part.split.valid
    assert len(judged) > 10
    features = {tuple(row) for row in graph.features[split.valid].tolist()}
    degrees = dict(
        zip(map(tuple, graph.features.tolist()), graph.adjacency.degrees, strict=True)
    )
    for node in judged.tolist():
        row = tuple(part.graph.features[node].tolist())
        assert row in features
        assert part.graph.adjacency.degrees[node] == degrees[row]
    trial = run_trial(
        Candidate(LINK()),
        make_folds(part, ACCURACY, 0, most)[:1],
        epochs=2,
        deadline=Deadline.within(60.0),
    )
    small, large = cost(trial, part.graph, part.graph), cost(trial, part.graph, graph)
    assert large.seconds > small.seconds
    assert large.megabytes > small.megabytes
    assert advise(Given(graph, [split])).sampled == part.graph.num_nodes


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
    split, most = random_splits(suiting().labels, count=1)[0], EFFORTS["cpu"]
    dealt = make_folds(
        trials.sample_graph(suiting(), split, 0, most), ACCURACY, 0, most
    )
    over = Deadline.within(-1.0)
    assert run_trial(Candidate(GCN()), dealt, epochs=2, deadline=over) is None
    with pytest.raises(UserError, match="too short to try anything"):
        advise(source(suiting()), seconds=1e-9)


def test_finalists_are_trained_to_the_end(monkeypatch):
    monkeypatch.setattr(advising, "FINALISTS", 1)
    longer = LINK(training=Training(epochs=25))
    monkeypatch.setattr(advising, "BASELINES", [Candidate(longer)])
    found = advise(source(suiting(nodes=60)))
    assert found.ranking[0].trial.epochs == 25


def test_a_graph_that_does_not_fit_is_trained_in_batches(monkeypatch):
    monkeypatch.setattr(costs, "free_memory", lambda device: 0)
    found = advise(source(suiting(nodes=60)))
    words = {each.trial.probe.words: each.words for each in found.ranking}
    assert words["linkx"] == "linkx rows"
    assert words["gcn"] == "gcn random-parts"
    assert words["label-propagation"] == "label-propagation"
