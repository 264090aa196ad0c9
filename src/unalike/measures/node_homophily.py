"""Node homophily: the share of like neighbours of a typical node."""

from unalike.measures.ratio import ratio
from unalike.measures.tally import Tally


def node_homophily(tally: Tally) -> float:
    """The share of a node's neighbours that have its label, on average over nodes.

    1/|V| * sum over u of d_u(k_u) / d_u, from 0 to 1, with d_u(k) the neighbours of u
    in class k and V the nodes that have neighbours (Pei et al. 2020, arXiv:2002.05287).
    """
    return ratio(tally.shares.trace(), tally.active.sum())
