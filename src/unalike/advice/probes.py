"""Probes: the methods that are tried on a graph, and what each of them sees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from unalike.experiments.result import flag
from unalike.graph import Graph
from unalike.methods import name_of
from unalike.methods.appnp import APPNP
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.methods.gat import GAT
from unalike.methods.gat_jk import GATJK
from unalike.methods.gcn import GCN
from unalike.methods.gcn_jk import GCNJK
from unalike.methods.gcnii import GCNII
from unalike.methods.gpr_gnn import GPRGNN
from unalike.methods.h2gcn import H2GCN
from unalike.methods.label_propagation import LabelPropagation
from unalike.methods.link import LINK
from unalike.methods.link_concat import LINKConcat
from unalike.methods.linkx import LINKX
from unalike.methods.method import MessagePassing, Method
from unalike.methods.mixhop import MixHop
from unalike.methods.mlp import MLP
from unalike.methods.sgc import SGC
from unalike.options import options_of


@dataclass(frozen=True)
class Probe:
    """A method to try."""

    method: Method

    @cached_property
    def words(self) -> str:
        """The method as the command line has it: its name and unusual options."""
        usual = options_of(type(self.method)())
        told = [name_of(self.method)]
        for name, value in options_of(self.method).items():
            if value != usual[name]:
                told += flag(name, value, usual[name])
        return " ".join(told)

    @property
    def sees_edges(self) -> bool:
        """Do its answers depend on edges?"""
        return not isinstance(self.method, MLP)

    @property
    def sees_features(self) -> bool:
        """Do its answers depend on features?"""
        return not isinstance(self.method, LINK | LabelPropagation)

    @property
    def sees_both(self) -> bool:
        """Do its answers depend on both?"""
        return self.sees_edges and self.sees_features

    @property
    def needs_features(self) -> bool:
        """Has it nothing to go by where there are no features?"""
        return isinstance(self.method, MLP | MessagePassing | CorrectAndSmooth)


MIXED, AVERAGED = Probe(LINKX()), Probe(GCN())
QUESTIONS = [
    Probe(MLP()),
    Probe(LabelPropagation()),
    Probe(LabelPropagation(hops=2)),
    Probe(LINK()),
    MIXED,
    AVERAGED,
]
"""What is always tried: features alone, edges alone, both, and averages."""

APART = [Probe(kind()) for kind in (LINKConcat, GCNJK, H2GCN, MixHop, GATJK)]
"""Contenders that keep what a node is apart from what its neighbours are."""

BLENDED = [Probe(kind()) for kind in (SGC, GCNII, APPNP, GPRGNN, GAT, CorrectAndSmooth)]
"""Contenders that blend the two."""

MOST_PATHS = 5e7
"""Paths of two steps past which neighbours of neighbours are too many to list."""

OF_DIRECTED = [Probe(LINKX(directions="both")), Probe(LINK(directions="both"))]
"""What is tried as well where edges have a direction."""


def suiting(probes: list[Probe], graph: Graph) -> list[Probe]:
    """The probes that find in a graph what they need, and not too much of it."""
    degrees = graph.adjacency.degrees.double()
    crowded = float(degrees @ degrees) > MOST_PATHS
    return [
        probe
        for probe in probes
        if (graph.num_features or not probe.needs_features)
        and not (crowded and isinstance(probe.method, H2GCN))
    ]
