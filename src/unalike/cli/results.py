"""`unalike results`: export the results of a database to a file, or import them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro

from unalike.cli.console import DEFAULT_DATABASE, print_output
from unalike.errors import lookup
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.export import export_runs, import_runs

OPENERS: dict[str, Callable[[str], ResultsDatabase]] = {
    "export": ResultsDatabase.read,
    "import": ResultsDatabase.open,
}


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
    opener = lookup(OPENERS, do, "action on results")
    with opener(results) as database:
        if do == "export":
            curves, answers = not no_curves, not no_answers
            runs = export_runs(database, file, curves=curves, answers=answers)
            counts = {"runs": runs}
        else:
            total, added = import_runs(database, file)
            counts = {"runs": total, "new": added}
    text = ", ".join(f"{count} {name}" for name, count in counts.items())
    print_output(counts, f"{text}.", json=json)
