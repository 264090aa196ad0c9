"""Candidate methods and which inputs (edges, features) each uses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from unalike.data.graph import Graph
from unalike.experiments.result import to_flag
from unalike.methods import name_of
from unalike.methods.appnp import APPNP
from unalike.methods.base import MessagePassingMethod, Method
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.methods.gat import GAT, GATJK
from unalike.methods.gcn import GCN, GCNJK
from unalike.methods.gcnii import GCNII
from unalike.methods.gpr_gnn import GPRGNN
from unalike.methods.h2gcn import H2GCN
from unalike.methods.label_propagation import LabelPropagation
from unalike.methods.link import LINK
from unalike.methods.link_concat import LINKConcat
from unalike.methods.linkx import LINKX
from unalike.methods.mixhop import MixHop
from unalike.methods.mlp import MLP
from unalike.methods.sgc import SGC
from unalike.options import options_of


@dataclass(frozen=True)
class Candidate:
    """A method to try."""

    method: Method

    @cached_property
    def command_words(self) -> str:
        """The method as the command line has it: its name and unusual options."""
        usual = options_of(type(self.method)())
        told = [name_of(self.method)]
        for name, value in options_of(self.method).items():
            if value != usual[name]:
                told += to_flag(name, value, usual[name])
        return " ".join(told)

    @property
    def uses_edges(self) -> bool:
        """Do its answers depend on edges?"""
        return not isinstance(self.method, MLP)

    @property
    def uses_features(self) -> bool:
        """Do its answers depend on features?"""
        return not isinstance(self.method, LINK | LabelPropagation)

    @property
    def sees_both(self) -> bool:
        """Do its answers depend on both?"""
        return self.uses_edges and self.uses_features

    @property
    def needs_features(self) -> bool:
        """Has it nothing to go by where there are no features?"""
        return isinstance(self.method, MLP | MessagePassingMethod | CorrectAndSmooth)


LINKX_CANDIDATE, GCN_CANDIDATE = Candidate(LINKX()), Candidate(GCN())
BASELINES = [
    Candidate(MLP()),
    Candidate(LabelPropagation()),
    Candidate(LabelPropagation(hops=2)),
    Candidate(LINK()),
    LINKX_CANDIDATE,
    GCN_CANDIDATE,
]
"""What is always tried: features alone, edges alone, both, and averages."""

SEPARATE_EGO = [Candidate(kind()) for kind in (LINKConcat, GCNJK, H2GCN, MixHop, GATJK)]
"""Contenders that keep what a node is apart from what its neighbours are."""

MIXED_EGO = [
    Candidate(kind()) for kind in (SGC, GCNII, APPNP, GPRGNN, GAT, CorrectAndSmooth)
]
"""Contenders that blend the two."""

MAX_TWO_HOP_PATHS = 5e7
"""Paths of two steps past which neighbours of neighbours are too many to list."""

DIRECTED = [Candidate(LINKX(directions="both")), Candidate(LINK(directions="both"))]
"""What is tried as well where edges have a direction."""


def applicable(probes: list[Candidate], graph: Graph) -> list[Candidate]:
    """The probes that find in a graph what they need, and not too much of it."""
    degrees = graph.adjacency.degrees.double()
    crowded = float(degrees @ degrees) > MAX_TWO_HOP_PATHS
    return [
        probe
        for probe in probes
        if (graph.num_features or not probe.needs_features)
        and not (crowded and isinstance(probe.method, H2GCN))
    ]
