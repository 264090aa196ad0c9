"""Builds all documents from the database and reloads only what changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import sqlalchemy as sql

from unalike.errors import UserError
from unalike.experiments.database import ResultsDatabase, Row
from unalike.experiments.database_connection import FAILURES, RUNS
from unalike.experiments.recipe import PaperTable, Recipe, RecipeCell, paper_tables
from unalike.experiments.selection import (
    CellSelection,
    CellSelector,
    ConfigRuns,
    SelectionOptions,
)
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.site.charts import FAMILIES
from unalike.reports.site.documents import (
    Document,
    config_id,
    graph_labels,
    method_runs_id,
)
from unalike.reports.site.leaderboard import (
    GroupKey,
    all_runs_table,
    best_by_group,
    failed_runs,
    leaderboard,
    missing_cells,
    opening_table,
)
from unalike.reports.site.method_runs import curves_by_config, method_runs
from unalike.reports.site.predictions import predictions_by_config
from unalike.version import __version__

# Change tokens, which say whether the runs of a method on a dataset have changed.


DatasetMethod = tuple[str, str]


def change_tokens(results: ResultsDatabase) -> dict[DatasetMethod, str]:
    """The number of runs and failures of each pair, and when the last was stored."""
    tokens: dict[DatasetMethod, str] = defaultdict(str)
    for table, moment in ((RUNS, RUNS.c.finished), (FAILURES, FAILURES.c.failed)):
        pair = (table.c.dataset, table.c.method)
        query = sql.select(*pair, sql.func.count(), sql.func.max(moment))
        with results.engine.connect() as connection:
            groups = connection.execute(query.group_by(*pair).order_by(*pair))
            for dataset, method, count, last in groups:
                for name in (dataset, method):
                    if not isinstance(name, str):
                        raise UserError(f"The database has a name {name!r}, no text.")
                tokens[dataset, method] += f"{table.name} {count} {last} "
    return tokens


MethodOnGraph = tuple[str, str, str]
"""The name and the hash of a dataset, and the name of a method."""
KEY_COLUMNS = ("dataset", "dataset_hash", "method")

Groups = dict[GroupKey, CellSelection]
ChangeToken = tuple[str | None, str | None]
"""The hash of the dataset, and the token of the dataset and the method."""


@dataclass(eq=False)
class SiteData:
    """Builds the documents of the page from a database."""

    results: ResultsDatabase
    query: SelectionOptions = field(default_factory=SelectionOptions)
    _versions: dict[DatasetMethod, str] = field(default_factory=dict, init=False)
    _best: dict[MethodOnGraph, Groups] = field(default_factory=dict, init=False)
    _sizes: dict[MethodOnGraph, Document] = field(default_factory=dict, init=False)
    _selections: dict[tuple[str, str], tuple[ChangeToken, CellSelection]] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def tables(self) -> list[tuple[PaperTable, list[Recipe]]]:
        """The results tables of the paper with their rows."""
        return [(table, table.recipes()) for table in paper_tables().values()]

    def leaderboards(self, progress: Progress) -> list[Document]:
        """Every table; cells whose change token is the same come from the cache."""
        selector = CellSelector(self.results, self.query)

        def lookup_cell(recipe: Recipe, cell: RecipeCell) -> CellSelection:
            version = selector.version(cell.dataset)
            pair = (version.name, str(recipe.method))
            token = (version.hash, self._versions.get(pair))
            key = (recipe.name, str(cell))
            if key not in self._selections or self._selections[key][0] != token:
                self._selections[key] = (token, selector.select(recipe, cell))
            return self._selections[key][1]

        progress.stage("filling tables", len(self.tables), "tables")
        documents = []
        for table, recipes in self.tables:
            documents.append(leaderboard(table, recipes, lookup_cell))
            progress.advance(1)
        return documents

    def site_document(self, progress: Progress = NO_PROGRESS) -> Document:
        """The tables of the page, without the runs."""
        self._reload_changed(progress)
        tables = self.leaderboards(progress)
        recipes = {table.name: rows for table, rows in self.tables}
        groups = {key: one for best in self._best.values() for key, one in best.items()}
        paths = self.results.graph_paths()
        labels = graph_labels([key[:2] for key in self._best], paths)
        shown = [*tables, all_runs_table(groups, paths)]
        return {
            "version": __version__,
            "families": FAMILIES,
            "runs": sum(size["runs"] for size in self._sizes.values()),
            "tables": shown,
            "opening_table": opening_table(shown, recipes, self.query.data),
            "method_runs": [
                {
                    "id": id,
                    "dataset": labels[key[:2]],
                    "method": key[2],
                    **self._sizes[key],
                }
                for id, key in self.method_run_ids().items()
            ],
            "missing": missing_cells(tables),
            "failed_runs": failed_runs(self.results.failures()),
        }

    def method_run_ids(self) -> dict[str, MethodOnGraph]:
        """The methods on graphs that have runs, by the ids of their documents."""
        return {
            method_runs_id(dict(zip(KEY_COLUMNS, key, strict=True))): key
            for key in sorted(self._best)
        }

    def method_runs_document(self, key: MethodOnGraph) -> Document:
        """The runs of a method on a graph; curves and predictions of the selected."""
        dataset, hash, method = key
        stored = partial(
            self.results.runs, dataset=dataset, dataset_hash=hash, method=method
        )
        ids: dict[str, set[str]] = {}
        for one in self._selected(key):
            ids.setdefault(one.setting, set()).add(config_id(one.runs[0]))
        details: Document = {"curves": {}, "predictions": {}}
        for setting, wanted in ids.items():
            runs = stored(curves=True, answers=True, setting=setting)
            rows = [row for row in runs if config_id(row) in wanted]
            details["curves"] |= curves_by_config(rows)
            details["predictions"] |= predictions_by_config(rows)
        path = self.results.graph_paths().get((dataset, hash))
        return {**method_runs(list(stored()), path), **details}

    def _reload_changed(self, progress: Progress) -> None:
        """Read the runs of pairs of dataset and method that are new or have changed."""
        now = change_tokens(self.results)
        changed = [pair for pair in now if now[pair] != self._versions.get(pair)]
        progress.stage("reading runs", len(changed), "methods on datasets")
        for dataset, method in changed:
            self._forget({(dataset, method)})
            by_hash: dict[str, list[Row]] = {}
            for row in self.results.runs(dataset=dataset, method=method):
                by_hash.setdefault(row["dataset_hash"], []).append(row)
            for hash, rows in by_hash.items():
                key = (dataset, hash, method)
                num_configs = len({row["setting"] for row in rows})
                self._sizes[key] = {"runs": len(rows), "configs": num_configs}
                self._best[key] = best_by_group(rows, self.query.seed)
            progress.advance(1)
        self._forget(self._versions.keys() - now)
        self._versions = now

    def _forget(self, pairs: Collection[DatasetMethod]) -> None:
        for key in [key for key in self._best if (key[0], key[2]) in pairs]:
            del self._best[key], self._sizes[key]

    def _selected(self, key: MethodOnGraph) -> Iterator[ConfigRuns]:
        """The configurations of a method on a graph that any table has selected."""
        yield from (one.chosen for one in self._best[key].values() if one.chosen)
        for _, selection in self._selections.values():
            if chosen := selection.chosen:
                first = chosen.runs[0]
                if tuple(first[name] for name in KEY_COLUMNS) == key:
                    yield chosen
