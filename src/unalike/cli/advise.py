"""Ranking: the methods of an advice as columns of a table."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.advice import Advice, advise
from unalike.advice.recommend import MEASURES, Recommendation
from unalike.cli.console import (
    OUT,
    print_columns,
    print_json,
    print_notes,
    progress_bar,
)
from unalike.datasets import GraphSource, find
from unalike.device import choose_device
from unalike.display import Column
from unalike.errors import UserError
from unalike.experiments.config import DatasetOptions
from unalike.formatting import format_duration, format_memory, json_safe
from unalike.measures.interpretation import interpret

# Ranking: the methods of an advice as columns of a table.


def recommendation_columns(ranked: Sequence[Recommendation]) -> list[Column]:
    """Each method with what to expect of it, what it costs, and why."""
    return [
        Column(
            "", [str(place) for place in range(1, len(ranked) + 1)], align_right=True
        ),
        Column("method", [each.words for each in ranked]),
        Column("expected", [expected(each) for each in ranked]),
        Column(
            "time",
            [format_duration(each.cost.seconds) for each in ranked],
            align_right=True,
        ),
        Column(
            "memory",
            [format_memory(each.cost.megabytes) for each in ranked],
            align_right=True,
        ),
        Column("why", [each.reason for each in ranked], wrap=True),
    ]


def expected(each: Recommendation) -> str:
    """The grade to expect, and how far draws were apart."""
    spread = each.trial.std
    return f"{each.trial.mean_score:.1f}" + (
        "" if spread is None else f" ± {spread:.1f}"
    )


# `unalike advise`: which method to try on a graph, and why.


MAX_SHOWN = 5
"""Methods that are shown unless all are asked for."""


def command(
    graph: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GRAPH")],
    *,
    split: int = 0,
    seconds: float = 60.0,
    seed: int = 0,
    device: str = "auto",
    metric: str | None = None,
    both_ways: bool = False,
    every: bool = False,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Measure a graph, try methods on it briefly, and tell which one to train.

    Labels of train and valid nodes are used, those of test nodes never. A large graph
    is sampled: some nodes with all their neighbours.

    Example: unalike advise reed98

    Args:
        graph: A name of `unalike list datasets`, or the folder of a stored graph.
        split: The split whose test nodes are left alone.
        seconds: Time to try methods in; more time, more methods and longer trials.
        seed: Where chance begins.
        device: cpu, cuda, or auto: a GPU where there is one; it tries more of a graph.
        metric: Judge by this metric instead of the graph's own.
        both_ways: Let every edge go both ways, also where direction is usually kept.
        every: Show every method that was tried, not the best alone.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of text.
    """
    if not seconds > 0:
        raise UserError(f"--seconds is {seconds:g}; it must be above 0.")
    view = DatasetOptions(metric=metric, both_ways=both_ways)
    source = view.apply(find(graph, data))
    with progress_bar() as bar:
        advice = advise(
            source,
            split=split,
            seconds=seconds,
            seed=seed,
            device=choose_device(device),
            progress=bar,
        )
    print_notes(source.remarks())
    flags = shlex.join(
        word
        for name, value in view.overrides.items()
        for word in ([f"--{name.replace('_', '-')}"] + [value] * (value is not True))
    )
    lead = " ".join(filter(None, ["unalike train", shlex.quote(graph), flags]))
    if json:
        print_json(json_safe(document(source, advice, lead)))
        return
    print_advice(source, advice, lead, every=every)


def print_advice(
    source: GraphSource, advice: Advice, lead: str, *, every: bool
) -> None:
    """The advice as text."""
    OUT.print(headline(source, advice), soft_wrap=True, markup=False)
    OUT.print("\n[bold]What the graph is like[/]")
    for line in [*measured(advice), *advice.verdicts]:
        OUT.print(f"  • {line}", soft_wrap=True, markup=False)
    OUT.print(f"\n[bold]What to try[/] ({source.metric.name}, in percent)")
    print_columns(
        recommendation_columns(advice.ranking[: None if every else MAX_SHOWN]),
        spare=("memory", "time"),
    )
    hidden = len(advice.ranking) - MAX_SHOWN
    if hidden > 0 and not every:
        OUT.print(f"and {hidden} more; `--every` shows them.")
    if doubt := advice.ranking[0].trial.two_standard_errors:
        OUT.print(f"A lead of less than {doubt:.1f} points may be chance.")
    if advice.left_out:
        left_out = ", ".join(advice.left_out)
        OUT.print(f"No time for: {left_out}; see `--seconds`.", soft_wrap=True)
    if advice.sampled is not None:
        OUT.print("A sample has less to learn from: expect more of the whole graph.")
    if not source.splits():
        print_notes(["the graph is stored without splits, which training needs."])
    OUT.print(f"\n[bold]Run[/] {lead} {advice.ranking[0].words}", soft_wrap=True)


def headline(source: GraphSource, advice: Advice) -> str:
    """The graph in one line, and how it was judged."""
    graph = source.prepared()
    kind = "directed" if graph.directed else "undirected"
    told = (
        f"{source.name}: {graph.num_nodes:,} nodes, {graph.num_edges:,} {kind} edges, "
        f"{graph.num_features:,} features, {graph.num_classes} classes"
    )
    of = "" if advice.sampled is None else f" of a sample of {advice.sampled:,} nodes"
    return (
        f"{told}\nTried on labels of train and valid nodes{of}, "
        f"judged by {advice.judges:,} of them; test labels were not read."
    )


def measured(advice: Advice) -> list[str]:
    """What the measures mean, and what no method should stay below."""
    found = advice.measures
    told = [interpret(name, found) for name in MEASURES if not math.isnan(found[name])]
    usual = f"Always giving the most frequent answer scores {advice.constant:.1f}."
    return [*(f"{line[0].upper()}{line[1:]}." for line in told), usual]


def document(source: GraphSource, advice: Advice, lead: str) -> dict[str, Any]:
    """The document of `--json`."""
    return {
        "graph": source.name,
        "metric": source.metric.name,
        "ranking": [
            {
                "method": each.words,
                "expected": each.trial.mean_score,
                "spread": each.trial.std,
                "doubt": each.trial.two_standard_errors,
                "epochs_tried": each.trial.epochs,
                "seconds": each.cost.seconds,
                "memory_mb": each.cost.megabytes,
                "reason": each.reason,
                "command": f"{lead} {each.words}",
            }
            for each in advice.ranking
        ],
        "verdicts": advice.verdicts,
        "most_frequent_answer": advice.constant,
        "measures": {name: advice.measures[name] for name in MEASURES},
        "judges": advice.judges,
        "sampled_nodes": advice.sampled,
        "left_out": advice.left_out,
    }
