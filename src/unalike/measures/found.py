"""Found: what was measured of a graph, by name, and how that is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unalike.display import SMALL, Displayed, Sheet
from unalike.measures.table import MEASURES
from unalike.measures.words import in_words


class Found(dict[str, Any], Displayed):
    """A dictionary of counts and measures."""

    def sheet(self) -> Sheet:
        rows = [
            [spaced(name), value(name, self), in_words(name, self)]
            for name in scalars(self)
        ]
        matrix = self.get("compatibility", [])
        below = [compatibility_sheet(matrix)] if 0 < len(matrix) <= SMALL else []
        heads = ["measure", "value", "meaning"]
        return Sheet(headline("Measures", self), heads, rows, below=below)


def compatibility_sheet(matrix: list[list[float]]) -> Sheet:
    """Where the edges of each class end: from the class of the row to the column's."""
    classes = list(map(str, range(len(matrix))))
    rows = [
        [name, *(shown(share, ".3f") for share in row)]
        for name, row in zip(classes, matrix, strict=True)
    ]
    return Sheet("Compatibility", ["from \\ to", *classes], rows)


def headline(name: str, found: Mapping[str, Any]) -> str:
    """The size of a graph in one line."""
    kind = "directed" if found["directed"] else "undirected"
    told = (
        f"{name}: {found['num_nodes']:,} nodes, {found['num_edges']:,} {kind} edges, "
        f"{found['num_features']:,} features, {found['num_classes']} classes"
    )
    rest = {"self-loop": found["num_loops"], "unlabelled node": found["num_unlabelled"]}
    return told + "".join(
        f", {count:,} {what}{'s' if count > 1 else ''}"
        for what, count in rest.items()
        if count
    )


def spaced(name: str) -> str:
    """A measure as tables call it."""
    return name.replace("_", " ")


def scalars(found: Mapping[str, Any]) -> list[str]:
    """The measures that were found, but for matrices."""
    return [name for name in MEASURES if isinstance(found.get(name), float)]


def value(name: str, found: Mapping[str, Any]) -> str:
    """A value with its interval or its standard error."""
    told = shown(found[name], ".3f")
    if name in (intervals := found.get("intervals", {})):
        low, high = intervals[name]
        return told if math.isnan(low) else f"{told} [{low:.3f}, {high:.3f}]"
    error = found.get(f"{name}_standard_error")
    return f"{told} ± {error:.3f}" if error else told


def shown(number: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if number is None or math.isnan(number) else format(number, form)
