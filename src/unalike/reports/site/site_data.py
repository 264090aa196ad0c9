"""Builds all documents from the database and reloads only what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import sqlalchemy as sql

from unalike.experiments.database import FAILURES, RUNS, ResultsDatabase
from unalike.experiments.recipe import PaperTable, Recipe, RecipeCell, paper_tables
from unalike.experiments.selection import (
    CellSelection,
    ConfigRuns,
    SelectionOptions,
    select_for_cell,
    stored_name,
)
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.site.documents import Document, config_id, method_runs_id
from unalike.reports.site.leaderboard import (
    BestConfig,
    RunGroupKey,
    all_runs_table,
    best_by_group,
    failed_runs,
    leaderboard,
    missing_cells,
)
from unalike.reports.site.method_runs import curves_by_config, method_runs
from unalike.reports.site.predictions import predictions_by_config
from unalike.version import __version__

# Stamps: what tells whether the runs of a method on a dataset have changed.


DatasetMethod = tuple[str, str]
"""A dataset and a method."""


def change_tokens(results: ResultsDatabase) -> dict[DatasetMethod, str]:
    """How many runs and failures each pair has, and when the last was stored."""
    found: dict[DatasetMethod, str] = {}
    for table, moment in ((RUNS, RUNS.c.finished), (FAILURES, FAILURES.c.failed)):
        pair = (table.c.dataset, table.c.method)
        asked = sql.select(*pair, sql.func.count(), sql.func.max(moment))
        with results.engine.connect() as connection:
            grouped = connection.execute(asked.group_by(*pair).order_by(*pair))
            for dataset, method, count, last in grouped:
                before = found.get((dataset, method), "")
                told = f"{before} {table.name} {count} {last}"
                found[dataset, method] = told.lstrip()
    return found


# Standings: the chosen settings of the cells of the paper's tables.


@dataclass(eq=False)
class LeaderboardCache:
    """All results tables of the paper over one database."""

    results: ResultsDatabase
    query: SelectionOptions
    _kept: dict[tuple[str, str], tuple[str | None, CellSelection]] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def tables(self) -> list[tuple[PaperTable, list[Recipe]]]:
        """The tables with their rows."""
        return [(table, table.recipes()) for table in paper_tables().values()]

    @cached_property
    def names(self) -> dict[str, str]:
        """The names under which the results of datasets are kept."""
        told = {
            cell.dataset
            for _, recipes in self.tables
            for recipe in recipes
            for cell in recipe.cells.values()
        }
        return {name: stored_name(name, self.query.data) for name in told}

    def leaderboards(
        self, stamps: Mapping[DatasetMethod, str], progress: Progress = NO_PROGRESS
    ) -> list[Document]:
        """Every table, from what the stamps say is there now."""

        def ask(recipe: Recipe, cell: RecipeCell) -> CellSelection:
            stamp = stamps.get((self.names[cell.dataset], str(recipe.method)))
            place = (recipe.name, str(cell))
            if place not in self._kept or self._kept[place][0] != stamp:
                found = select_for_cell(recipe, cell, self.results, self.query)
                self._kept[place] = (stamp, found)
            return self._kept[place][1]

        progress.stage("filling tables", len(self.tables), "tables")
        documents = []
        for table, recipes in self.tables:
            documents.append(leaderboard(table, recipes, ask))
            progress.advance(1)
        return documents

    def chosen(self) -> Iterator[ConfigRuns]:
        """The settings that stand in any table."""
        for _, found in self._kept.values():
            if found.chosen:
                yield found.chosen


# Survey: the documents of the page, from what a database holds.


@dataclass(eq=False)
class SiteData:
    """Reads a database, and reads again only what has changed."""

    results: ResultsDatabase
    query: SelectionOptions = field(default_factory=SelectionOptions)
    _stamps: dict[DatasetMethod, str] = field(default_factory=dict, init=False)
    _picks: dict[DatasetMethod, dict[RunGroupKey, BestConfig]] = field(
        default_factory=dict, init=False
    )
    _sizes: dict[DatasetMethod, dict[str, int]] = field(
        default_factory=dict, init=False
    )

    def __post_init__(self) -> None:
        self.standings = LeaderboardCache(self.results, self.query)

    def look(self, progress: Progress = NO_PROGRESS) -> Document:
        """The document of the whole page; the runs are in those of the shelves."""
        self._read(progress)
        tables = self.standings.leaderboards(self._stamps, progress)
        found = {
            place: one for told in self._picks.values() for place, one in told.items()
        }
        return {
            "version": __version__,
            "runs": sum(size["runs"] for size in self._sizes.values()),
            "tables": [*tables, all_runs_table(found)],
            "shelves": [
                {
                    "mark": mark,
                    "dataset": pair[0],
                    "method": pair[1],
                    **self._sizes[pair],
                }
                for mark, pair in self.shelves().items()
            ],
            "missing": missing_cells(tables),
            "failures": failed_runs(self.results.failures()),
        }

    def shelves(self) -> dict[str, DatasetMethod]:
        """The pairs of which there are runs, by their marks."""
        return {method_runs_id(*pair): pair for pair in sorted(self._picks)}

    def shelf(self, pair: DatasetMethod) -> Document:
        """The runs of a pair; of settings that were chosen, also curves and answers."""
        dataset, method = pair
        marks: dict[str, set[str]] = {}
        for one in self._chosen(pair):
            marks.setdefault(one.setting, set()).add(config_id(one.runs[0]))
        drawn: Document = {"curves": {}, "answers": {}}
        for setting, wanted in marks.items():
            told = self.results.runs(
                curves=True,
                answers=True,
                dataset=dataset,
                method=method,
                setting=setting,
            )
            rows = [row for row in told if config_id(row) in wanted]
            drawn["curves"] |= curves_by_config(rows)
            drawn["answers"] |= predictions_by_config(rows)
        all_rows = list(self.results.runs(dataset=dataset, method=method))
        return {**method_runs(all_rows), **drawn}

    def _read(self, progress: Progress) -> None:
        """Look through the pairs that are new or have changed."""
        now = change_tokens(self.results)
        changed = [pair for pair in now if now[pair] != self._stamps.get(pair)]
        progress.stage("reading runs", len(changed), "shelves")
        for dataset, method in changed:
            rows = list(self.results.runs(dataset=dataset, method=method))
            if rows:
                num_settings = len({row["setting"] for row in rows})
                size = {"runs": len(rows), "settings": num_settings}
                self._sizes[dataset, method] = size
                self._picks[dataset, method] = best_by_group(rows)
            progress.advance(1)
        for gone in self._picks.keys() - now:
            del self._picks[gone], self._sizes[gone]
        self._stamps = now

    def _chosen(self, pair: DatasetMethod) -> Iterator[ConfigRuns]:
        """The settings of a pair that stand in any table."""
        yield from (one.chosen for one in self._picks[pair].values())
        for one in self.standings.chosen():
            if (one.runs[0]["dataset"], one.runs[0]["method"]) == pair:
                yield one
