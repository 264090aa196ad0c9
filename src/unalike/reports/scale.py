"""Scale: what several processes took and many hosts would, as tables and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

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
    table = headed("s/epoch", "× first", "model", "bytes sent/step", "mean", "most")
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
    table = headed("peak MiB", "model", "table MiB", "of first", "1/N")
    for row in found["measured"]:
        table.add_row(
            *shape_of(row),
            *(f"{row[key] / 2**20:,.0f}" for key in ("peak_bytes", "model_peak_bytes")),
            f"{row['table_bytes'] / 2**20:,.1f}",
            f"{row['share_of_table']:.3f}",
            f"{found['measured'][0]['processes'] / row['processes']:.3f}",
        )
    return table


def headed(*headings: str) -> Table:
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
        f"{there['latency']:g} µs: [bold]{duration(row['seconds'])} an epoch, "
        f"{held / 1e9:,.0f} GB on each host[/], {mapped / 1e9:,.0f} GB more mapped "
        "from files."
    )
    yield f"  time: {shares(row['seconds_by'], TERMS)}"
    yield f"  memory: {shares(row['bytes_by'], HELD)}"


def asked_row(there: Mapping[str, Any]) -> Any:
    """The prediction for as many hosts as were asked for."""
    return next(row for row in there["by_hosts"] if row["hosts"] == there["hosts"])


def total(amounts: Mapping[str, float], parts: Mapping[str, str]) -> float:
    """The sum of some parts."""
    return sum(amounts[part] for part in parts)


def shares(amounts: Mapping[str, float], parts: Mapping[str, str]) -> str:
    """The share of each part, the largest first."""
    whole = total(amounts, parts)
    order = sorted(parts, key=lambda part: -amounts[part])
    return ", ".join(f"{parts[part]} {amounts[part] / whole:.0%}" for part in order)


def duration(seconds: float) -> str:
    """A time in the largest unit that it fills."""
    units = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
    unit = next((name for name, size in units.items() if seconds >= size), "seconds")
    return f"{seconds / units[unit]:.3g} {unit}"
