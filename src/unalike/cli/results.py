"""`unalike results`: carry results from one database to another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import DEFAULT_DATABASE, OUT, print_json
from unalike.errors import lookup
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.export import export_runs, import_runs


def command(
    do: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="export|import")],
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    /,
    *,
    results: str = DEFAULT_DATABASE,
    no_curves: bool = False,
    no_answers: bool = False,
    json: bool = False,
) -> None:
    """Write all results into a file, or merge those of a file; nothing is doubled.

    Example: unalike results export results.jsonl.gz

    Args:
        do: export writes the file, import reads it.
        file: Compressed lines of JSON, a run each.
        results: The database: sqlite:///FILE or postgresql://USER@HOST/NAME.
        no_curves: Leave out how training went epoch by epoch, most of the file.
        no_answers: Leave out which classes were taken for which, and how sure answers
            were, most of the rest; reports draw these.
        json: Print one JSON document instead of words.
    """
    act = lookup(ACTIONS, do, "thing to do with results")
    told = act(results, file, {"curves": not no_curves, "answers": not no_answers})
    if json:
        print_json(told)
    else:
        OUT.print(", ".join(f"{count} {what}" for what, count in told.items()) + ".")


def export_to(url: str, file: Path, kept: dict[str, bool]) -> dict[str, Any]:
    """Write the runs of a database."""
    with ResultsDatabase.read(url) as results:
        return {"runs": export_runs(results, file, **kept)}


def import_from(url: str, file: Path, kept: dict[str, bool]) -> dict[str, Any]:
    """Merge the runs of a file into a database."""
    with ResultsDatabase.open(url) as results:
        total, added = import_runs(results, file)
    return {"runs": total, "new": added}


ACTIONS: dict[str, Callable[[str, Path, dict[str, bool]], dict[str, Any]]] = {
    "export": export_to,
    "import": import_from,
}
