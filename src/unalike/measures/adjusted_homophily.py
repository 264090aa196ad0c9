"""Adjusted homophily: edge homophily, corrected for chance."""

from unalike.measures.ratio import ratio
from unalike.measures.tally import Tally


def adjusted_homophily(tally: Tally) -> float:
    """Edge homophily beyond what the degrees of the classes give by chance.

    (h - sum p_k * q_k) / (1 - sum p_k * q_k), with p and q the shares of edges that
    leave and enter class k; without direction both are its share of all degrees. At
    most 1, 0 where edges are independent of labels, negative where unlike nodes meet
    (Platonov et al. 2023, arXiv:2209.06177). It is Newman's assortativity coefficient.
    """
    edges = tally.edges.sum()
    by_chance = ratio(tally.edges.sum(1) @ tally.edges.sum(0), edges * edges)
    return ratio(ratio(tally.edges.trace(), edges) - by_chance, 1 - by_chance)
