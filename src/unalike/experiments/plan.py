"""Which runs a sweep has to do, filtered by --only, grouped into runs that train together."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from unalike.datasets import GraphSource, find
from unalike.errors import UserError
from unalike.experiments.config import (
    FULL_BATCH,
    Config,
    DatasetOptions,
    dataset_hash,
    json_hash,
)
from unalike.experiments.recipe import Recipe, RecipeCell

# Agenda: the runs that recipes ask for, in bundles that train as one stack.


ConfigFilter = Callable[[Recipe, RecipeCell, Config], bool]


def accept_all(recipe: Recipe, cell: RecipeCell, setting: Config) -> bool:
    """The choice that leaves nothing out."""
    return True


@dataclass(frozen=True)
class DatasetRef:
    """A dataset that is at hand: how it is found, and which data it is."""

    lookup_name: str
    """What `find` knows it by."""
    name: str
    hash: str
    num_splits: int

    @classmethod
    def of(cls, told: str, source: GraphSource) -> DatasetRef:
        """The dataset behind a source."""
        return cls(told, source.name, dataset_hash(source), len(source.splits()))


@dataclass(frozen=True)
class PlannedRun:
    """A split of a dataset to be solved with a setting."""

    setting: Config
    split: int
    key: str


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs on one dataset that share shapes."""

    subject: DatasetRef
    shape: str
    runs: tuple[PlannedRun, ...]

    @property
    def first(self) -> Config:
        return self.runs[0].setting

    @property
    def view(self) -> DatasetOptions:
        return self.first.view


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """What is to be done, and what cannot be."""

    bundles: Sequence[RunGroup]
    missing: dict[str, str] = field(default_factory=dict)
    """Why some cells cannot be run, by recipe or dataset."""
    seed: int = 0
    data: Path | None = None

    @cached_property
    def keys(self) -> list[str]:
        """The keys of all runs."""
        return [run.key for bundle in self.bundles for run in bundle.runs]


def run_key(
    facts: dict[str, Any], subject: str, hash: str, split: int, seed: int
) -> str:
    """What makes a run the same run wherever and whenever it is made."""
    where = {"dataset": subject, "dataset_hash": hash, "split": split, "seed": seed}
    return json_hash({**facts, **where})


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """What a sweep is asked for."""

    recipes: Sequence[Recipe]
    config_filter: ConfigFilter = accept_all
    variant: str = ""
    quoted: bool = False
    """Also cells whose numbers the paper took from elsewhere?"""
    seed: int = 0
    data: Path | None = None

    def cells(self) -> Iterator[tuple[Recipe, RecipeCell]]:
        """The cells that can be run at all."""
        for recipe in self.recipes:
            for cell in recipe.cells.values():
                if recipe.method is not None and (self.quoted or not cell.quoted):
                    yield recipe, cell

    def settings(self, recipe: Recipe, cell: RecipeCell) -> list[Config]:
        """The settings of a cell that are meant."""
        settings = recipe.configs(cell, self.variant)
        return [one for one in settings if self.config_filter(recipe, cell, one)]


def plan_sweep(order: SweepRequest) -> SweepPlan:
    """All runs of an order, each once."""
    missing: dict[str, str] = {}
    shapes: dict[tuple[DatasetRef, str], dict[str, PlannedRun]] = {}
    for recipe, cell in order.cells():
        try:
            wanted = order.settings(recipe, cell)
            if not wanted:
                continue
            subject = dataset_ref(cell.dataset, order.data)
        except UserError as error:
            missing[f"{recipe.name} {cell.dataset}"] = str(error)
            continue
        for run in runs_per_split(wanted, subject, cell, order.seed):
            place = (subject, run.setting.stack_key)
            shapes.setdefault(place, {}).setdefault(run.key, run)
    bundles = [
        RunGroup(subject, shape, order_by_split(runs.values()))
        for (subject, shape), runs in shapes.items()
    ]
    return SweepPlan(bundles=bundles, missing=missing, seed=order.seed, data=order.data)


def order_by_split(runs: Iterable[PlannedRun]) -> tuple[PlannedRun, ...]:
    """Runs as they come; those on batches by split, which they learn on together."""
    told = tuple(runs)
    if told[0].setting.batching == FULL_BATCH:
        return told
    return tuple(sorted(told, key=lambda run: run.split))


@cache
def dataset_ref(name: str, data: Path | None) -> DatasetRef:
    """The dataset of a name; its files are read and hashed once."""
    return DatasetRef.of(name, find(name, data))


def runs_per_split(
    settings: Sequence[Config], subject: DatasetRef, cell: RecipeCell, seed: int
) -> Iterator[PlannedRun]:
    """Every split of every setting."""
    count = min(cell.splits or subject.num_splits, subject.num_splits)
    for setting in settings:
        for split in range(count):
            facts = setting.to_dict
            yield PlannedRun(
                setting, split, run_key(facts, subject.name, subject.hash, split, seed)
            )


# Only: which cells and settings of recipes are meant, and what is set in all.


def parse_filter(words: Sequence[str]) -> ConfigFilter:
    """A test for words like method=linkx and hidden=64.

    Different names must all fit; of several values of one name, any may.
    """
    wanted: dict[str, set[str]] = {}
    for name, value in parse_assignments(words, "--only", "method=linkx"):
        wanted.setdefault(name, set()).add(value)

    def chosen(recipe: Recipe, cell: RecipeCell, setting: Config) -> bool:
        facts = filterable_fields(recipe, cell, setting)
        return all(facts.get(name) in values for name, values in wanted.items())

    return chosen


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """The options that words like epochs=100 and precision=bf16 set."""
    return {
        name: parse_value(value)
        for name, value in parse_assignments(words, "--set", "precision=bf16")
    }


def parse_assignments(
    words: Sequence[str], option: str, example: str
) -> Iterator[tuple[str, str]]:
    """The names and values of words."""
    for word in words:
        name, found, value = word.partition("=")
        if not found:
            raise UserError(f"{option} is '{word}'; write NAME=VALUE, as in {example}.")
        yield name.replace("-", "_"), value


def parse_value(text: str) -> Any:
    """A value as a recipe would write it; words need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def filterable_fields(
    recipe: Recipe, cell: RecipeCell, setting: Config
) -> dict[str, str]:
    """What may be asked of a setting in a cell."""
    return {
        **{name: str(value) for name, value in setting.to_dict["options"].items()},
        "row": recipe.row,
        "recipe": recipe.name,
        "method": str(recipe.method),
        "dataset": cell.dataset,
    }
