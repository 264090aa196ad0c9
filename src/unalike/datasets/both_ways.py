"""Both ways: the undirected form of a directed stored graph, stored beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unalike.datasets.lock import alone
from unalike.datasets.raw import retire
from unalike.datasets.root import data_root, stored_folder, stored_places
from unalike.draft import drafting
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.progress import SILENT, Progress
from unalike.store import Stored, open_graph

LARGE = 20_000_000
"""Edges up to which a graph is made symmetric in memory, each time."""

OF_A_DRAFT = {"format", "unalike", "arrays"}
"""What each draft writes of itself."""

MAKER = 1
"""Raised when the making changes, so that what older ones made is made again."""


def symmetric_graph(
    stored: Stored,
    name: str,
    data: Path | None = None,
    *,
    progress: Progress = SILENT,
) -> Graph:
    """A stored graph with every edge both ways; mapped too, if it is large."""
    graph, rows = stored.graph, stored.graph.adjacency
    if not graph.directed or rows.values is not None or rows.num_entries <= LARGE:
        return graph.symmetric()
    return both_ways(stored, name, data, progress=progress).graph


def both_ways(
    stored: Stored,
    name: str,
    data: Path | None = None,
    *,
    progress: Progress = SILENT,
) -> Stored:
    """The undirected form of a directed graph, made now if need be.

    Its features and labels are those of the directed graph, not copies of them.
    """
    name, origin = f"{name}-both-ways", _origin(stored)
    if found := _ready(name, data, origin):
        return found
    place = stored_folder(name, data)
    with alone(place):
        if found := _ready(name, data, origin):
            return found
        retire(place)
        return _make(stored, place, origin, progress)


def _origin(stored: Stored) -> dict[str, Any]:
    """What an undirected form is made of: a hash for each array."""
    arrays = stored.about["arrays"].items()
    return {"maker": MAKER, **{name: facts["sha256"] for name, facts in arrays}}


def _ready(name: str, data: Path | None, origin: dict[str, Any]) -> Stored | None:
    """The undirected form that is there, if it was made of the same arrays."""
    for place in stored_places(data_root(data), name):
        try:
            found = open_graph(place)
        except UserError:
            continue
        if found.about.get("provenance", {}).get("directed") == origin:
            return found
    return None


def _make(
    stored: Stored, place: Path, origin: dict[str, Any], progress: Progress
) -> Stored:
    # The compiler is slow to import, and what is there already needs none.
    from unalike.datasets.mirror import write_mirrored

    with drafting(place) as draft:
        rows = stored.graph.adjacency
        num_entries, num_loops = write_mirrored(draft, rows, progress)
        for name, facts in stored.about["arrays"].items():
            if name not in draft.names:
                draft.link(name, stored.folder / f"{name}.npy", facts)
        kept = {key: stored.about[key] for key in stored.about.keys() - OF_A_DRAFT}
        changed = {
            "num_edges": (num_entries + num_loops) // 2,
            "num_loops": num_loops,
            "directed": False,
            "provenance": {**kept.get("provenance", {}), "directed": origin},
        }
        draft.commit({**kept, **changed})
    return open_graph(place)
