"""Label informativeness: what a neighbour's label tells about a node's."""

import numpy as np
from jaxtyping import Float

from unalike.measures.ratio import ratio
from unalike.measures.tally import Tally


def label_informativeness(tally: Tally) -> float:
    """The part of a label's entropy that the label at the other end of an edge removes.

    I(source, target) / H(source) over random edges, which without direction is
    2 - sum p_kl log p_kl / sum p_k log p_k, with p_kl the share of edges from class k
    to class l and p_k the share of degrees. From 0 to 1, which heterophilous graphs
    reach as well (Platonov et al. 2023, arXiv:2209.06177).
    """
    total = max(tally.edges.sum(), 1)
    source = entropy(tally.edges.sum(1) / total)
    target = entropy(tally.edges.sum(0) / total)
    return ratio(source + target - entropy(tally.edges / total), source)


def node_label_informativeness(tally: Tally) -> float:
    """The same over a random node and a random neighbour of it.

    sum p_kl log(p_kl / (p_k * q_l)) / H(p), with p_kl the chance of such a pair, p_k
    the share of nodes and q_l the share of edges that end in l. From 0; hubs weigh no
    more than other nodes (Platonov et al. 2023, arXiv:2209.06177).
    """
    nodes, edges = max(tally.active.sum(), 1), max(tally.edges.sum(), 1)
    joint, source = tally.shares / nodes, tally.active / nodes
    target = tally.edges.sum(0) / edges
    met = joint > 0
    told = joint[met] @ np.log(joint[met] / np.outer(source, target)[met])
    return ratio(told, entropy(source))


def entropy(chances: Float[np.ndarray, "*shape"]) -> float:
    """The sum of -p log p, with 0 log 0 = 0."""
    some = chances[chances > 0]
    return float(-some @ np.log(some))
