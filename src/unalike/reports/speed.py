"""Speed: what a bench measured, as tables and a picture."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from unalike.reports.canvas import CLASSES, INK, panels, styled

NUMBERS = {
    "ms": "ms",
    "times_fastest_peer": "× peer",
    "gib": "GiB",
    "share_of_its_memory": "of its memory",
    "sparse_ms": "sparse ms",
    "sparse_floor_ms": "floor ms",
}
"""Headings of what may be known of an epoch."""


def epoch_table(found: dict[str, Any]) -> Table:
    """Time and memory of an epoch, beside those of the fastest peer."""
    rows = found["epochs"]
    known = [key for key in NUMBERS if any(row.get(key) is not None for row in rows)]
    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    table.add_column("hidden", justify="right")
    table.add_column("an epoch of", no_wrap=True)
    for key in known:
        table.add_column(NUMBERS[key], justify="right")
    for row in rows:
        numbers = [_number(row.get(key)) for key in known]
        if row.get("out_of_memory"):
            numbers[:1] = ["out of memory"]
        table.add_row(row["method"], str(row["hidden"]), row["what"], *numbers)
    return table


def stack_table(found: dict[str, Any]) -> Table:
    """Model-epochs a second for stacks of several sizes."""
    table = Table(box=None, pad_edge=False)
    for heading in ("hidden", "runs at once", "ms", "model-epochs a second"):
        table.add_column(heading, justify="right")
    for row in found["stacks"]:
        rate = f"{row['model_epochs_per_second']:,.0f}"
        table.add_row(str(row["hidden"]), str(row["runs"]), _number(row["ms"]), rate)
    return table


@styled
def draw_speed(found: dict[str, Any]) -> Any:
    """A bar per contender, for each method and width."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in found["epochs"]:
        groups.setdefault((row["method"], row["hidden"]), []).append(row)
    figure, axes = panels(len(groups), columns=1, size=(6.4, 2.6))
    for axis, ((method, hidden), rows) in zip(axes, groups.items(), strict=True):
        _bars(axis, rows)
        axis.set_title(f"an epoch of {method}, hidden {hidden}, {found['device']}")
    return figure


def _bars(axis: Any, rows: list[dict[str, Any]]) -> None:
    for place, row in enumerate(rows):
        taken = row["ms"] or 0
        told = f" {taken:.3g} ms" if taken else " out of memory"
        axis.barh(place, taken, color=CLASSES[0] if row["ours"] else "#b8c4cc")
        axis.text(taken, place, told, va="center")
    axis.set_yticks(range(len(rows)), [row["what"] for row in rows], color=INK)
    axis.set_xlim(right=1.2 * max(row["ms"] or 1 for row in rows))
    axis.invert_yaxis()


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
