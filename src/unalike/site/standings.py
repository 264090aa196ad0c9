"""Leaderboards of one database; cells are selected again only when runs change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from unalike.experiments.cookbook import Printed, printed_tables
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.results import Results
from unalike.experiments.select import Tried
from unalike.experiments.standing import Query, Standing, known_as, standing
from unalike.progress import SILENT, Progress
from unalike.site.cell import Document
from unalike.site.leaderboard import leaderboard, opening_table
from unalike.site.stamps import DatasetMethod


@dataclass(eq=False)
class LeaderboardCache:
    """All results tables of the paper over one database."""

    results: Results
    query: Query
    _selections: dict[tuple[str, str], tuple[str | None, Standing]] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def tables(self) -> list[tuple[Printed, list[Recipe]]]:
        """The tables with their rows."""
        return [(table, table.recipes()) for table in printed_tables().values()]

    @cached_property
    def stored_names(self) -> dict[str, str]:
        """The names under which the results of datasets are stored."""
        names = {
            cell.dataset
            for _, recipes in self.tables
            for recipe in recipes
            for cell in recipe.cells.values()
        }
        return {name: known_as(name, self.query.data) for name in names}

    def leaderboards(
        self, tokens: Mapping[DatasetMethod, str], progress: Progress = SILENT
    ) -> list[Document]:
        """Every table; cells whose change token is the same come from the cache."""

        def lookup_cell(recipe: Recipe, cell: Cell) -> Standing:
            token = tokens.get((self.stored_names[cell.dataset], str(recipe.method)))
            key = (recipe.name, str(cell))
            if key not in self._selections or self._selections[key][0] != token:
                selection = standing(recipe, cell, self.results, self.query)
                self._selections[key] = (token, selection)
            return self._selections[key][1]

        progress.stage("filling tables", len(self.tables), "tables")
        documents = []
        for table, recipes in self.tables:
            documents.append(leaderboard(table, recipes, lookup_cell))
            progress.advance(1)
        return documents

    def opening_table(self, tables: Sequence[Document]) -> str:
        """The name of the table that the page opens with."""
        recipes = {table.name: rows for table, rows in self.tables}
        return opening_table(tables, recipes, self.query.data)

    def selected(self) -> Iterator[Tried]:
        """The configurations that are selected in any table."""
        for _, selection in self._selections.values():
            if selection.chosen:
                yield selection.chosen
