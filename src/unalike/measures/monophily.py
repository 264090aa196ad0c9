"""Monophily: do a node's neighbours resemble each other, whatever they are?"""

import numpy as np

from unalike.measures.compatibility import compatibility
from unalike.measures.ratio import ratio
from unalike.measures.tally import Tally


def monophily(tally: Tally) -> float:
    """How much more than by chance nodes of one class differ in their neighbours.

    The extra-binomial variance f in Var = d p (1 - p) (1 + (d - 1) f) of a node's edges
    into a class: for the nodes of each class, Pearson's statistic over all targets
    solved for f (the first step of Williams 1982), then the mean over nodes. About 0
    where neighbours are drawn alike, 1 where each node keeps to one class (Altenburger
    and Ugander 2018, arXiv:1705.04774). Two hops help where it is high.
    """
    edges, nodes = tally.edges.sum(1), tally.active
    targets = (tally.edges > 0).sum(1) - 1
    spread = edges - nodes - (tally.degree_squares - edges) / edges.clip(min=1)
    usable = (targets > 0) & (spread > 0)
    chance = np.where(tally.edges > 0, compatibility(tally), 1)
    pearson = (tally.squares / chance).sum(1) - edges
    excess = pearson[usable] / targets[usable] - (nodes[usable] - 1)
    return ratio((nodes[usable] * excess / spread[usable]).sum(), nodes[usable].sum())
