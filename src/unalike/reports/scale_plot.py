"""A picture of scale: time and memory, measured here and predicted for many hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unalike.reports.canvas import INK, panels, styled
from unalike.reports.scale import HELD, MAPPED, TERMS, asked_row, duration, total

COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#999999", "#e69f00", "#d55e00")
"""Told apart by people of every colour vision (Okabe and Ito)."""
MARKS = "os^Dv"
GB, MIB, MINUTE = 1e9, 2.0**20, 60.0


@styled
def draw_scale(found: dict[str, Any]) -> Any:
    """Time and memory: measured beside the model, and what the model predicts."""
    figure, axes = panels(4, columns=2, size=(5.0, 3.3))
    cores, there = found["cores"], found["predicted"]
    measured(axes[0], found, "seconds", "model_seconds", 1.0)
    axes[0].set(title=f"measured: an epoch, all on {cores} cores", ylabel="seconds")
    measured(axes[1], found, "peak_bytes", "model_peak_bytes", MIB)
    axes[1].set(title="measured: peak memory of a process", ylabel="MiB")
    axes[1].legend(fontsize=7)
    stacked(axes[2], there, "seconds_by", TERMS, MINUTE)
    size = f"{short(there['nodes'])} nodes, {short(there['edges'])} edges"
    axes[2].set(title=f"extrapolated: an epoch, {size}", ylabel="minutes")
    parts = {**HELD, **{key: f"{told} (in files)" for key, told in MAPPED.items()}}
    stacked(axes[3], there, "bytes_by", parts, GB)
    axes[3].set(title="extrapolated: memory of a host", ylabel="GB")
    row = asked_row(there)
    note(axes[2], there, total(row["seconds_by"], TERMS) / MINUTE, row["seconds"])
    return figure


def measured(
    axis: Any, found: dict[str, Any], key: str, model: str, unit: float
) -> None:
    """Points for what was measured, a line for what the model makes of it."""
    shapes = dict.fromkeys((row["hidden"], row["rows"]) for row in found["measured"])
    for place, shape in enumerate(shapes):
        rows = [r for r in found["measured"] if (r["hidden"], r["rows"]) == shape]
        counts = [row["processes"] for row in rows]
        style: Any = {"color": COLOURS[place % len(COLOURS)]}
        mark, told = MARKS[place % len(MARKS)], f"hidden {shape[0]}, batch {shape[1]:,}"
        axis.plot(counts, [row[key] / unit for row in rows], mark, label=told, **style)
        axis.plot(counts, [row[model] / unit for row in rows], linewidth=1, **style)
    axis.set_xscale("log", base=2)
    axis.set_xticks(counts, [str(count) for count in counts])
    axis.minorticks_off()
    axis.set_xlabel("processes (points measured, lines fitted)")
    axis.margins(y=0.12)
    axis.set_ylim(bottom=0)


def stacked(
    axis: Any, there: dict[str, Any], key: str, parts: Mapping[str, str], unit: float
) -> None:
    """A bar for each number of hosts, made of its parts."""
    rows = there["by_hosts"]
    below = [0.0] * len(rows)
    for colour, (part, told) in zip(COLOURS, parts.items(), strict=True):
        heights = [row[key][part] / unit for row in rows]
        axis.bar(range(len(rows)), heights, bottom=below, color=colour, label=told)
        below = [low + high for low, high in zip(below, heights, strict=True)]
    names = [str(row["hosts"]) for row in rows]
    axis.set_xticks(range(len(rows)), names, color=INK)
    axis.set_xlabel("hosts")
    axis.legend(fontsize=7)


def note(axis: Any, there: dict[str, Any], height: float, seconds: float) -> None:
    """Write the time of the asked number of hosts over its bar."""
    place = [row["hosts"] for row in there["by_hosts"]].index(there["hosts"])
    axis.annotate(
        duration(seconds),
        (place, height),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=8,
    )


def short(count: int) -> str:
    """A count in the largest word that it fills."""
    words = {"billion": 1e9, "million": 1e6, "thousand": 1e3}
    for word, size in words.items():
        if count >= size:
            return f"{count / size:g} {word}"
    return str(count)
