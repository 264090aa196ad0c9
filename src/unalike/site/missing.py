"""Table cells without a number of ours, and runs that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unalike.experiments.results import Row
from unalike.site.cell import Document


def missing_cells(tables: Sequence[Document]) -> list[Document]:
    """The empty cells of tables by reason, the most frequent reason first."""
    reasons: dict[str, list[Document]] = {}
    for table in tables:
        for row, cells in zip(table["rows"], table["cells"], strict=True):
            for column, cell in zip(table["columns"], cells, strict=True):
                if cell and "missing" in cell:
                    entry = {
                        "table": table["title"],
                        "row": row["label"],
                        "column": column["label"],
                        "published": cell.get("printed_mean"),
                        "sweep": cell["sweep"],
                    }
                    reasons.setdefault(cell["missing"], []).append(entry)
    groups = [{"reason": reason, "cells": cells} for reason, cells in reasons.items()]
    return sorted(groups, key=lambda group: -len(group["cells"]))


def failed_runs(rows: Iterable[Row]) -> list[Document]:
    """Failed runs, grouped by dataset, method and error."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        key = (row["dataset"], row["method"], row["error"])
        groups.setdefault(key, []).append(row)
    return [
        {
            "dataset": dataset,
            "method": method,
            "error": error,
            "runs": len(group),
            "configs": len({row["setting"] for row in group}),
            "failed": max(row["failed"] for row in group),
        }
        for (dataset, method, error), group in sorted(groups.items())
    ]
