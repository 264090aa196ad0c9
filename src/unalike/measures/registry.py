"""Table of homophily measures by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unalike.measures.aggregation import (
    aggregation_homophily,
    generalised_edge_homophily,
)
from unalike.measures.duplicates import (
    duplicate_label_agreement,
    duplicate_nodes,
    duplicate_test_nodes,
)
from unalike.measures.edge_statistics import EdgeStatistics, GraphView, Matrix
from unalike.measures.one_hop import (
    adjusted_homophily,
    class_homophily,
    compatibility,
    edge_homophily,
    label_informativeness,
    monophily,
    node_homophily,
    node_label_informativeness,
    unbiased_homophily,
)
from unalike.measures.two_hop import (
    Estimate,
    in_node_homophily,
    shared_source_homophily,
    shared_target_homophily,
    two_hop_node_homophily,
)

ONE_PASS_MEASURES: dict[str, Callable[[EdgeStatistics], float]] = {
    "edge_homophily": edge_homophily,
    "node_homophily": node_homophily,
    "class_homophily": class_homophily,
    "adjusted_homophily": adjusted_homophily,
    "unbiased_homophily": unbiased_homophily,
    "label_informativeness": label_informativeness,
    "node_label_informativeness": node_label_informativeness,
    "monophily": monophily,
}
"""Scalar measures of the statistics of one pass over the edges."""

MATRIX_MEASURES: dict[str, Callable[[EdgeStatistics], Matrix]] = {
    "compatibility": compatibility
}
"""Matrix measures of the same statistics."""

OWN_PASS_MEASURES: dict[str, Callable[[GraphView], float | Estimate]] = {
    "two_hop_node_homophily": two_hop_node_homophily,
    "aggregation_homophily": aggregation_homophily,
    "generalised_edge_homophily": generalised_edge_homophily,
    "in_node_homophily": in_node_homophily,
    "shared_target_homophily": shared_target_homophily,
    "shared_source_homophily": shared_source_homophily,
    "duplicate_nodes": duplicate_nodes,
    "duplicate_label_agreement": duplicate_label_agreement,
    "duplicate_test_nodes": duplicate_test_nodes,
}
"""Measures that need a pass of their own."""

MEASURES: dict[str, Callable[..., Any]] = {
    **ONE_PASS_MEASURES,
    **MATRIX_MEASURES,
    **OWN_PASS_MEASURES,
}
