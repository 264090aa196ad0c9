"""Candidate methods and which inputs (edges, features) each uses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from unalike.data.graph import Graph
from unalike.experiments.result import to_flag
from unalike.methods import METHODS, name_of
from unalike.methods.base import Method
from unalike.methods.gcn import GCN
from unalike.methods.h2gcn import H2GCN
from unalike.methods.label_propagation import LabelPropagation
from unalike.methods.link import LINK
from unalike.methods.linkx import LINKX
from unalike.methods.mlp import MLP
from unalike.methods.views import Views, ViewsTrees
from unalike.options import options_of
from unalike.training.state import Training


@dataclass(frozen=True)
class Candidate:
    """A method with its options, to try on a graph."""

    method: Method

    @cached_property
    def command_words(self) -> str:
        """The method and its options that are not default, as on the command line."""
        defaults = options_of(type(self.method)(), omit=False)
        words = [name_of(self.method)]
        for name, value in options_of(self.method, omit=False).items():
            if value != defaults[name]:
                words += to_flag(name, value, defaults[name])
        return " ".join(words)

    @property
    def needs_features(self) -> bool:
        """Whether it makes no sense on a graph without features."""
        return self.method.needs_features or self is FEATURE_LINKX_CANDIDATE

    @property
    def uses_edges(self) -> bool:
        return not isinstance(self.method, MLP)

    @property
    def uses_features(self) -> bool:
        return not isinstance(self.method, LINK | LabelPropagation)


LINKX_CANDIDATE, GCN_CANDIDATE = Candidate(LINKX()), Candidate(GCN())
FEATURE_LINKX_CANDIDATE = Candidate(
    LINKX(hidden=128, feature_layers=2, training=Training(lr=0.002))
)
"""LINKX for strong features. No one setting of LINKX is good on all graphs. Of the 384
of the paper's grid, the best three by mean validation score on texas, wisconsin,
cornell and cora have two feature layers, and this is the smallest of them; the default
is far better where the edges do the work."""
BASELINES = [
    Candidate(MLP()),
    Candidate(LabelPropagation()),
    Candidate(LabelPropagation(hops=2)),
    Candidate(LINK()),
    LINKX_CANDIDATE,
    FEATURE_LINKX_CANDIDATE,
    GCN_CANDIDATE,
]
"""Candidates that are always tried: features alone, edges alone, both, and averages."""

QUICK_VIEWS = ("structure", "features", "spectrum", "labels", "duplicates")
"""Groups of views that need no base methods."""

SEPARATE_EGO = [
    Candidate(ViewsTrees(views=QUICK_VIEWS, rounds=1)),
    Candidate(Views(views=QUICK_VIEWS, rounds=1, head="mlp")),
    *(
        Candidate(METHODS[name]())
        for name in ("link-concat", "gcn-jk", "h2gcn", "mixhop", "gat-jk")
    ),
]
"""Candidates that separate the features of a node from those of its neighbours."""

MIXED_EGO = [
    Candidate(METHODS[name]())
    for name in ("sgc", "gcnii", "appnp", "gpr-gnn", "gat", "correct-and-smooth")
]
"""Candidates that average the two."""

MAX_TWO_HOP_PATHS = 5e7
"""Maximum number of two-hop paths for methods that build the two-hop adjacency."""

DIRECTED = [Candidate(LINKX(directions="both")), Candidate(LINK(directions="both"))]
"""Further candidates for directed graphs."""


def applicable(candidates: list[Candidate], graph: Graph) -> list[Candidate]:
    """The candidates that use what a graph has, and not too many two-hop paths."""
    weighted = graph.adjacency.values is not None
    degrees = graph.adjacency.degrees.double()
    too_many_paths = float(degrees @ degrees) > MAX_TWO_HOP_PATHS
    return [
        candidate
        for candidate in candidates
        if (graph.num_features or not candidate.needs_features)
        and (candidate.method.uses_edge_weights or not weighted)
        and not (too_many_paths and isinstance(candidate.method, H2GCN))
    ]
