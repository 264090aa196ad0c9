"""MEASURES: every measure by its name, grouped by what it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unalike.measures.adjusted_homophily import adjusted_homophily
from unalike.measures.aggregation_homophily import aggregation_homophily
from unalike.measures.class_homophily import class_homophily
from unalike.measures.compatibility import compatibility
from unalike.measures.edge_homophily import edge_homophily
from unalike.measures.estimate import Estimate
from unalike.measures.generalised_edge_homophily import generalised_edge_homophily
from unalike.measures.label_informativeness import (
    label_informativeness,
    node_label_informativeness,
)
from unalike.measures.monophily import monophily
from unalike.measures.node_homophily import node_homophily
from unalike.measures.tally import Matrix, Tally
from unalike.measures.two_hop import two_hop_node_homophily
from unalike.measures.unbiased_homophily import unbiased_homophily
from unalike.measures.view import View
from unalike.measures.walks import (
    in_node_homophily,
    shared_source_homophily,
    shared_target_homophily,
)

OF_TALLY: dict[str, Callable[[Tally], float]] = {
    "edge_homophily": edge_homophily,
    "node_homophily": node_homophily,
    "class_homophily": class_homophily,
    "adjusted_homophily": adjusted_homophily,
    "unbiased_homophily": unbiased_homophily,
    "label_informativeness": label_informativeness,
    "node_label_informativeness": node_label_informativeness,
    "monophily": monophily,
}
"""Numbers that one pass over the edges gives all at once."""

MATRICES: dict[str, Callable[[Tally], Matrix]] = {"compatibility": compatibility}
"""Matrices that the same pass gives."""

OF_VIEW: dict[str, Callable[[View], float | Estimate]] = {
    "two_hop_node_homophily": two_hop_node_homophily,
    "aggregation_homophily": aggregation_homophily,
    "generalised_edge_homophily": generalised_edge_homophily,
    "in_node_homophily": in_node_homophily,
    "shared_target_homophily": shared_target_homophily,
    "shared_source_homophily": shared_source_homophily,
}
"""Numbers that need a walk of their own."""

MEASURES: dict[str, Callable[..., Any]] = {**OF_TALLY, **MATRICES, **OF_VIEW}
