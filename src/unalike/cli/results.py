"""`unalike results`: export the results of a database to a file, or import them."""

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
    """Export all results to a file, or import those of a file without duplicates.

    Example: unalike results export results.jsonl.gz

    Args:
        do: export writes the file, import reads it.
        file: Compressed JSON lines, one per run.
        results: The database: sqlite:///FILE or postgresql://USER@HOST/NAME.
        no_curves: Omit the training curves, most of the file.
        no_answers: Omit confusion matrices and reliability, most of the rest; reports
            plot these.
        json: Print one JSON document instead of text.
    """
    action = lookup(ACTIONS, do, "action on results")
    parts = {"curves": not no_curves, "answers": not no_answers}
    counts = action(results, file, parts)
    if json:
        print_json(counts)
    else:
        OUT.print(", ".join(f"{count} {name}" for name, count in counts.items()) + ".")


def export_to(url: str, file: Path, parts: dict[str, bool]) -> dict[str, Any]:
    """Export the runs of a database to a file."""
    with ResultsDatabase.read(url) as results:
        return {"runs": export_runs(results, file, **parts)}


def import_from(url: str, file: Path, parts: dict[str, bool]) -> dict[str, Any]:
    """Import the runs of a file into a database."""
    with ResultsDatabase.open(url) as results:
        total, added = import_runs(results, file)
    return {"runs": total, "new": added}


ACTIONS: dict[str, Callable[[str, Path, dict[str, bool]], dict[str, Any]]] = {
    "export": export_to,
    "import": import_from,
}
