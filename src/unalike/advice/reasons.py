"""Reasons: why a method is recommended, and what a graph's edges are worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unalike.advice.probes import Probe
from unalike.advice.trial import Trial
from unalike.methods import name_of
from unalike.methods.label_propagation import LabelPropagation
from unalike.methods.method import Method

CLEAR = 1.0
"""Points below which a lead counts for nothing."""

WHAT: dict[str, str] = {
    "mlp": "looks at features alone",
    "label-propagation": "spreads known labels along edges; nothing is trained",
    "correct-and-smooth": "looks at features, then lets errors and labels spread",
    "link": "looks at whom a node is joined to, and at nothing else",
    "sgc": "averages features over neighbours, then a linear map",
    "gcn": "averages features over neighbours, layer by layer",
    "gat": "averages features over neighbours that it weighs",
    "gcn-jk": "averages over neighbours and keeps every layer's view",
    "gat-jk": "weighs neighbours and keeps every layer's view",
    "appnp": "looks at features, then averages the answers over neighbours",
    "h2gcn": "keeps a node, its neighbours and theirs apart",
    "mixhop": "looks at several distances side by side",
    "gpr-gnn": "learns how much each distance counts",
    "gcnii": "averages over neighbours but never forgets a node's own features",
    "link-concat": "looks at whom a node is joined to and at features together",
    "linkx": "looks at whom a node is joined to and at features apart, then mixes",
}
"""Every method in a clause."""

Sight = Callable[[Probe], bool]


def best(trials: Sequence[Trial], sight: Sight) -> Trial | None:
    """The best trial of the probes that see something."""
    seen = [trial for trial in trials if sight(trial.probe)]
    return max(seen, key=lambda trial: trial.expected, default=None)


def features_alone(probe: Probe) -> bool:
    """Does it see features and no edges?"""
    return not probe.sees_edges


def edges_alone(probe: Probe) -> bool:
    """Does it see edges and no features?"""
    return not probe.sees_features


def reason(trial: Trial, trials: Sequence[Trial]) -> str:
    """What the method of a trial does, and what that gained."""
    told = [what(trial.probe.method)]
    for sight, whose in ((features_alone, "features"), (edges_alone, "edges")):
        rival = best(trials, sight)
        if rival is not None and not sight(trial.probe):
            told.append(f"{trial.lead(rival):+.1f} against {whose} alone")
    return "; ".join(told)


def what(method: Method) -> str:
    """A method in a clause; its paper, where nobody has written one."""
    return WHAT.get(name_of(method), method.paper)


def verdicts(
    trials: Sequence[Trial], constant: float, *, features: bool = True
) -> list[str]:
    """What the trials say about a graph with or without features, in sentences."""
    top = best(trials, lambda probe: True)
    assert top is not None
    if top.expected - constant < CLEAR:
        return [
            f"Nothing that was tried beats the most frequent answer ({constant:.1f}): "
            "neither features nor edges tell the class."
        ]
    return [
        *worth(trials, features_alone, "edges", "features"),
        *(worth(trials, edges_alone, "features", "edges") if features else ()),
        *hops(trials),
    ]


def worth(trials: Sequence[Trial], without: Sight, extra: str, base: str) -> list[str]:
    """Does something add to what is known without it?"""
    alone = best(trials, without)
    joint = best(trials, lambda probe: not without(probe))
    if alone is None or joint is None:
        return []
    lead = joint.lead(alone)
    told = f"{alone.probe.words} {alone.expected:.1f}, {joint.probe.words}"
    if lead < CLEAR and not any(trial.probe.sees_both for trial in trials):
        # Each alone says nothing of what they are worth together.
        return []
    if lead < CLEAR:
        return [
            f"The {extra} add nothing to the {base} that could be seen "
            f"({told} {joint.expected:.1f})."
        ]
    return [
        f"The {extra} add {lead:.1f} points to the {base} "
        f"({told} {joint.expected:.1f})."
    ]


def hops(trials: Sequence[Trial]) -> list[str]:
    """Do labels agree one step away, or two?"""
    spread = {
        trial.probe.method.hops: trial
        for trial in trials
        if isinstance(trial.probe.method, LabelPropagation)
    }
    if not {1, 2} <= set(spread):
        return []
    near, far = spread[1], spread[2]
    if abs(far.lead(near)) < CLEAR:
        return []
    nearer = "one step" if near.lead(far) > 0 else "two steps"
    return [
        f"Labels agree better {nearer} away: spreading them gives "
        f"{near.expected:.1f} by one hop and {far.expected:.1f} by two."
    ]
