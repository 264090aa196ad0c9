"""Class homophily: the measure of the LINKX paper."""

import numpy as np

from unalike.measures.compatibility import compatibility
from unalike.measures.ratio import ratio
from unalike.measures.tally import Tally


def class_homophily(tally: Tally) -> float:
    """How much more often than by chance do edges stay inside their class?

    1/(C - 1) * sum over classes k of max(0, h_k - n_k / n), with h_k the share of the
    edges of class k that end in it, n_k its nodes and C the classes that have any. From
    0, what random edges give, to 1 (Lim et al. 2021, arXiv:2110.14446). A class without
    edges adds nothing.
    """
    inside = np.nan_to_num(compatibility(tally).diagonal())
    excess = inside - tally.nodes / max(tally.nodes.sum(), 1)
    others = max((tally.nodes > 0).sum() - 1, 0) if tally.edges.any() else 0
    return ratio(excess.clip(min=0).sum(), others)
