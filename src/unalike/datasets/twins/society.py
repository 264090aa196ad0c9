"""The nodes of a twin: the class, the degree, the attraction and the taste of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unalike.errors import UserError

LEAST_LIKING = 1e-3
"""Every node likes every class a little, so that a forced edge finds its target."""

_LARGEST = 8
"""No node sends edges to more than one in so many of the others."""


@dataclass(frozen=True)
class Tail:
    """A log-normal body with a power tail: exp(spread * Z) / U ** (1 / (exponent - 1)).

    Z is normal and U uniform, so the density falls like degree ** -exponent.
    """

    exponent: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        if not (self.exponent > 1 and self.spread >= 0):
            raise UserError(
                f"A tail has an exponent above 1 and a spread of 0 or more, not {self}."
            )

    def draw(
        self, random: np.random.Generator, count: int, total: int, limit: int
    ) -> np.ndarray:
        """So many numbers that add up to a total, none above the limit."""
        if total > limit * count / 2:
            raise UserError(f"{total} edges are too many for {count} nodes of a class.")
        weights = np.exp(self.spread * random.standard_normal(count))
        weights *= (1 - random.random(count)) ** (-1 / (self.exponent - 1))
        capped = np.zeros(count, bool)
        amounts = weights
        while True:
            room = total - limit * capped.sum()
            amounts = weights * (room / weights[~capped].sum())
            amounts[capped] = limit
            if not (amounts > limit).any():
                return amounts
            capped |= amounts > limit


@dataclass(frozen=True, eq=False)
class Society:
    """What is drawn of each node before there are edges."""

    groups: np.ndarray
    """The class of each node; nodes without a label are a class of their own."""
    degrees: np.ndarray
    """Edges that leave each node."""
    attractions: np.ndarray
    """The weight of each node when a target is drawn within its class."""
    likings: np.ndarray
    """How much each node likes each class, 1 being its own class's average."""

    @property
    def num_nodes(self) -> int:
        return len(self.groups)

    def members(self, group: int) -> np.ndarray:
        return np.flatnonzero(self.groups == group)


def draw_society(
    sizes: np.ndarray,
    edges: np.ndarray,
    *,
    leaving: Tail,
    arriving: Tail | None,
    monophily: float,
    random: np.random.Generator,
) -> Society:
    """Draw every node, given the nodes of each class and the edges between classes.

    Without a tail of arriving edges, a node attracts as many as it sends out.
    """
    groups = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    society = Society(
        groups,
        degrees=np.zeros(len(groups), np.int64),
        attractions=np.zeros(len(groups)),
        likings=np.ones((len(groups), len(sizes)), np.float32),
    )
    limit = max(len(groups) // _LARGEST, 1)
    for group, size in enumerate(sizes.tolist()):
        rows = society.members(group)
        sent, received = int(edges[group].sum()), int(edges[:, group].sum())
        amounts = leaving.draw(random, size, sent, limit)
        society.degrees[rows] = apportion(amounts, sent)
        if arriving is not None:
            amounts = arriving.draw(random, size, received, limit)
        society.attractions[rows] = amounts
        met = edges[group] + edges[:, group]
        society.likings[rows] = draw_likings(random, size, met, monophily)
    return society


def draw_likings(
    random: np.random.Generator, count: int, met: np.ndarray, monophily: float
) -> np.ndarray:
    """A taste for each node of a class that meets the others in given proportions.

    The tastes are Dirichlet around the proportions b with the concentration
    (1 - monophily) / monophily, so that any two neighbours of a node are correlated
    by `monophily`; divided by b they become likings, which are 1 on average.
    """
    if not monophily or not met.any():
        return np.ones((count, len(met)))
    base = met / met.sum()
    shapes = base * (1 - monophily) / monophily
    tastes = random.standard_gamma(shapes, (count, len(met)))
    tastes /= np.maximum(tastes.sum(1, keepdims=True), 1e-300)
    likings = np.divide(tastes, base, out=np.ones_like(tastes), where=base > 0)
    return np.maximum(likings, LEAST_LIKING)


def apportion(amounts: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers in proportion to the amounts, each rounded up or down, that add up.

    The running sum is rounded instead of each amount (systematic rounding).
    """
    shares = np.cumsum(amounts) / max(np.sum(amounts), 1e-300)
    return np.diff(np.floor(shares * total + 0.5).astype(np.int64), prepend=0)
