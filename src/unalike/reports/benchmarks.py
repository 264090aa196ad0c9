"""Tables and plots of `unalike bench`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from unalike.reports.plotting import CLASSES, TEXT_COLOR, panels, with_style

# Speed: what a bench measured, as tables and a picture.


COLUMNS = {
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
    known = [key for key in COLUMNS if any(row.get(key) is not None for row in rows)]
    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    table.add_column("hidden", justify="right")
    table.add_column("an epoch of", no_wrap=True)
    for key in known:
        table.add_column(COLUMNS[key], justify="right")
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


@with_style
def plot_epoch_times(found: dict[str, Any]) -> Any:
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
    axis.set_yticks(range(len(rows)), [row["what"] for row in rows], color=TEXT_COLOR)
    axis.set_xlim(right=1.2 * max(row["ms"] or 1 for row in rows))
    axis.invert_yaxis()


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


# Scale: what several processes took and many hosts would, as tables and a picture.


TERMS = {
    "gather": "gathering table rows",
    "move": "AdamW on the table",
    "dense": "dense layers",
    "step": "starting steps",
    "byte": "sending bytes",
    "message": "waiting for messages",
}
HELD = {
    "table": "table and optimizer",
    "nodes": "labels, degrees, scores",
    "batch": "batch",
    "program": "program",
}
MAPPED = {"edges": "edges", "features": "features"}


def time_table(found: dict[str, Any]) -> Table:
    """Seconds and bytes, a line for each number of processes and shape."""
    table = scaling_table(
        "s/epoch", "× first", "model", "bytes sent/step", "mean", "most"
    )
    for row in found["measured"]:
        formula = row["step_bytes_formula"]
        table.add_row(
            *shape_of(row),
            f"{row['seconds']:.3f}",
            f"{row['times_first']:.2f}",
            f"{row['model_seconds']:.3f}",
            f"{row['step_bytes']:,.0f}",
            f"{row['step_bytes'] / formula:.2f}",
            f"{row['most_step_bytes'] / formula:.2f}",
        )
    return table


def memory_table(found: dict[str, Any]) -> Table:
    """Memory, a line for each number of processes and shape."""
    table = scaling_table("peak MiB", "model", "table MiB", "of first", "1/N")
    for row in found["measured"]:
        table.add_row(
            *shape_of(row),
            *(f"{row[key] / 2**20:,.0f}" for key in ("peak_bytes", "model_peak_bytes")),
            f"{row['table_bytes'] / 2**20:,.1f}",
            f"{row['share_of_table']:.3f}",
            f"{found['measured'][0]['processes'] / row['processes']:.3f}",
        )
    return table


def scaling_table(*headings: str) -> Table:
    """An empty table whose lines begin with a number of processes and a shape."""
    table = Table(box=None, pad_edge=False)
    for heading in ("processes", "hidden", "batch", *headings):
        table.add_column(heading, justify="right")
    return table


def shape_of(row: dict[str, Any]) -> tuple[str, str, str]:
    """What a line begins with."""
    return str(row["processes"]), str(row["hidden"]), f"{row['rows']:,}"


def predicted_lines(found: dict[str, Any]) -> Iterator[str]:
    """What was measured and what is extrapolated, in words."""
    graph, model, there = found["graph"], found["model"], found["predicted"]
    row = asked_row(there)
    held, mapped = (total(row["bytes_by"], parts) for parts in (HELD, MAPPED))
    yield ""
    yield (
        f"Measured: {graph['nodes']:,} nodes and {graph['entries']:,} stored edges; "
        f"all processes shared {found['cores']} cores, a thread each. Bytes sent are "
        "the mean of a process; mean and most are shares of 2 × batch × hidden × 4."
    )
    yield (
        "Fitted: six rates of time; half of the measured epochs are within "
        f"{model['median_error']:.0%} of the model."
    )
    if len(found["measured"]) < len(TERMS):
        yield "  So few epochs cannot tell them apart: name more widths and batches."
    yield (
        f"Extrapolated: {there['nodes']:,} nodes, {there['edges']:,} edges, hidden "
        f"{there['hidden']}, batches of {there['batch']:,} rows on {there['hosts']} "
        f"hosts of {there['cores']} cores with {there['bandwidth']:g} Gbit/s and "
        f"{there['latency']:g} µs: [bold]{format_seconds(row['seconds'])} an epoch, "
        f"{held / 1e9:,.0f} GB on each host[/], {mapped / 1e9:,.0f} GB more mapped "
        "from files."
    )
    yield f"  time: {format_shares(row['seconds_by'], TERMS)}"
    yield f"  memory: {format_shares(row['bytes_by'], HELD)}"


def asked_row(there: Mapping[str, Any]) -> Any:
    """The prediction for as many hosts as were asked for."""
    return next(row for row in there["by_hosts"] if row["hosts"] == there["hosts"])


def total(amounts: Mapping[str, float], parts: Mapping[str, str]) -> float:
    """The sum of some parts."""
    return sum(amounts[part] for part in parts)


def format_shares(amounts: Mapping[str, float], parts: Mapping[str, str]) -> str:
    """The share of each part, the largest first."""
    whole = total(amounts, parts)
    order = sorted(parts, key=lambda part: -amounts[part])
    return ", ".join(f"{parts[part]} {amounts[part] / whole:.0%}" for part in order)


def format_seconds(seconds: float) -> str:
    """A time in the largest unit that it fills."""
    units = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
    unit = next((name for name, size in units.items() if seconds >= size), "seconds")
    return f"{seconds / units[unit]:.3g} {unit}"


# A picture of scale: time and memory, measured here and predicted for many hosts.


COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#999999", "#e69f00", "#d55e00")
"""Told apart by people of every colour vision (Okabe and Ito)."""
MARKS = "os^Dv"
GB, MIB, MINUTE = 1e9, 2.0**20, 60.0


@with_style
def plot_scaling(found: dict[str, Any]) -> Any:
    """Time and memory: measured beside the model, and what the model predicts."""
    figure, axes = panels(4, columns=2, size=(5.0, 3.3))
    cores, there = found["cores"], found["predicted"]
    measured(axes[0], found, "seconds", "model_seconds", 1.0)
    axes[0].set(title=f"measured: an epoch, all on {cores} cores", ylabel="seconds")
    measured(axes[1], found, "peak_bytes", "model_peak_bytes", MIB)
    axes[1].set(title="measured: peak memory of a process", ylabel="MiB")
    axes[1].legend(fontsize=7)
    stacked(axes[2], there, "seconds_by", TERMS, MINUTE)
    size = f"{format_count(there['nodes'])} nodes, {format_count(there['edges'])} edges"
    axes[2].set(title=f"extrapolated: an epoch, {size}", ylabel="minutes")
    parts = {**HELD, **{key: f"{told} (in files)" for key, told in MAPPED.items()}}
    stacked(axes[3], there, "bytes_by", parts, GB)
    axes[3].set(title="extrapolated: memory of a host", ylabel="GB")
    row = asked_row(there)
    annotate_bar(
        axes[2], there, total(row["seconds_by"], TERMS) / MINUTE, row["seconds"]
    )
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
    axis.set_xticks(range(len(rows)), names, color=TEXT_COLOR)
    axis.set_xlabel("hosts")
    axis.legend(fontsize=7)


def annotate_bar(
    axis: Any, there: dict[str, Any], height: float, seconds: float
) -> None:
    """Write the time of the asked number of hosts over its bar."""
    place = [row["hosts"] for row in there["by_hosts"]].index(there["hosts"])
    axis.annotate(
        format_seconds(seconds),
        (place, height),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=8,
    )


def format_count(count: int) -> str:
    """A count in the largest word that it fills."""
    words = {"billion": 1e9, "million": 1e6, "thousand": 1e3}
    for word, size in words.items():
        if count >= size:
            return f"{count / size:g} {word}"
    return str(count)
