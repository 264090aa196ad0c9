"""Look up the numbers of pages in stored runs, recipes, bench files and the code."""

import gzip
import json
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean

from unalike.datasets.registry import DATASETS
from unalike.datasets.twins import TWINS
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.plan import parse_assignments, parse_value
from unalike.experiments.recipe import find_recipes
from unalike.experiments.selection import (
    CellSelector,
    SelectionOptions,
    best_by_validation,
    group_by_config,
)
from unalike.measures.registry import MEASURES, ONE_PASS_MEASURES
from unalike.methods import METHODS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"

sys.path.insert(0, str(ROOT / "benchmarks"))

from advice import GOOD, HELD_OUT, Outcome, outcomes, rows  # noqa: E402

Value = float | tuple[float, float | None]
"""A number, or a mean with its standard deviation."""


@cache
def read_json(name: str):
    """A JSON file of results/."""
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


RUN_FILES = ("runs", "views", "since-2021")
"""The files of results/ with stored runs."""


def stored_runs(name: str) -> int:
    """How many runs a file of results/ has."""
    with gzip.open(RESULTS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return sum(1 for _ in lines) - 1  # the first line names the format


@cache
def advice_outcomes() -> list[Outcome]:
    """First recommendation and best method of every graph in results/advice.jsonl."""
    return outcomes(HELD_OUT, rows(RESULTS / "advice.jsonl"))


def best_setting(
    database: ResultsDatabase,
    method: str,
    dataset: str,
    options: Sequence[str],
    splits: Container[int] | None = None,
) -> tuple[float, float | None]:
    """Test mean and deviation of the best setting that has the given options."""
    wanted = {
        name: parse_value(text)
        for name, text in parse_assignments(options, "options", "hidden=64")
    }
    found = [
        row
        for row in database.runs(dataset=dataset, method=method)
        if wanted.items() <= row["options"].items()
        and (splits is None or row["split"] in splits)
    ]
    best = best_by_validation(group_by_config(found))
    return best.test, best.std


class Sources:
    """Looks up numbers by the words of their source."""

    def __init__(
        self, database: str, data: Path, later: str, tables: Mapping[str, str]
    ) -> None:
        self.tables = tables  # The text of each table of results/, by name.
        self.database = ResultsDatabase.read(database)
        self.later = ResultsDatabase.read(later)
        options = SelectionOptions(settings="any", data=data)
        self.selector = CellSelector(self.database, options)
        self.lookup: dict[str, Callable[..., Value]] = {
            "ours": self.ours,
            "printed": self.printed,
            "deviations": self.deviations,
            "setting": self.setting,
            "first-splits": self.first_splits,
            "bench": self.bench,
            "layer": self.layer,
            "ratio": self.ratio,
            "stacks": self.stacks,
            "file": self.file,
            "advice": self.advice,
            "advised": self.advised,
            "count": self.count,
            "twin": self.twin,
        }

    def value(self, source: str) -> Value:
        """The number of a source, as in `ours full-batch/link arxiv-year`."""
        kind, *words = source.split(" ")
        return self.lookup[kind](*words)

    def ours(self, recipe: str, dataset: str) -> tuple[float, float | None]:
        """Mean and deviation of the setting that a table selects among all settings."""
        row, cell = self.cell(recipe, dataset)
        chosen = self.selector.select(row, cell).chosen
        return chosen.test, chosen.std

    def printed(self, recipe: str, dataset: str) -> tuple[float, float | None]:
        """Mean and deviation that the paper prints."""
        _, cell = self.cell(recipe, dataset)
        return cell.mean, cell.std

    def deviations(self, recipe: str, dataset: str) -> float:
        """Distance to the printed mean in printed standard deviations."""
        mean, std = self.printed(recipe, dataset)
        return abs(self.ours(recipe, dataset)[0] - mean) / std

    def cell(self, name: str, dataset: str):
        """The recipe of a name and its cell of a dataset, also of another one."""
        (recipe,) = find_recipes([name])
        if dataset not in recipe.cells:
            recipe = recipe.on_datasets([dataset])
        return recipe, recipe.cells[dataset]

    def setting(
        self, method: str, dataset: str, *options: str
    ) -> tuple[float, float | None]:
        """Mean and deviation of the best setting with the given options."""
        return best_setting(self.database, method, dataset, options)

    def first_splits(
        self, count: str, method: str, dataset: str, *options: str
    ) -> tuple[float, float | None]:
        """The same in results/since-2021.jsonl.gz, on the first splits alone."""
        splits = range(int(count))
        return best_setting(self.later, method, dataset, options, splits)

    def bench(
        self, file: str, method: str, hidden: str, field: str, *what: str
    ) -> float:
        """A measurement of an epoch."""
        epochs = read_json(f"bench/{file}")["epochs"]
        key = (method, int(hidden), " ".join(what))
        (row,) = (r for r in epochs if (r["method"], r["hidden"], r["what"]) == key)
        return row[field]

    def ratio(self, *source: str) -> float:
        """How many times as fast as the fastest form of PyG unalike is."""
        return self.bench(*source[:3], "times_fastest_peer", *source[3:])

    def layer(self, file: str, layer: str, field: str, *what: str) -> float:
        """A measurement of a layer in a bench file of one graph."""
        rows_of_layer = read_json(f"bench/{file}")["layers"]
        key = (layer, " ".join(what))
        (row,) = (row for row in rows_of_layer if (row["layer"], row["what"]) == key)
        return row[field]

    def stacks(self, column: str) -> float:
        """Time of all runs one at a time, divided by that of their stacks."""
        found = read_json("bench/stacks-h200")["rows"]
        alone = sum(row[2] * row[int(column)] for row in found)
        return alone / sum(row[2] for row in found)

    def file(self, name: str, *path: str) -> Value:
        """A value in a JSON file of results/, as `bench/twins-cpu twins name=wiki mb`.

        A word with = selects the row of a list, `first` and `last` a number of one; a
        last word `/1000` divides.
        """
        found = read_json(name)
        divisor = 1.0
        for word in path:
            if word.startswith("/"):
                divisor = float(word[1:])
            elif word in ("first", "last"):
                found = found[-(word == "last")]
            elif "=" in word:
                key, _, wanted = word.partition("=")
                (found,) = (row for row in found if str(row[key]) == wanted)
            else:
                found = found[word]
        return tuple(found) if isinstance(found, list) else found / divisor

    def advice(self, graph: str, method: str) -> float:
        """Mean test score over the splits of a graph in the benchmark of advice."""
        key = (graph, method.replace("_", " "))
        (row,) = (
            row
            for row in rows(RESULTS / "advice.jsonl")
            if (row["graph"], row.get("method")) == key and row.get("test")
        )
        return mean(row["test"])

    def advised(self, method: str) -> float:
        """On how many graphs a method, or the `first` advice, is near the best."""
        below = (one.points_below(method) for one in advice_outcomes())
        return sum(points <= GOOD for points in below)

    def count(self, what: str) -> float:
        """How many runs, datasets, methods or measures there are."""
        counts = {
            "advised-graphs": len(HELD_OUT),
            "datasets": len(DATASETS),
            "methods": len(METHODS),
            "measures": len(MEASURES),
            "one-pass": len(ONE_PASS_MEASURES),
            "runs": sum(map(stored_runs, RUN_FILES)),
            "views-runs": stored_runs("views"),
        }
        return counts[what]

    def twin(self, name: str, field: str) -> float:
        """A parameter of a twin."""
        return getattr(TWINS[f"{name}-twin"], field)
