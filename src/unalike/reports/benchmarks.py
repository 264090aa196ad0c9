"""Tables and plots of `unalike bench`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from unalike.bench.cost_model import MAPPED, RESIDENT, TERMS
from unalike.display import TextTable
from unalike.formatting import format_duration
from unalike.reports.plotting import CLASSES, TEXT_COLOR, panels, with_style

# Epochs, compared with other libraries.


EPOCH_COLUMNS = {
    "ms": "ms",
    "times_fastest_peer": "× peer",
    "gib": "GiB",
    "share_of_its_memory": "of its memory",
    "sparse_ms": "sparse ms",
    "sparse_floor_ms": "floor ms",
}


def epoch_table(result: dict[str, Any]) -> TextTable:
    """Time and memory of an epoch, compared with the fastest baseline."""
    rows = result["epochs"]
    keys = [k for k in EPOCH_COLUMNS if any(row.get(k) is not None for row in rows)]
    cells = [
        [row["method"], str(row["hidden"]), row["what"]]
        + [measurement(row, key) for key in keys]
        for row in rows
    ]
    numbers = [EPOCH_COLUMNS[key] for key in keys]
    headings = ("method", "hidden", "an epoch of", *numbers)
    return TextTable.from_rows("", headings, cells, right=("hidden", *numbers))


def stack_table(result: dict[str, Any]) -> TextTable:
    """Model-epochs per second for stacks of several sizes."""
    rows = [
        [
            str(row["hidden"]),
            str(row["runs"]),
            format_measurement(row["ms"]),
            f"{row['model_epochs_per_second']:,.0f}",
        ]
        for row in result["stacks"]
    ]
    headings = ("hidden", "runs at once", "ms", "model-epochs a second")
    return TextTable.from_rows("", headings, rows, right=headings)


def measurement(row: dict[str, Any], key: str) -> str:
    """A measurement as text; instead of the time, that it failed."""
    out_of_memory = row.get("out_of_memory") or row.get("failed") == "out of memory"
    if key in ("ms", "step_ms") and (out_of_memory or "failed" in row):
        return "out of memory" if out_of_memory else "failed"
    return format_measurement(row.get(key))


def format_measurement(value: float | None) -> str:
    """A number with three digits, or all digits before the point."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


@with_style
def plot_epoch_times(result: dict[str, Any]) -> Any:
    """A bar chart of epoch times, a panel for each method and width."""
    groups = grouped(result["epochs"], "method")
    figure, axes = panels(len(groups), columns=1, size=(6.4, 2.6))
    for ax, ((method, hidden), rows) in zip(axes, groups.items(), strict=True):
        for y, row in enumerate(rows):
            ms = row["ms"] or 0
            text = f" {ms:.3g} ms" if ms else " out of memory"
            ax.barh(y, ms, color=CLASSES[0] if row["ours"] else "#b8c4cc")
            ax.text(ms, y, text, va="center")
        ax.set_yticks(range(len(rows)), [row["what"] for row in rows], color=TEXT_COLOR)
        ax.set_xlim(right=1.2 * max(row["ms"] or 1 for row in rows))
        ax.invert_yaxis()
        ax.set_title(f"an epoch of {method}, hidden {hidden}, {result['device']}")
    return figure


def grouped(
    rows: Iterable[dict[str, Any]], name: str
) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Rows by the value of a name and the hidden width."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row[name], row["hidden"]), []).append(row)
    return groups


# Layers, compared with those of PyTorch Geometric.


LAYER_COLUMNS = {
    "forward_ms": "forward ms",
    "times_forward": "× PyG",
    "step_ms": "step ms",
    "times_step": "× PyG",
    "gib": "GiB",
    "share_of_memory": "of its memory",
}


def layer_table(result: dict[str, Any]) -> TextTable:
    """Forward pass, training step and memory of layers, next to the fastest of PyG."""
    rows = [
        [row["layer"], row["graph"], str(row["hidden"]), implementation(row)]
        + [measurement(row, key) for key in LAYER_COLUMNS]
        for row in result["layers"]
    ]
    numbers = LAYER_COLUMNS.values()
    headings = ("layer", "graph", "hidden", "implementation", *numbers)
    return TextTable.from_rows("", headings, rows, right=("hidden", *numbers))


def implementation(row: dict[str, Any]) -> str:
    """A library and the form of its edges, and whether the network was compiled."""
    return f"{row['what']}, compiled" if row["compiled"] else row["what"]


def layer_notes(result: dict[str, Any]) -> Iterator[str]:
    """Why layers failed, a line for each reason."""
    reasons = {
        f"{row['layer']}, {implementation(row)}: {row['failed']}": None
        for row in result["layers"]
        if row.get("failed", "out of memory") != "out of memory"
    }
    if reasons:
        yield ""
    yield from reasons


@with_style
def plot_layer_times(result: dict[str, Any]) -> Any:
    """How many times as fast as the fastest form of PyG a training step is."""
    ours = (row for row in result["layers"] if row["ours"] and not row["compiled"])
    groups = grouped(ours, "graph")
    figure, axes = panels(len(groups), columns=1, size=(6.4, 2.8))
    for ax, ((graph, hidden), rows) in zip(axes, groups.items(), strict=True):
        _plot_ratios(ax, rows)
        size = f"{rows[0]['nodes']:,} nodes, {rows[0]['entries']:,} entries"
        ax.set_title(f"{graph}: {size}, hidden {hidden}, {result['device']}")
    axes[len(groups) - 1].set_xlabel("training steps in the time of the fastest of PyG")
    return figure


def _plot_ratios(ax: Any, rows: list[dict[str, Any]]) -> None:
    ratios = [row["times_step"] or 0 for row in rows]
    for y, ratio in enumerate(ratios):
        ax.barh(y, ratio, color=CLASSES[0])
        ax.annotate(
            f"{ratio:.2f}" if ratio else "PyG failed",
            (ratio, y),
            (4, 0),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    ax.axvline(1, color=TEXT_COLOR, linewidth=1, zorder=1.5)
    ax.set_yticks(range(len(rows)), [row["layer"] for row in rows], color=TEXT_COLOR)
    ax.set_xlim(right=1.15 * max(*ratios, 1))
    ax.invert_yaxis()


# Scaling over processes and hosts.


def time_table(result: dict[str, Any]) -> TextTable:
    """Seconds and bytes of an epoch for each number of processes and shape."""
    headings = ("s/epoch", "× first", "model", "bytes sent/step", "mean", "most")
    return scaling_table(
        result,
        headings,
        lambda row: [
            f"{row['seconds']:.3f}",
            f"{row['times_first']:.2f}",
            f"{row['model_seconds']:.3f}",
            f"{row['step_bytes']:,.0f}",
            f"{row['step_bytes'] / row['step_bytes_formula']:.2f}",
            f"{row['most_step_bytes'] / row['step_bytes_formula']:.2f}",
        ],
    )


def memory_table(result: dict[str, Any]) -> TextTable:
    """Peak memory of a process for each number of processes and shape."""
    first_processes = result["measured"][0]["processes"]
    return scaling_table(
        result,
        ("peak MiB", "model", "table MiB", "of first", "1/N"),
        lambda row: [
            f"{row['peak_bytes'] / MIB:,.0f}",
            f"{row['model_peak_bytes'] / MIB:,.0f}",
            f"{row['table_bytes'] / MIB:,.1f}",
            f"{row['share_of_table']:.3f}",
            f"{first_processes / row['processes']:.3f}",
        ],
    )


def scaling_table(
    result: dict[str, Any],
    headings: Sequence[str],
    cells: Callable[[dict[str, Any]], list[str]],
) -> TextTable:
    """A table whose rows begin with the number of processes and the shape."""
    rows = [
        [str(row["processes"]), str(row["hidden"]), f"{row['rows']:,}", *cells(row)]
        for row in result["measured"]
    ]
    headings = ("processes", "hidden", "batch", *headings)
    return TextTable.from_rows("", headings, rows, right=headings)


def predicted_lines(result: dict[str, Any]) -> Iterator[str]:
    """Sentences about the measured and the extrapolated epochs."""
    graph, model, predicted = result["graph"], result["model"], result["predicted"]
    row = requested_row(predicted)
    resident, mapped = (total(row["bytes_by"], parts) for parts in (RESIDENT, MAPPED))
    yield ""
    yield (
        f"Measured: {graph['nodes']:,} nodes and {graph['entries']:,} stored edges; "
        f"all processes shared {result['cores']} cores, a thread each. Bytes sent are "
        "the mean of a process; mean and most are fractions of 2 × batch × hidden × 4."
    )
    yield (
        "Fitted: six rates of time; half of the measured epochs are within "
        f"{model['median_error']:.0%} of the model."
    )
    if len(result["measured"]) < len(TERMS):
        yield "  So few epochs cannot separate them: name more widths and batches."
    yield (
        f"Extrapolated: {predicted['nodes']:,} nodes, {predicted['edges']:,} edges, "
        f"hidden {predicted['hidden']}, batches of {predicted['batch']:,} rows on "
        f"{predicted['hosts']} hosts of {predicted['cores']} cores with "
        f"{predicted['bandwidth']:g} Gbit/s and {predicted['latency']:g} µs: "
        f"{format_duration(row['seconds'])} an epoch, "
        f"{resident / 1e9:,.0f} GB on each host, {mapped / 1e9:,.0f} GB more mapped "
        "from files."
    )
    yield f"  time: {format_fractions(row['seconds_by'], TERMS)}"
    yield f"  memory: {format_fractions(row['bytes_by'], RESIDENT)}"


def requested_row(predicted: Mapping[str, Any]) -> Any:
    """The prediction for the requested number of hosts."""
    rows = predicted["by_hosts"]
    return next(row for row in rows if row["hosts"] == predicted["hosts"])


def total(amounts: Mapping[str, float], parts: Mapping[str, str]) -> float:
    """The sum of some parts."""
    return sum(amounts[part] for part in parts)


def format_fractions(amounts: Mapping[str, float], parts: Mapping[str, str]) -> str:
    """The percentage of each part, the largest first."""
    sum_of_parts = total(amounts, parts)
    fractions = {part: amounts[part] / sum_of_parts for part in parts}
    order = sorted(parts, key=lambda part: -fractions[part])
    return ", ".join(f"{parts[part]} {fractions[part]:.0%}" for part in order)


COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#999999", "#e69f00", "#d55e00")
"""Colours that are safe for colour blindness (Okabe and Ito)."""
MARKERS = "os^Dv"
GB, MIB, MINUTE = 1e9, 2.0**20, 60.0


@with_style
def plot_scaling(result: dict[str, Any]) -> Any:
    """Time and memory: measured with the fitted model, and predicted for hosts."""
    figure, axes = panels(4, columns=2, size=(5.0, 3.3))
    cores, predicted = result["cores"], result["predicted"]
    plot_measured(axes[0], result, "seconds", "model_seconds", 1.0)
    axes[0].set(title=f"measured: an epoch, all on {cores} cores", ylabel="seconds")
    plot_measured(axes[1], result, "peak_bytes", "model_peak_bytes", MIB)
    axes[1].set(title="measured: peak memory of a process", ylabel="MiB")
    axes[1].legend(fontsize=7)
    plot_parts(axes[2], predicted, "seconds_by", TERMS, MINUTE)
    nodes, edges = format_count(predicted["nodes"]), format_count(predicted["edges"])
    title = f"extrapolated: an epoch, {nodes} nodes, {edges} edges"
    axes[2].set(title=title, ylabel="minutes")
    in_files = {part: f"{label} (in files)" for part, label in MAPPED.items()}
    plot_parts(axes[3], predicted, "bytes_by", {**RESIDENT, **in_files}, GB)
    axes[3].set(title="extrapolated: memory of a host", ylabel="GB")
    row = requested_row(predicted)
    index, seconds = predicted["by_hosts"].index(row), total(row["seconds_by"], TERMS)
    axes[2].annotate(
        format_duration(row["seconds"]),
        (index, seconds / MINUTE),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=8,
    )
    return figure


def plot_measured(
    ax: Any, result: dict[str, Any], key: str, model_key: str, unit: float
) -> None:
    """Measurements as points and the fitted model as lines."""
    rows = result["measured"]
    shapes = dict.fromkeys((row["hidden"], row["rows"]) for row in rows)
    for index, shape in enumerate(shapes):
        group = [row for row in rows if (row["hidden"], row["rows"]) == shape]
        counts = [row["processes"] for row in group]
        color = COLOURS[index % len(COLOURS)]
        marker = MARKERS[index % len(MARKERS)]
        label = f"hidden {shape[0]}, batch {shape[1]:,}"
        measured = [row[key] / unit for row in group]
        fitted = [row[model_key] / unit for row in group]
        ax.plot(counts, measured, marker, label=label, color=color)
        ax.plot(counts, fitted, linewidth=1, color=color)
    ax.set_xscale("log", base=2)
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.minorticks_off()
    ax.set_xlabel("processes (points measured, lines fitted)")
    ax.margins(y=0.12)
    ax.set_ylim(bottom=0)


def plot_parts(
    ax: Any, predicted: dict[str, Any], key: str, parts: Mapping[str, str], unit: float
) -> None:
    """A stacked bar of parts for each number of hosts."""
    rows = predicted["by_hosts"]
    bottom = [0.0] * len(rows)
    for colour, (part, label) in zip(COLOURS, parts.items(), strict=True):
        heights = [row[key][part] / unit for row in rows]
        ax.bar(range(len(rows)), heights, bottom=bottom, color=colour, label=label)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    names = [str(row["hosts"]) for row in rows]
    ax.set_xticks(range(len(rows)), names, color=TEXT_COLOR)
    ax.set_xlabel("hosts")
    ax.legend(fontsize=7)


def format_count(count: int) -> str:
    """A count in billions, millions or thousands."""
    for name, size in {"billion": 1e9, "million": 1e6, "thousand": 1e3}.items():
        if count >= size:
            return f"{count / size:g} {name}"
    return str(count)
