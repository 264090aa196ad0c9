"""Every measure equals a slow implementation of its definition on small graphs."""

import math
import warnings
from collections import Counter

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import Graph, measure
from unalike.measures import Convention

CONVENTIONS = [
    Convention(),
    Convention(loops=1),
    Convention(unlabelled=True),
    Convention(both_ways=True, loops=2),
    Convention(both_ways=True, unlabelled=True),
]


@st.composite
def graphs(draw, labels=(-1, 0, 1, 2), loops=True):
    """Small graphs with unlabelled and isolated nodes, loops, either direction."""
    nodes = draw(st.integers(1, 9))
    end = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(end, end), max_size=25))
    pairs = [pair for pair in pairs if loops or pair[0] != pair[1]]
    ends = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
    node_labels = draw(
        st.lists(st.sampled_from(labels), min_size=nodes, max_size=nodes)
    )
    numbers = st.lists(st.integers(-2, 2), min_size=2, max_size=2)
    features = draw(st.lists(numbers, min_size=nodes, max_size=nodes))
    return Graph.from_edges(
        ends[:, 0],
        ends[:, 1],
        num_nodes=nodes,
        labels=torch.tensor(node_labels),
        num_classes=3,
        features=torch.tensor(features, dtype=torch.float32),
        directed=draw(st.booleans()),
    )


class Slow:
    """The definitions, as loops over a dictionary of edges."""

    def __init__(self, graph, convention):
        dense = graph.adjacency.to_dense().double().numpy()
        if convention.both_ways:
            dense = np.maximum(dense, dense.T)
        np.fill_diagonal(dense, dense.diagonal() * convention.loops)
        self.matrix = dense
        self.nodes = range(graph.num_nodes)
        self.labels = graph.labels.tolist()
        self.counted = [convention.unlabelled or label >= 0 for label in self.labels]
        self.edges = {
            (u, v): weight
            for (u, v), weight in np.ndenumerate(dense)
            if weight and self.counted[u] and self.counted[v]
        }
        self.classes = sorted(
            {k for k, c in zip(self.labels, self.counted, strict=True) if c}
        )
        self.directed = graph.directed and not convention.both_ways
        self.features = graph.features.numpy().astype(float)

    def like(self, u, v):
        return self.labels[u] == self.labels[v]

    def row(self, u):
        return {v: weight for (w, v), weight in self.edges.items() if w == u}

    def edge_homophily(self):
        same = sum(w for (u, v), w in self.edges.items() if self.like(u, v))
        return divide(same, sum(self.edges.values()))

    def node_homophily(self):
        return self.mean_share(
            np.array(
                [[self.edges.get((u, v), 0) for v in self.nodes] for u in self.nodes]
            )
        )

    def mean_share(self, weights):
        shares = []
        for u in self.nodes:
            row = {v: weights[u][v] for v in self.nodes if self.counted[v]}
            if self.counted[u] and sum(row.values()) > 0:
                same = sum(w for v, w in row.items() if self.like(u, v))
                shares.append(same / sum(row.values()))
        return divide(sum(shares), len(shares))

    def class_homophily(self):
        nodes = sum(self.counted)
        total = 0.0
        for k in self.classes:
            out = {e: w for e, w in self.edges.items() if self.labels[e[0]] == k}
            same = sum(w for (_, v), w in out.items() if self.labels[v] == k)
            members = sum(self.labels[u] == k for u in self.nodes)
            if out:
                total += max(0, same / sum(out.values()) - members / nodes)
        return divide(total, max(len(self.classes) - 1, 0) if self.edges else 0)

    def unbiased_homophily(self):
        total = sum(self.edges.values())
        if self.directed or not total:
            return math.nan
        share = Counter()
        for (u, v), w in self.edges.items():
            share[self.labels[u], self.labels[v]] += w / total
        above = below = 0.0
        for index, i in enumerate(self.classes):
            for j in self.classes[:index]:
                root, between = math.sqrt(share[i, i] * share[j, j]), share[i, j]
                between = (share[i, j] + share[j, i]) / 2
                above, below = above + root - between, below + root + between
        return divide(above, below) if below > 1e-12 else math.nan

    def label_informativeness(self):
        total = sum(self.edges.values())
        joint = Counter()
        for (u, v), w in self.edges.items():
            joint[self.labels[u], self.labels[v]] += w / total
        source = marginal(joint, 0)
        mutual = entropy(source) + entropy(marginal(joint, 1)) - entropy(joint)
        return divide(mutual, entropy(source))

    def node_label_informativeness(self):
        active = [u for u in self.nodes if sum(self.row(u).values()) > 0]
        joint, target = Counter(), Counter()
        for u in active:
            row = self.row(u)
            for v, w in row.items():
                pair = self.labels[u], self.labels[v]
                joint[pair] += w / sum(row.values()) / len(active)
                target[self.labels[v]] += w / sum(self.edges.values())
        source = marginal(joint, 0)
        mutual = sum(
            p * math.log(p / (source[k] * target[m])) for (k, m), p in joint.items()
        )
        return divide(mutual, entropy(source))

    def monophily(self):
        above = members = 0.0
        for k in self.classes:
            rows = [self.row(u) for u in self.nodes if self.labels[u] == k]
            rows = [row for row in rows if sum(row.values())]
            total = sum(sum(row.values()) for row in rows)
            counts = [Counter() for _ in rows]
            for count, row in zip(counts, rows, strict=True):
                for v, w in row.items():
                    count[self.labels[v]] += w
            probability = (
                {
                    m: sum(count[m] for count in counts) / total
                    for m in set().union(*counts)
                }
                if rows
                else {}
            )
            degrees = [sum(row.values()) for row in rows]
            spread = sum((d - 1) * (1 - d / total) for d in degrees)
            if len(probability) < 2 or spread <= 1e-12:
                continue
            pearson = sum(
                (count[m] - d * p) ** 2 / (d * p)
                for count, d in zip(counts, degrees, strict=True)
                for m, p in probability.items()
            )
            excess = pearson / (len(probability) - 1) - (len(rows) - 1)
            above, members = above + len(rows) * excess / spread, members + len(rows)
        return divide(above, members)

    def two_hop_node_homophily(self):
        near = [set(np.flatnonzero(row)) for row in self.stored]
        weights = np.zeros_like(self.matrix)
        for u in self.nodes:
            far = set().union(*(near[v] for v in near[u])) - near[u] - {u}
            weights[u, list(far)] = 1
        return self.mean_share(weights)

    def aggregation_homophily(self):
        if len(self.classes) < 2:
            return math.nan
        ids = [u for u in self.nodes if self.counted[u]]
        smooth = self.matrix[np.ix_(ids, ids)] + np.eye(len(ids))
        smooth /= smooth.sum(1, keepdims=True)
        labels = np.array([self.labels[u] for u in ids])
        shares = smooth @ (labels[:, None] == np.array(self.classes))
        alike = shares @ shares.T
        good = [
            alike[u, labels == labels[u]].mean()
            >= alike[u, labels != labels[u]].mean() - 1e-9
            for u in range(len(ids))
        ]
        return float(np.mean(good))

    def generalised_edge_homophily(self):
        norms = np.linalg.norm(self.features, axis=1)
        unit = self.features / np.where(norms > 0, norms, 1)[:, None]
        return divide((self.matrix * (unit @ unit.T)).sum(), self.matrix.sum())

    def walk(self, weights):
        weights = weights.copy()
        np.fill_diagonal(weights, 0)
        return self.mean_share(weights) if self.directed else math.nan

    def in_node_homophily(self):
        return self.mean_share(self.matrix.T) if self.directed else math.nan

    def shared_target_homophily(self):
        return self.walk(self.matrix @ self.matrix.T)

    def shared_source_homophily(self):
        return self.walk(self.matrix.T @ self.matrix)


def divide(part, total):
    return part / total if total else math.nan


def entropy(probabilities):
    return -sum(p * math.log(p) for p in probabilities.values() if 0 < p < 1 - 1e-12)


def marginal(joint, end):
    sums = Counter()
    for pair, probability in joint.items():
        sums[pair[end]] += probability
    return sums


@pytest.mark.parametrize("convention", CONVENTIONS, ids=str)
@settings(max_examples=40)
@given(graph=graphs())
@pytest.mark.long
def test_measures_equal_their_definitions(convention, graph):
    result = measure(graph, conventions=convention)
    slow = Slow(graph, convention)
    stored = graph.to_undirected() if convention.both_ways else graph
    slow.stored = stored.adjacency.to_dense().numpy()
    names = [name for name in vars(Slow) if name in result]
    assert len(names) == 13
    for name in names:
        expected = getattr(slow, name)()
        assert result[name] == pytest.approx(expected, abs=1e-6, nan_ok=True), name


@settings(max_examples=40)
@given(graph=graphs(labels=(0, 1, 2), loops=False))
def test_adjusted_homophily_is_the_assortativity_of_networkx(graph):
    kind = networkx.DiGraph if graph.directed else networkx.Graph
    twin = networkx.from_numpy_array(graph.adjacency.to_dense().numpy(), False, kind)
    for node, label in enumerate(graph.labels.tolist()):
        twin.nodes[node]["label"] = label
    result = measure(graph, only=["adjusted_homophily"])["adjusted_homophily"]
    if not math.isnan(result):
        expected = networkx.attribute_assortativity_coefficient(twin, "label")
        assert result == pytest.approx(expected)


def test_three_measures_are_those_of_pyg_where_its_definition_agrees():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch_geometric.utils import homophily

    torch.manual_seed(0)
    labels = torch.arange(60) % 3
    ends = torch.randint(60, (2, 400))
    ends = ends[:, ends[0] != ends[1]]
    graph = Graph.from_edges(*ends, num_nodes=60, labels=labels)
    assert bool((graph.adjacency.degrees > 0).all())
    edges = graph.to_pyg().edge_index
    result = measure(graph)
    for ours, theirs in {
        "edge_homophily": "edge",
        "node_homophily": "node",
        "class_homophily": "edge_insensitive",
    }.items():
        expected = homophily(edges, labels, method=theirs)
        assert result[ours] == pytest.approx(expected, abs=1e-6)


def test_label_informativeness_has_the_values_of_its_authors_example():
    graph = Graph.from_edges(
        torch.tensor([0, 1, 2, 2, 3, 4]),
        torch.tensor([1, 2, 0, 3, 4, 5]),
        num_nodes=6,
        labels=torch.tensor([0, 0, 0, 0, 1, 1]),
    )
    result = measure(graph)
    assert result["label_informativeness"] == pytest.approx(0.251776, abs=1e-6)
    assert result["node_label_informativeness"] == pytest.approx(0.338187, abs=1e-6)
