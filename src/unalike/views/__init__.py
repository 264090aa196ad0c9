"""Views: leak-free columns for every node, made from a graph and its known labels."""

from __future__ import annotations

from unalike.views.graph_views import GRAPH_VIEWS
from unalike.views.label_views import LABEL_VIEWS

BASES = "bases"
GUESSES = "guesses"

VIEWS = (*GRAPH_VIEWS, *LABEL_VIEWS, BASES)
"""Names of the groups of views."""
OPTIONAL_VIEWS = ("near-duplicates",)
"""Groups that are made only where they are asked for."""


def group_of(name: str) -> str:
    """The group of a view: `labels` for `labels:oi`."""
    return name.partition(":")[0]
