"""Leaderboards, table of all runs, missing cells and failures as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from unalike.experiments.config import FULL_BATCH
from unalike.experiments.database import Row
from unalike.experiments.recipe import PaperTable, Recipe, RecipeCell
from unalike.experiments.selection import (
    CellSelection,
    ConfigRuns,
    best_by_validation,
    group_by_config,
)
from unalike.methods import METHODS
from unalike.reports.result_tables import (
    highlight_best,
    score_cell,
    with_relative_errors,
)
from unalike.reports.site.documents import (
    Document,
    config_id,
    mean_cost,
    method_runs_id,
    round_floats,
)
from unalike.reports.tables import ScoreCell

# Cell: a number of the leaderboard, with what leads to the runs behind it.


def cell(
    score: ScoreCell, chosen: ConfigRuns | None, settings: int, of: int | None
) -> Document:
    """What the page tells of a number; nothing of what there is not."""
    told = {**score.to_dict, **provenance(chosen)}
    if chosen:
        told |= {"settings": settings, "of": of}
    return {
        name: round_floats(value)
        for name, value in told.items()
        if value is not None and value is not False
    }


def provenance(chosen: ConfigRuns | None) -> Document:
    """The runs of a chosen setting: how many, what they cost, where they are."""
    if chosen is None:
        return {}
    first = chosen.runs[0]
    return {
        "runs": len(chosen.runs),
        "valid": chosen.valid,
        **mean_cost(chosen),
        "shelf": method_runs_id(first["dataset"], first["method"]),
        "setting": config_id(first),
    }


# Ranking: the rows of a table from the best to the worst, column by column.


def rankings(
    rows: Sequence[Mapping[str, ScoreCell]], columns: Sequence[str]
) -> list[list[int]]:
    """The places of the rows that have a number, for each column."""
    return [ranking([row.get(column) for row in rows]) for column in columns]


def ranking(scores: Sequence[ScoreCell | None]) -> list[int]:
    """The best first; the earlier among equals.

    The printed number stands in where there is none of ours.
    """
    values = {
        place: score.value[0]
        for place, score in enumerate(scores)
        if score is not None and score.value is not None
    }
    return sorted(values, key=lambda place: (-values[place], place))


# The leaderboard: a results table of the paper, ours beside the printed numbers.


CellLookup = Callable[[Recipe, RecipeCell], CellSelection]
"""Finds what the database holds for a cell."""


def leaderboard(
    table: PaperTable, recipes: Sequence[Recipe], ask: CellLookup
) -> Document:
    """A table as the page draws it."""
    found = {
        recipe.row: {name: ask(recipe, one) for name, one in recipe.cells.items()}
        for recipe in recipes
    }
    scores = {
        recipe.row: {
            name: score_cell(one, found[recipe.row][name])
            for name, one in recipe.cells.items()
        }
        for recipe in recipes
    }
    told = highlight_best(with_relative_errors(scores, recipes), table.shaded)
    columns = list(dict.fromkeys(name for row in told.values() for name in row))
    return {
        "name": table.name,
        "title": table.title,
        "shaded": table.shaded,
        "rows": [row_header(recipe) for recipe in recipes],
        "columns": [column(name, found) for name in columns],
        "cells": [row_cells(recipe, told, found, columns) for recipe in recipes],
        "rankings": rankings([told[recipe.row] for recipe in recipes], columns),
    }


def row_header(recipe: Recipe) -> Document:
    """What is told of a row, and what it can be filtered by."""
    return {
        "label": recipe.row,
        "method": recipe.method,
        "family": method_family(recipe.method),
        "batching": recipe.batching,
    }


def method_family(method: str | None) -> str:
    """The family of a method; of one that is not here nothing is known."""
    known = METHODS.get(method or "")
    return known.family if known else "not here"


def column(name: str, found: Mapping[str, Mapping[str, CellSelection]]) -> Document:
    """A dataset, with the metric of the runs on it where there are any."""
    chosen = [row[name].chosen for row in found.values() if name in row]
    metrics = {one.runs[0]["metric"] for one in chosen if one}
    return {"label": name, "metric": ", ".join(sorted(metrics))}


def row_cells(
    recipe: Recipe,
    told: Mapping[str, Mapping[str, ScoreCell]],
    found: Mapping[str, Mapping[str, CellSelection]],
    columns: Sequence[str],
) -> list[Document | None]:
    """The cells of a row, one for each column."""
    cells: list[Document | None] = []
    for name in columns:
        if name not in recipe.cells:
            cells.append(None)
            continue
        at = found[recipe.row][name]
        document = cell(
            told[recipe.row][name], at.chosen, at.num_complete, at.grid_size
        )
        cells.append({**document, "sweep": sweep_command(recipe, recipe.cells[name])})
    return cells


def sweep_command(recipe: Recipe, one: RecipeCell) -> str | None:
    """The command that runs all settings of a cell; none for what cannot be run."""
    if not recipe.is_implemented:
        return None
    words = ["unalike", "sweep", recipe.name, "--only", f"dataset={one.dataset}"]
    return shlex.join([*words, *(["--quoted"] if one.quoted else [])])


# Everything: all that was run, whatever the settings, as one more table.


SHADED = "best"


@dataclass(frozen=True, order=True)
class RunGroupKey:
    """Where a run belongs: its row and its column."""

    dataset: str
    view: str
    metric: str
    method: str
    batching: str

    @classmethod
    def of(cls, row: Row) -> RunGroupKey:
        """The place of a run."""
        view = ", ".join(f"{name} {told}" for name, told in row["view"].items())
        return cls(row["dataset"], view, row["metric"], row["method"], row["batching"])

    @property
    def row(self) -> tuple[str, str]:
        return self.method, self.batching

    @property
    def column(self) -> tuple[str, str, str]:
        return self.dataset, self.view, self.metric


@dataclass(frozen=True, eq=False)
class BestConfig:
    """The chosen setting of a place, and among how many it was chosen."""

    chosen: ConfigRuns
    num_settings: int


def best_by_group(rows: Iterable[Row]) -> dict[RunGroupKey, BestConfig]:
    """The best setting by validation of each place."""
    groups: dict[RunGroupKey, list[Row]] = {}
    for row in rows:
        groups.setdefault(RunGroupKey.of(row), []).append(row)
    return {place: best_of_group(group) for place, group in groups.items()}


def best_of_group(rows: list[Row]) -> BestConfig:
    """The best of the settings that have the most splits."""
    settings = group_by_config(rows)
    most = max(len(one.runs) for one in settings)
    whole = [one for one in settings if len(one.runs) == most]
    chosen = best_by_validation(whole)
    assert chosen is not None
    return BestConfig(chosen, len(whole))


def all_runs_table(found: Mapping[RunGroupKey, BestConfig]) -> Document:
    """The table of all places."""
    rows = sorted({place.row for place in found})
    columns = sorted({place.column for place in found})
    at = {(place.row, place.column): one for place, one in found.items()}
    scores = {
        str(row): {str(column): score(at.get((row, column))) for column in columns}
        for row in rows
    }
    told = highlight_best(scores, SHADED) if scores else {}
    return {
        "name": "everything",
        "title": "Everything that was run",
        "shaded": SHADED,
        "rows": [heading(*row) for row in rows],
        "columns": [
            {"label": label(*column), "metric": column[2]} for column in columns
        ],
        "cells": [
            [
                group_cell(told[str(row)][str(column)], at.get((row, column)))
                for column in columns
            ]
            for row in rows
        ],
        "rankings": rankings(
            [told[str(row)] for row in rows], [str(one) for one in columns]
        ),
    }


def heading(method: str, batching: str) -> Document:
    """What is told of a row."""
    told = method if batching == FULL_BATCH else f"{method}, {batching}"
    kind = method_family(method)
    return {"label": told, "method": method, "family": kind, "batching": batching}


def label(dataset: str, view: str, metric: str) -> str:
    """What a column is called."""
    return f"{dataset} ({view})" if view else dataset


def score(pick: BestConfig | None) -> ScoreCell:
    """The score of a place; an empty one where nothing was run."""
    if pick is None:
        return ScoreCell()
    return ScoreCell(mean=pick.chosen.test, std=pick.chosen.std)


def group_cell(told: ScoreCell, pick: BestConfig | None) -> Document | None:
    """The cell of a place, where anything was run."""
    return cell(told, pick.chosen, pick.num_settings, None) if pick else None


# Missing: the cells without a number of ours, and the runs that failed.


def missing_cells(tables: Sequence[Document]) -> list[Document]:
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


def failed_runs(rows: Iterable[Row]) -> list[Document]:
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
