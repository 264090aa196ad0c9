"""Convention: which edges a measure counts, and for how much."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Convention:
    """What is said about the edges that papers treat in different ways.

    By default self-loops and edges with an unlabelled end are left out and every stored
    edge is read from its source. Nodes without a counted edge are left out of means.
    """

    loops: int = 0
    """What a self-loop counts for, where any other stored edge counts for 1.

    Where edges are read both ways a pair counts for 2; so does a loop with 2.
    """
    unlabelled: bool = False
    """Do the unlabelled nodes count as one more class?"""
    both_ways: bool = False
    """Is a directed edge read from its target as well?"""


STORED = Convention()
BOTH_WAYS = Convention(both_ways=True)
