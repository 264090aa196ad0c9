"""Explanation: which neighbours and which features pushed a prediction.

Edges and features enter a row-wise network through a linear layer, as a sum of one
vector for each. What follows is linear as long as no ReLU changes sides: the slope of
the log-odds times a vector is that vector's share, and all shares and a rest that no
input has a part in add up to the log-odds. What taking one input away would change is
found by taking its vector out of the sum. Both are exact. The changes do not add up,
since ReLUs may change sides.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

import torch

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.importing.encoding import Encoder
from unalike.models.case import Case, Part
from unalike.models.model import Model

FEATURE = "feature"
ENDS = {1: ("neighbour",), 2: ("points at", "pointed at by")}
"""What a neighbour is called, by how many columns there are for each."""


@dataclass(frozen=True)
class Push:
    """A neighbour or a feature, and what it did to the log-odds."""

    kind: str
    name: Hashable
    value: float
    share: float
    """Its part of the log-odds."""
    change: float
    """What the log-odds would lose without it."""


@dataclass(frozen=True)
class Explanation:
    """Why a node was given a class, against the class that came next."""

    label: Hashable
    against: Hashable
    probability: float
    log_odds: float
    """Of the class against the next one."""
    rest: float
    """What is left of them when all shares are taken off."""
    pushes: list[Push]
    """The largest shares first."""


def explain(model: Model, prepared: Graph) -> Iterator[Explanation]:
    """Explain the predictions of rows that the method has prepared."""
    model.check_row_wise()
    if not isinstance(prepared.features, Adjacency):
        prepared = replace(prepared, features=prepared.features.float())
    every = model.score_rows(prepared)
    shares = model.prediction(every).probabilities
    for place, scores in enumerate(every):
        best, other, *_ = scores.argsort(descending=True, stable=True).tolist()
        row = prepared.rows(torch.tensor([place])).to(model.device)
        case = Case(model.network, row, (best, other), model.temperature)
        found = (push for part in case.parts() for push in _pushes(model, part))
        pushes = [push for push in found if push.share or push.change]
        yield Explanation(
            label=model.classes[best],
            against=model.classes[other],
            probability=float(shares[place, best]),
            log_odds=case.log_odds,
            rest=case.log_odds - sum(push.share for push in pushes),
            pushes=sorted(pushes, key=lambda push: -abs(push.share)),
        )


def feature_names(encoder: Encoder | None, count: int) -> list[str]:
    """What each feature is called: its column, and of texts the category too."""
    if encoder is None:
        return [f"{FEATURE} {place}" for place in range(count)]
    return [
        name
        for column in encoder.columns
        for name in [f"{column.name} = {c}" for c in column.categories] or [column.name]
    ]


def _pushes(model: Model, part: Part) -> Iterator[Push]:
    numbers = (part.values, part.shares, part.changes)
    told = _neighbours(model, part) if part.of_edges else _features(model, part)
    for (kind, name), *known in zip(told, *(n.tolist() for n in numbers), strict=True):
        yield Push(kind, name, *known)


def _neighbours(model: Model, part: Part) -> Iterator[tuple[str, Hashable]]:
    known = model.facts.num_known
    kinds = ENDS[model.width // known]
    names = model.known_names
    for column in part.columns.tolist():
        yield kinds[column // known], names[column % known].as_py()


def _features(model: Model, part: Part) -> Iterator[tuple[str, Hashable]]:
    names = feature_names(model.encoder, model.facts.num_features)
    for column in part.columns.tolist():
        yield FEATURE, names[column]
