"""Missing: the cells without a number of ours, and the runs that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unalike.experiments.results import Row
from unalike.site.cell import Document


def missing(tables: Sequence[Document]) -> list[Document]:
    """The empty cells of tables by the reason why, the commonest first."""
    reasons: dict[str, list[Document]] = {}
    for table in tables:
        for row, cells in zip(table["rows"], table["cells"], strict=True):
            for column, cell in zip(table["columns"], cells, strict=True):
                if cell and "missing" in cell:
                    where = {
                        "table": table["title"],
                        "row": row["label"],
                        "column": column["label"],
                        "printed": cell.get("printed_mean"),
                        "sweep": cell["sweep"],
                    }
                    reasons.setdefault(cell["missing"], []).append(where)
    told = [{"reason": reason, "cells": cells} for reason, cells in reasons.items()]
    return sorted(told, key=lambda one: -len(one["cells"]))


def failures(rows: Iterable[Row]) -> list[Document]:
    """Failed runs, those of one method, dataset and error together."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        place = (row["dataset"], row["method"], row["error"])
        groups.setdefault(place, []).append(row)
    return [
        {
            "dataset": dataset,
            "method": method,
            "error": error,
            "runs": len(group),
            "settings": len({row["setting"] for row in group}),
            "failed": max(row["failed"] for row in group),
        }
        for (dataset, method, error), group in sorted(groups.items())
    ]
