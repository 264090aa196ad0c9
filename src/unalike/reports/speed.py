"""Speed: what the engine bench measured, as a table and a picture."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from unalike.reports.canvas import CLASSES, INK, panels, styled

PEER = "PyG on CSR"


def epoch_table(found: dict[str, Any]) -> Table:
    """Time and memory of an epoch, and how many fit into the peer's."""
    table = Table(box=None, pad_edge=False)
    table.add_column("hidden", justify="right")
    table.add_column("an epoch of LINKX")
    for heading in ("ms", "times PyG on CSR", "GiB", "sparse ms", "floor ms"):
        table.add_column(heading, justify="right")
    for row in found["epochs"]:
        peer = peer_ms(found, row["hidden"])
        ratio = peer and row["ms"] and f"{peer / row['ms']:.1f}"
        numbers = (row["gib"], row.get("sparse_ms"), row.get("sparse_floor_ms"))
        table.add_row(
            str(row["hidden"]),
            row["what"],
            _number(row["ms"]),
            ratio or "–",
            *map(_number, numbers),
        )
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


def peer_ms(found: dict[str, Any], hidden: int) -> float | None:
    """The time that others are compared with."""
    for row in found["epochs"]:
        if row["hidden"] == hidden and row["what"] == PEER:
            return row["ms"]
    return None


@styled
def draw_speed(found: dict[str, Any]) -> Any:
    """A bar per contender and width."""
    widths = list(dict.fromkeys(row["hidden"] for row in found["epochs"]))
    figure, axes = panels(len(widths), columns=1, size=(6.4, 2.6))
    for axis, hidden in zip(axes, widths, strict=True):
        rows = [r for r in found["epochs"] if r["hidden"] == hidden and r["ms"]]
        for place, row in enumerate(rows):
            ours = "sparse_ms" in row
            axis.barh(place, row["ms"], color=CLASSES[0] if ours else "#b8c4cc")
            axis.text(row["ms"], place, f" {row['ms']:.3g} ms", va="center")
        axis.set_yticks(range(len(rows)), [row["what"] for row in rows], color=INK)
        axis.set_xlim(right=1.2 * max(row["ms"] for row in rows))
        axis.invert_yaxis()
        axis.set_title(f"an epoch of LINKX, hidden {hidden}, {found['device']}")
    return figure


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
