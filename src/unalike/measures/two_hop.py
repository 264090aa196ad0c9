"""Two-hop node homophily: like node homophily, one step further out."""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Int

from unalike.kernels.compiled import compiled
from unalike.measures.blocks import side_by_side
from unalike.measures.estimate import Estimate
from unalike.measures.view import View

EXACT = 10_000
"""Graphs of at most so many nodes are measured whole."""
SAMPLE = 2_000
"""Nodes that are looked at in larger graphs."""


def two_hop_node_homophily(view: View) -> Estimate:
    """The share of like nodes among those exactly two steps away, averaged over nodes.

    From 0 to 1 (Lim et al. 2021, arXiv:2110.14446). In large graphs the mean is over a
    random sample of nodes, whose two-hop neighbours are found in the whole graph.
    Unlabelled nodes may lie on the way. Nodes without two-hop neighbours are left out.
    """
    ids = np.flatnonzero(view.is_counted)
    whole = len(ids)
    if whole > EXACT:
        ids = np.random.default_rng(0).choice(ids, SAMPLE, replace=False)
    parts = np.array_split(np.sort(ids), 16)
    shares = np.concatenate(list(side_by_side(lambda part: _shares(view, part), parts)))
    shares = shares[~np.isnan(shares)]
    return Estimate.of_sample(shares, whole=whole, drawn=len(ids))


def _shares(view: View, ids: Int[np.ndarray, " ids"]) -> Float[np.ndarray, " ids"]:
    shares = np.full(len(ids), math.nan)
    _look(view.starts, view.columns, view.codes, view.num_counted, ids, shares)
    return shares


@compiled()
@no_type_check
def _look(starts, columns, codes, num_counted, ids, shares):
    met_by = np.empty(len(codes), np.int32)
    for node in range(len(codes)):
        met_by[node] = -1
    for place, node in enumerate(ids):
        near = columns[starts[node] : starts[node + 1]]
        met_by[node] = place
        for column in near:
            met_by[column] = place
        like = counted = 0
        for middle in near:
            for far in columns[starts[middle] : starts[middle + 1]]:
                if met_by[far] != place:
                    met_by[far] = place
                    counted += codes[far] < num_counted
                    like += codes[far] == codes[node]
        if counted:
            shares[place] = like / counted
