"""Edge, node, class, adjusted, unbiased homophily, label informativeness, monophily, compatibility matrix."""

from __future__ import annotations

import math
from typing import SupportsFloat

import numpy as np
from jaxtyping import Float

from unalike.measures.edge_statistics import EdgeStatistics, Matrix

# The compatibility matrix: where the edges of each class end.


def compatibility(tally: EdgeStatistics) -> Matrix:
    """The share of the edges from class k (row) that end in class l (column).

    H_kl = |{(u, v) in E: k_u = k, k_v = l}| / |{(u, v) in E: k_u = k}|; rows sum to 1.
    A class without edges has a row that is not a number (Zhu et al. 2021,
    arXiv:2009.13566).
    """
    out = tally.edges.sum(1, keepdims=True)
    return np.divide(
        tally.edges, out, out=np.full_like(tally.edges, np.nan), where=out > 0
    )


# A quotient that is not a number where there is nothing to divide by.


def safe_divide(part: SupportsFloat, whole: SupportsFloat) -> float:
    """part / whole; not a number where the whole is 0."""
    return float(part) / float(whole) if float(whole) else math.nan


# Edge homophily: the share of edges inside a class.


def edge_homophily(tally: EdgeStatistics) -> float:
    """The share of edges whose ends have the same label.

    h = |{(u, v) in E: k_u = k_v}| / |E|, from 0 to 1. What random edges give depends on
    the classes: many or even ones give little (Zhu et al. 2020, arXiv:2006.11468).
    """
    return safe_divide(tally.edges.trace(), tally.edges.sum())


# Node homophily: the share of like neighbours of a typical node.


def node_homophily(tally: EdgeStatistics) -> float:
    """The share of a node's neighbours that have its label, on average over nodes.

    1/|V| * sum over u of d_u(k_u) / d_u, from 0 to 1, with d_u(k) the neighbours of u
    in class k and V the nodes that have neighbours (Pei et al. 2020, arXiv:2002.05287).
    """
    return safe_divide(tally.neighbour_shares.trace(), tally.nodes_with_edges.sum())


# Class homophily: the measure of the LINKX paper.


def class_homophily(tally: EdgeStatistics) -> float:
    """How much more often than by chance do edges stay inside their class?

    1/(C - 1) * sum over classes k of max(0, h_k - n_k / n), with h_k the share of the
    edges of class k that end in it, n_k its nodes and C the classes that have any. From
    0, what random edges give, to 1 (Lim et al. 2021, arXiv:2110.14446). A class without
    edges adds nothing.
    """
    inside = np.nan_to_num(compatibility(tally).diagonal())
    excess = inside - tally.nodes / max(tally.nodes.sum(), 1)
    others = max((tally.nodes > 0).sum() - 1, 0) if tally.edges.any() else 0
    return safe_divide(excess.clip(min=0).sum(), others)


# Adjusted homophily: edge homophily, corrected for chance.


def adjusted_homophily(tally: EdgeStatistics) -> float:
    """Edge homophily beyond what the degrees of the classes give by chance.

    (h - sum p_k * q_k) / (1 - sum p_k * q_k), with p and q the shares of edges that
    leave and enter class k; without direction both are its share of all degrees. At
    most 1, 0 where edges are independent of labels, negative where unlike nodes meet
    (Platonov et al. 2023, arXiv:2209.06177). It is Newman's assortativity coefficient.
    """
    edges = tally.edges.sum()
    by_chance = safe_divide(tally.edges.sum(1) @ tally.edges.sum(0), edges * edges)
    return safe_divide(
        safe_divide(tally.edges.trace(), edges) - by_chance, 1 - by_chance
    )


# Unbiased homophily: one number for any number and balance of classes.


def unbiased_homophily(tally: EdgeStatistics) -> float:
    """Edges inside classes against edges between them, blind to the sizes of classes.

    (S^2 - 1) / (S^2 + 1 - 2 * sum c_kk) with S = sum sqrt(c_kk) and c_kk the share of
    edges inside class k. From -1, no edge inside a class, to 1, no edge between classes
    (Mironov and Prokhorenkova 2024, arXiv:2412.09663). Undirected graphs only.
    """
    inside = tally.edges.diagonal() / max(tally.edges.sum(), 1)
    if tally.directed or not tally.edges.any():
        return math.nan
    root = np.sqrt(inside).sum() ** 2
    return safe_divide(root - 1, root + 1 - 2 * inside.sum())


# Label informativeness: what a neighbour's label tells about a node's.


def label_informativeness(tally: EdgeStatistics) -> float:
    """The part of a label's entropy that the label at the other end of an edge removes.

    I(source, target) / H(source) over random edges, which without direction is
    2 - sum p_kl log p_kl / sum p_k log p_k, with p_kl the share of edges from class k
    to class l and p_k the share of degrees. From 0 to 1, which heterophilous graphs
    reach as well (Platonov et al. 2023, arXiv:2209.06177).
    """
    total = max(tally.edges.sum(), 1)
    source = entropy(tally.edges.sum(1) / total)
    target = entropy(tally.edges.sum(0) / total)
    return safe_divide(source + target - entropy(tally.edges / total), source)


def node_label_informativeness(tally: EdgeStatistics) -> float:
    """The same over a random node and a random neighbour of it.

    sum p_kl log(p_kl / (p_k * q_l)) / H(p), with p_kl the chance of such a pair, p_k
    the share of nodes and q_l the share of edges that end in l. From 0; hubs weigh no
    more than other nodes (Platonov et al. 2023, arXiv:2209.06177).
    """
    nodes, edges = max(tally.nodes_with_edges.sum(), 1), max(tally.edges.sum(), 1)
    joint, source = tally.neighbour_shares / nodes, tally.nodes_with_edges / nodes
    target = tally.edges.sum(0) / edges
    met = joint > 0
    told = joint[met] @ np.log(joint[met] / np.outer(source, target)[met])
    return safe_divide(told, entropy(source))


def entropy(chances: Float[np.ndarray, "*shape"]) -> float:
    """The sum of -p log p, with 0 log 0 = 0."""
    some = chances[chances > 0]
    return float(-some @ np.log(some))


# Monophily: do a node's neighbours resemble each other, whatever they are?


def monophily(tally: EdgeStatistics) -> float:
    """How much more than by chance nodes of one class differ in their neighbours.

    The extra-binomial variance f in Var = d p (1 - p) (1 + (d - 1) f) of a node's edges
    into a class: for the nodes of each class, Pearson's statistic over all targets
    solved for f (the first step of Williams 1982), then the mean over nodes. About 0
    where neighbours are drawn alike, 1 where each node keeps to one class (Altenburger
    and Ugander 2018, arXiv:1705.04774). Two hops help where it is high.
    """
    edges, nodes = tally.edges.sum(1), tally.nodes_with_edges
    targets = (tally.edges > 0).sum(1) - 1
    spread = edges - nodes - (tally.degree_squares - edges) / edges.clip(min=1)
    usable = (targets > 0) & (spread > 0)
    chance = np.where(tally.edges > 0, compatibility(tally), 1)
    pearson = (tally.squares / chance).sum(1) - edges
    excess = pearson[usable] / targets[usable] - (nodes[usable] - 1)
    return safe_divide(
        (nodes[usable] * excess / spread[usable]).sum(), nodes[usable].sum()
    )
