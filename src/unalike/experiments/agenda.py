"""Agenda: the runs that recipes ask for, in bundles that train as one stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from unalike.datasets import Source, find
from unalike.errors import UserError
from unalike.experiments.fingerprint import digest, fingerprint
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.setting import WHOLE, Setting
from unalike.experiments.view import View

Chosen = Callable[[Recipe, Cell, Setting], bool]


def everything(recipe: Recipe, cell: Cell, setting: Setting) -> bool:
    """The choice that leaves nothing out."""
    return True


@dataclass(frozen=True)
class Subject:
    """A dataset that is at hand: how it is found, and which data it is."""

    told: str
    """What `find` knows it by."""
    name: str
    hash: str
    num_splits: int

    @classmethod
    def of(cls, told: str, source: Source) -> Subject:
        """The dataset behind a source."""
        return cls(told, source.name, fingerprint(source), len(source.splits()))


@dataclass(frozen=True)
class Run:
    """A split of a dataset to be solved with a setting."""

    setting: Setting
    split: int
    key: str


@dataclass(frozen=True, eq=False)
class Bundle:
    """Runs on one dataset that share shapes."""

    subject: Subject
    shape: str
    runs: tuple[Run, ...]

    @property
    def first(self) -> Setting:
        return self.runs[0].setting

    @property
    def view(self) -> View:
        return self.first.view


@dataclass(frozen=True, kw_only=True)
class Agenda:
    """What is to be done, and what cannot be."""

    bundles: Sequence[Bundle]
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
    return digest({**facts, **where})


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a sweep is asked for."""

    recipes: Sequence[Recipe]
    chosen: Chosen = everything
    variant: str = ""
    quoted: bool = False
    """Also cells whose numbers the paper took from elsewhere?"""
    seed: int = 0
    data: Path | None = None

    def cells(self) -> Iterator[tuple[Recipe, Cell]]:
        """The cells that can be run at all."""
        for recipe in self.recipes:
            for cell in recipe.cells.values():
                if recipe.method is not None and (self.quoted or not cell.quoted):
                    yield recipe, cell

    def settings(self, recipe: Recipe, cell: Cell) -> list[Setting]:
        """The settings of a cell that are meant."""
        settings = recipe.settings(cell, self.variant)
        return [one for one in settings if self.chosen(recipe, cell, one)]


def plan(order: Order) -> Agenda:
    """All runs of an order, each once."""
    missing: dict[str, str] = {}
    shapes: dict[tuple[Subject, str], dict[str, Run]] = {}
    for recipe, cell in order.cells():
        try:
            wanted = order.settings(recipe, cell)
            if not wanted:
                continue
            subject = subject_of(cell.dataset, order.data)
        except UserError as error:
            missing[f"{recipe.name} {cell.dataset}"] = str(error)
            continue
        for run in runs_of(wanted, subject, cell, order.seed):
            place = (subject, run.setting.shape)
            shapes.setdefault(place, {}).setdefault(run.key, run)
    bundles = [
        Bundle(subject, shape, in_order(runs.values()))
        for (subject, shape), runs in shapes.items()
    ]
    return Agenda(bundles=bundles, missing=missing, seed=order.seed, data=order.data)


def in_order(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Runs as they come; those on batches by split, which they learn on together."""
    told = tuple(runs)
    if told[0].setting.batching == WHOLE:
        return told
    return tuple(sorted(told, key=lambda run: run.split))


@cache
def subject_of(name: str, data: Path | None) -> Subject:
    """The dataset of a name; its files are read and hashed once."""
    return Subject.of(name, find(name, data))


def runs_of(
    settings: Sequence[Setting], subject: Subject, cell: Cell, seed: int
) -> Iterator[Run]:
    """Every split of every setting."""
    count = min(cell.splits or subject.num_splits, subject.num_splits)
    for setting in settings:
        for split in range(count):
            facts = setting.facts
            yield Run(
                setting, split, run_key(facts, subject.name, subject.hash, split, seed)
            )
