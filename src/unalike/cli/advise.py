"""`unalike advise`: recommend methods for a graph, with reasons and costs."""

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
    bold,
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
from unalike.experiments.result import override_flags
from unalike.formatting import format_duration, format_memory
from unalike.measures.interpretation import interpret

MAX_SHOWN = 5
"""Methods that are shown without `--every`."""


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
    """Measure a graph, try methods on it briefly, and recommend which one to train.

    Labels of train and valid nodes are used, those of test nodes never. A large graph
    is sampled: some nodes with all their neighbours.

    Example: unalike advise reed98

    Args:
        graph: A name of `unalike list datasets`, or the folder of a stored graph.
        split: The split whose test labels are not used.
        seconds: Time for trials; more time allows more methods and longer trials.
        seed: Seed of random numbers.
        device: cpu, cuda, or auto: a GPU if there is one; it tries more of a graph.
        metric: Evaluate by this metric instead of the graph's own.
        both_ways: Make the graph undirected, also where direction is usually preserved.
        every: Show every method that was tried, not only the best.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of text.
    """
    if not seconds > 0:
        raise UserError(f"--seconds is {seconds:g}; it must be above 0.")
    options = DatasetOptions(metric=metric, both_ways=both_ways)
    source = options.apply(find(graph, data))
    with progress_bar() as bar:
        advice = advise(
            source,
            split=split,
            seconds=seconds,
            seed=seed,
            device=choose_device(device),
            progress=bar,
        )
    print_notes(*source.remarks())
    flags = override_flags(options.overrides)
    prefix = " ".join(["unalike train", shlex.quote(graph), *flags])
    if json:
        print_json(to_json(source, advice, prefix))
    else:
        print_advice(source, advice, prefix, every=every)


def print_advice(
    source: GraphSource, advice: Advice, prefix: str, *, every: bool
) -> None:
    """Print the advice as text; `prefix` starts the command of each method."""
    OUT.print(headline(source, advice), soft_wrap=True)
    OUT.print(bold("\nWhat the graph is like"))
    for line in [*measure_lines(advice), *advice.verdicts]:
        OUT.print(f"  • {line}", soft_wrap=True)
    OUT.print(bold("\nWhat to try", f" ({source.metric.name}, in percent)"))
    print_columns(
        recommendation_columns(advice.ranking[: None if every else MAX_SHOWN]),
        spare=("memory", "time"),
    )
    hidden = len(advice.ranking) - MAX_SHOWN
    if hidden > 0 and not every:
        OUT.print(f"and {hidden} more; `--every` shows them.")
    if error := advice.ranking[0].trial.two_standard_errors:
        OUT.print(f"A lead of less than {error:.1f} points may be random.")
    if advice.left_out:
        left_out = ", ".join(advice.left_out)
        OUT.print(
            f"Without a result (no time, or diverged): {left_out}; see `--seconds`.",
            soft_wrap=True,
        )
    if advice.sampled is not None:
        OUT.print("A sample has less to learn from: expect more of the whole graph.")
    if not source.splits():
        print_notes("the graph is stored without splits, which training needs.")
    command_words = f" {prefix} {advice.ranking[0].words}"
    OUT.print(bold("\nRun", command_words), soft_wrap=True)


def headline(source: GraphSource, advice: Advice) -> str:
    """The size of the graph, and the nodes that the trials were scored on."""
    graph = source.prepared()
    kind = "directed" if graph.directed else "undirected"
    size = (
        f"{source.name}: {graph.num_nodes:,} nodes, {graph.num_edges:,} {kind} edges, "
        f"{graph.num_features:,} features, {graph.num_classes} classes"
    )
    of = "" if advice.sampled is None else f" of a sample of {advice.sampled:,} nodes"
    return (
        f"{size}\nTried on labels of train and valid nodes{of}, "
        f"scored on {advice.judges:,} of them; test labels were not read."
    )


def measure_lines(advice: Advice) -> list[str]:
    """Sentences about the measures, and the score of the most frequent class."""
    values = advice.measures
    names = [name for name in MEASURES if not math.isnan(values[name])]
    lines = [interpret(name, values) for name in names]
    baseline = f"Always giving the most frequent answer scores {advice.constant:.1f}."
    return [*(f"{line[0].upper()}{line[1:]}." for line in lines), baseline]


def to_json(source: GraphSource, advice: Advice, prefix: str) -> dict[str, Any]:
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
                "command": f"{prefix} {each.words}",
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


def recommendation_columns(ranking: Sequence[Recommendation]) -> list[Column]:
    """The table of recommendations: method, score, time, memory and reason."""
    numbers = [str(number) for number in range(1, len(ranking) + 1)]
    seconds = [format_duration(each.cost.seconds) for each in ranking]
    memory = [format_memory(each.cost.megabytes) for each in ranking]
    scores = [
        f"{trial.mean_score:.1f}" + ("" if trial.std is None else f" ± {trial.std:.1f}")
        for trial in (each.trial for each in ranking)
    ]
    return [
        Column("", numbers, align_right=True),
        Column("method", [each.words for each in ranking]),
        Column("expected", scores),
        Column("time", seconds, align_right=True),
        Column("memory", memory, align_right=True),
        Column("why", [each.reason for each in ranking], wrap=True),
    ]
