"""Edge, node, class, adjusted and unbiased homophily, and other one-hop measures."""

from __future__ import annotations

import math
from typing import SupportsFloat

import numpy as np
from jaxtyping import Float

from unalike.measures.edge_statistics import EdgeStatistics, Matrix


def compatibility(stats: EdgeStatistics) -> Matrix:
    """The fraction of the edges from class k (row) that end in class l (column).

    H_kl = |{(u, v) in E: k_u = k, k_v = l}| / |{(u, v) in E: k_u = k}|; rows sum to 1.
    The row of a class without edges is NaN (Zhu et al. 2021, arXiv:2009.13566).
    """
    totals = stats.edges.sum(1, keepdims=True)
    result = np.full_like(stats.edges, np.nan)
    return np.divide(stats.edges, totals, out=result, where=totals > 0)


def edge_homophily(stats: EdgeStatistics) -> float:
    """The fraction of edges whose two nodes have the same label.

    h = |{(u, v) in E: k_u = k_v}| / |E|, from 0 to 1. The value of random edges depends
    on the classes: it is low for many or balanced ones (Zhu et al. 2020,
    arXiv:2006.11468).
    """
    return safe_divide(stats.edges.trace(), stats.edges.sum())


def node_homophily(stats: EdgeStatistics) -> float:
    """The mean over nodes of the fraction of neighbours with the same label.

    1/|V| * sum over u of d_u(k_u) / d_u, from 0 to 1, with d_u(k) the neighbours of u
    in class k and V the nodes that have neighbours (Pei et al. 2020, arXiv:2002.05287).
    """
    return safe_divide(stats.neighbour_shares.trace(), stats.nodes_with_edges.sum())


def class_homophily(stats: EdgeStatistics) -> float:
    """The excess of edges within a class over random edges, the measure of LINKX.

    1/(C - 1) * sum over classes k of max(0, h_k - n_k / n), with h_k the fraction of
    the edges of class k that end in it, n_k its nodes and C the classes that have any.
    From 0 for random edges to 1 (Lim et al. 2021, arXiv:2110.14446). A class without
    edges adds 0.
    """
    within = np.nan_to_num(compatibility(stats).diagonal())
    excess = within - stats.nodes / max(stats.nodes.sum(), 1)
    num_others = max((stats.nodes > 0).sum() - 1, 0) if stats.edges.any() else 0
    return safe_divide(excess.clip(min=0).sum(), num_others)


def adjusted_homophily(stats: EdgeStatistics) -> float:
    """Edge homophily adjusted for random edges with the same degrees of the classes.

    (h - sum p_k * q_k) / (1 - sum p_k * q_k), with p and q the fractions of edges that
    start and end in class k; in an undirected graph both are its fraction of all
    degrees. At most 1; 0 if edges are independent of labels, negative if they are
    heterophilous (Platonov et al. 2023, arXiv:2209.06177). It is Newman's assortativity
    coefficient.
    """
    total = stats.edges.sum()
    expected = safe_divide(stats.edges.sum(1) @ stats.edges.sum(0), total * total)
    observed = safe_divide(stats.edges.trace(), total)
    return safe_divide(observed - expected, 1 - expected)


def unbiased_homophily(stats: EdgeStatistics) -> float:
    """Edges within classes against edges between them, independent of class sizes.

    (S^2 - 1) / (S^2 + 1 - 2 * sum c_kk) with S = sum sqrt(c_kk) and c_kk the fraction
    of edges within class k. From -1, no edge within a class, to 1, no edge between
    classes (Mironov and Prokhorenkova 2024, arXiv:2412.09663). Undirected graphs only.
    """
    within = stats.edges.diagonal() / max(stats.edges.sum(), 1)
    if stats.directed or not stats.edges.any():
        return math.nan
    squared_sum = np.sqrt(within).sum() ** 2
    return safe_divide(squared_sum - 1, squared_sum + 1 - 2 * within.sum())


def label_informativeness(stats: EdgeStatistics) -> float:
    """Mutual information of the labels of an edge, divided by the label entropy.

    I(source, target) / H(source) over random edges, which for undirected graphs is
    2 - sum p_kl log p_kl / sum p_k log p_k, with p_kl the fraction of edges from class
    k to class l and p_k the fraction of degrees. From 0 to 1, which heterophilous
    graphs can reach as well (Platonov et al. 2023, arXiv:2209.06177).
    """
    total = max(stats.edges.sum(), 1)
    source = entropy(stats.edges.sum(1) / total)
    target = entropy(stats.edges.sum(0) / total)
    return safe_divide(source + target - entropy(stats.edges / total), source)


def node_label_informativeness(stats: EdgeStatistics) -> float:
    """Label informativeness of a random node and a random neighbour of it.

    sum p_kl log(p_kl / (p_k * q_l)) / H(p), with p_kl the probability of such a pair,
    p_k the fraction of nodes and q_l the fraction of edges that end in l. From 0; all
    nodes have the same weight (Platonov et al. 2023, arXiv:2209.06177).
    """
    nodes, edges = max(stats.nodes_with_edges.sum(), 1), max(stats.edges.sum(), 1)
    joint, source = stats.neighbour_shares / nodes, stats.nodes_with_edges / nodes
    target = stats.edges.sum(0) / edges
    nonzero = joint > 0
    ratio = joint[nonzero] / np.outer(source, target)[nonzero]
    mutual_information = joint[nonzero] @ np.log(ratio)
    return safe_divide(mutual_information, entropy(source))


def monophily(stats: EdgeStatistics) -> float:
    """Overdispersion of the neighbour classes among nodes of the same class.

    The extra-binomial variance f in Var = d p (1 - p) (1 + (d - 1) f) of a node's edges
    into a class: for the nodes of each class, Pearson's statistic over all targets
    solved for f (the first step of Williams 1982), then the mean over nodes. About 0 if
    all nodes of a class have the same distribution of neighbours, 1 if the neighbours
    of each node have one class (Altenburger and Ugander 2018, arXiv:1705.04774).
    Two-hop methods help if it is high.
    """
    edges, nodes = stats.edges.sum(1), stats.nodes_with_edges
    targets = (stats.edges > 0).sum(1) - 1
    weight = edges - nodes - (stats.degree_squares - edges) / edges.clip(min=1)
    usable = (targets > 0) & (weight > 0)
    probabilities = np.where(stats.edges > 0, compatibility(stats), 1)
    pearson = (stats.squares / probabilities).sum(1) - edges
    excess = pearson[usable] / targets[usable] - (nodes[usable] - 1)
    return safe_divide(
        (nodes[usable] * excess / weight[usable]).sum(), nodes[usable].sum()
    )


def safe_divide(numerator: SupportsFloat, denominator: SupportsFloat) -> float:
    """The quotient; NaN if the denominator is 0."""
    return float(numerator) / float(denominator) if float(denominator) else math.nan


def entropy(probabilities: Float[np.ndarray, "*shape"]) -> float:
    """The sum of -p log p, with 0 log 0 = 0."""
    positive = probabilities[probabilities > 0]
    return float(-positive @ np.log(positive))
