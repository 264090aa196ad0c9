"""Duplicates: nodes with equal neighbour sets, their labels, and leaks into test."""

from __future__ import annotations

import math

import numpy as np

from unalike.measures.edge_statistics import GraphView
from unalike.measures.one_hop import safe_divide


def duplicate_nodes(view: GraphView) -> float:
    """The fraction of nodes with the same neighbour set as another node.

    From 0 to 1 (Platonov et al. 2023, arXiv:2302.11640). The neighbours of a directed
    graph are those that edges lead to. Unlabelled nodes count as any others; a node
    without neighbours has no duplicate.
    """
    sizes = np.bincount(view.neighbour_sets)
    return safe_divide(sizes[sizes > 1].sum(), view.num_nodes)


def duplicate_label_agreement(view: GraphView) -> float:
    """The mean over nodes of the fraction of their duplicates with the same label.

    From 0 to 1, over labelled nodes with a labelled duplicate (Platonov et al. 2023,
    arXiv:2302.11640). NaN without duplicates.
    """
    groups, classes = view.neighbour_sets[view.is_valid], view.class_ids[view.is_valid]
    sizes = np.bincount(groups)[groups]
    pairs = groups * view.num_valid_classes + classes
    _, index, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    same = counts[index.reshape(-1)]
    repeated = sizes > 1
    fractions = (same[repeated] - 1) / (sizes[repeated] - 1)
    return safe_divide(fractions.sum(), repeated.sum())


def duplicate_test_nodes(view: GraphView) -> float:
    """The fraction of test nodes that have a duplicate among the train nodes.

    From 0 to 1, the mean over all splits of the graph; a method may look these nodes up
    (Platonov et al. 2023, arXiv:2302.11640). NaN if no split has test nodes.
    """
    groups = view.neighbour_sets
    fractions = [
        float(np.isin(groups[split.test], groups[split.train]).mean())
        for split in view.splits
        if len(split.test)
    ]
    return sum(fractions) / len(fractions) if fractions else math.nan
