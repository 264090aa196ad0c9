"""`unalike list`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import tyro
from rich.table import Table

from unalike.cli.console import OUT, answer
from unalike.errors import lookup
from unalike.metrics import METRICS


def metrics() -> list[dict[str, str]]:
    """Every metric with what it measures."""
    return [
        {"name": name, "what": (metric.grade.__doc__ or "").splitlines()[0]}
        for name, metric in METRICS.items()
    ]


KINDS = {"metrics": metrics}


def command(
    kind: Annotated[str, tyro.conf.Positional], /, *, json: bool = False
) -> None:
    """Show what there is to choose from.

    Example: unalike list metrics

    Args:
        kind: What to list: metrics.
        json: Print one JSON document instead of a table.
    """
    rows = lookup(KINDS, kind, "kind of thing to list")()
    if json:
        answer(rows)
        return
    table = Table(*rows[0], box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(str, row.values()))
    OUT.print(table)
