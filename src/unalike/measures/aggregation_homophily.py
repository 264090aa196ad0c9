"""Aggregation homophily: does averaging over neighbours keep classes apart?"""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np

from unalike.kernels.compiled import compiled
from unalike.measures.blocks import over_blocks
from unalike.measures.ratio import ratio
from unalike.measures.view import View


def aggregation_homophily(view: View) -> float:
    """The share of nodes that, after averaging, resemble their own class the most.

    With r_u the class shares of u and its neighbours together, a node v counts if the
    mean of r_u * r_v over its own class is at least that over all other nodes. Means
    commute with products, so that the mean r of each class is all that is kept. From 0
    to 1; above 1/2 averaging helps (Luan et al. 2022, arXiv:2210.07606).
    """
    codes = view.graph.num_classes + 1
    rows = (view.starts, view.columns, view.codes, view.num_counted)
    settings = (*rows, view.convention.loops)

    def add(first: int, last: int) -> np.ndarray:
        sums = np.zeros((codes, codes))
        _add(*settings, first, last, sums)
        return sums

    sums = sum(over_blocks(view.starts, add), np.zeros((codes, codes)))
    nodes = np.bincount(view.codes[view.is_counted], minlength=codes)
    own = sums / nodes.clip(min=1)[:, None]
    others = (sums.sum(0) - sums) / (nodes.sum() - nodes).clip(min=1)[:, None]

    def count(first: int, last: int) -> int:
        return _count(*settings, first, last, own - others)

    if (nodes > 0).sum() < 2:
        return math.nan
    return ratio(sum(over_blocks(view.starts, count)), nodes.sum())


@compiled()
@no_type_check
def _add(starts, columns, codes, num_counted, loops, first, last, sums):
    for node in range(first, last):
        own = codes[node]
        if own >= num_counted:
            continue
        size = 1
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            size += weight * (codes[column] < num_counted)
        sums[own, own] += 1 / size
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            if codes[column] < num_counted:
                sums[own, codes[column]] += weight / size


@compiled()
@no_type_check
def _count(starts, columns, codes, num_counted, loops, first, last, lead):
    # Sums that ought to be equal differ in their last digits; equal ones count.
    slack, count = 1e-9, 0
    for node in range(first, last):
        own = codes[node]
        if own >= num_counted:
            continue
        size, ahead = 1, lead[own, own]
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            if codes[column] < num_counted:
                size += weight
                ahead += weight * lead[own, codes[column]]
        count += ahead >= -slack * size
    return count
