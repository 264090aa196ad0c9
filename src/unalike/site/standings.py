"""Standings: the chosen settings of the cells of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from unalike.experiments.cookbook import Printed, printed_tables
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.results import Results
from unalike.experiments.select import Tried
from unalike.experiments.standing import Query, Standing, known_as, standing
from unalike.progress import SILENT, Progress
from unalike.site.cell import Document
from unalike.site.leaderboard import leaderboard
from unalike.site.stamps import Pair


@dataclass(eq=False)
class Standings:
    """All results tables of the paper over one database."""

    results: Results
    query: Query
    _kept: dict[tuple[str, str], tuple[str | None, Standing]] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def tables(self) -> list[tuple[Printed, list[Recipe]]]:
        """The tables with their rows."""
        return [(table, table.recipes()) for table in printed_tables().values()]

    @cached_property
    def names(self) -> dict[str, str]:
        """The names under which the results of datasets are kept."""
        told = {
            cell.dataset
            for _, recipes in self.tables
            for recipe in recipes
            for cell in recipe.cells.values()
        }
        return {name: known_as(name, self.query.data) for name in told}

    def leaderboards(
        self, stamps: Mapping[Pair, str], progress: Progress = SILENT
    ) -> list[Document]:
        """Every table, from what the stamps say is there now."""

        def ask(recipe: Recipe, cell: Cell) -> Standing:
            stamp = stamps.get((self.names[cell.dataset], str(recipe.method)))
            place = (recipe.name, str(cell))
            if place not in self._kept or self._kept[place][0] != stamp:
                found = standing(recipe, cell, self.results, self.query)
                self._kept[place] = (stamp, found)
            return self._kept[place][1]

        progress.stage("filling tables", len(self.tables), "tables")
        documents = []
        for table, recipes in self.tables:
            documents.append(leaderboard(table, recipes, ask))
            progress.advance(1)
        return documents

    def chosen(self) -> Iterator[Tried]:
        """The settings that stand in any table."""
        for _, found in self._kept.values():
            if found.chosen:
                yield found.chosen
