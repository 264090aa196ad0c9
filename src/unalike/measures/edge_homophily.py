"""Edge homophily: the share of edges inside a class."""

from unalike.measures.ratio import ratio
from unalike.measures.tally import Tally


def edge_homophily(tally: Tally) -> float:
    """The share of edges whose ends have the same label.

    h = |{(u, v) in E: k_u = k_v}| / |E|, from 0 to 1. What random edges give depends on
    the classes: many or even ones give little (Zhu et al. 2020, arXiv:2006.11468).
    """
    return ratio(tally.edges.trace(), tally.edges.sum())
