"""List the runs of a sweep, filter them by --only, group them into stacks."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from unalike.data.store import StoredGraph, open_graph
from unalike.datasets import GraphSource, find
from unalike.errors import UserError, check_seed
from unalike.experiments.config import (
    FULL_BATCH,
    Config,
    dataset_hash,
    no_features_error,
    no_splits_error,
    stored_graph_of,
    with_own_patience,
)
from unalike.experiments.recipe import Recipe, RecipeCell
from unalike.files import json_hash
from unalike.methods import check_predicts_numbers, check_uses_edge_weights

NOTHING_FITS = "Nothing fits --only; quoted cells need --quoted besides."

ConfigFilter = Callable[[Recipe, RecipeCell, Config], bool]


@dataclass(frozen=True)
class DatasetRef:
    """An available dataset: its name, hash, number of splits, and has it features?"""

    lookup_name: str
    """The name or path to find it by."""
    name: str
    hash: str
    num_splits: int
    has_features: bool = True
    path: str | None = None
    """The folder of a stored graph that is no dataset of a name."""

    @classmethod
    def of(cls, lookup_name: str, source: GraphSource) -> DatasetRef:
        splits, stored = len(source.splits()), stored_graph_of(source)
        return cls(
            lookup_name,
            source.name,
            dataset_hash(source),
            splits,
            stored.metadata["num_features"] > 0,
            str(stored.folder.absolute()) if isinstance(source, StoredGraph) else None,
        )

    def config(self, config: Config) -> Config:
        """The configuration as it is run here: own graphs have early stopping."""
        return with_own_patience(config) if self.path else config

    def num_splits_of(self, cell: RecipeCell) -> int:
        """How many splits a complete configuration of a cell has."""
        return min(cell.splits or self.num_splits, self.num_splits)


@dataclass(frozen=True)
class PlannedRun:
    """A configuration to train on one split of a dataset."""

    config: Config
    split: int
    key: str


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs on one dataset with equal shapes, which can train as one stack."""

    dataset: DatasetRef
    stack_key: str
    runs: tuple[PlannedRun, ...]

    @property
    def first(self) -> Config:
        return self.runs[0].config


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """The runs of a sweep, and the cells that cannot be run."""

    groups: Sequence[RunGroup]
    missing: dict[str, str] = field(default_factory=dict)
    """Why cells cannot be run, by recipe and dataset."""
    seed: int = 0
    data: Path | None = None

    @cached_property
    def keys(self) -> list[str]:
        return [run.key for group in self.groups for run in group.runs]


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """The recipes of a sweep, and which of their configurations to run."""

    recipes: Sequence[Recipe]
    config_filter: ConfigFilter = lambda recipe, cell, config: True
    variant: str = ""
    quoted: bool = False
    """Run also cells whose numbers the paper quotes from other papers."""
    seed: int = 0
    data: Path | None = None

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def cells(self) -> Iterator[tuple[Recipe, RecipeCell]]:
        """The cells with a method that can be run."""
        for recipe in self.recipes:
            for cell in recipe.cells.values():
                if recipe.method is not None and (self.quoted or not cell.quoted):
                    yield recipe, cell

    def configs(self, recipe: Recipe, cell: RecipeCell) -> list[Config]:
        """The configurations of a cell that the filter accepts."""
        configs = recipe.configs(cell, self.variant)
        return [one for one in configs if self.config_filter(recipe, cell, one)]


def plan_sweep(request: SweepRequest) -> SweepPlan:
    """List all runs of a request, each once."""
    missing: dict[str, str] = {}
    stacks: dict[tuple[DatasetRef, str], dict[str, PlannedRun]] = {}
    for recipe, cell in request.cells():
        try:
            configs = request.configs(recipe, cell)
            if not configs:
                continue
            dataset = dataset_ref(cell.dataset, request.data)
            configs = [dataset.config(config) for config in configs]
            method = configs[0].method
            has_features = dataset.has_features or cell.view.label_inputs
            if method.needs_features and not has_features:
                raise no_features_error(method, find(cell.dataset, request.data))
            if dataset.path is not None:
                graph = open_graph(Path(dataset.path)).graph
                check_uses_edge_weights(method, graph)
                check_predicts_numbers(method, graph)
        except UserError as error:
            missing[f"{recipe.name} {cell.dataset}"] = str(error)
            continue
        for run in runs_per_split(configs, dataset, cell, request.seed):
            stack = stacks.setdefault((dataset, run.config.stack_key), {})
            stack.setdefault(run.key, run)
    groups = [
        RunGroup(dataset, stack_key, order_by_split(runs.values()))
        for (dataset, stack_key), runs in stacks.items()
    ]
    return SweepPlan(
        groups=groups, missing=missing, seed=request.seed, data=request.data
    )


def order_by_split(runs: Iterable[PlannedRun]) -> tuple[PlannedRun, ...]:
    """Sort runs on batches by split, as runs of one split share their batches."""
    ordered = tuple(runs)
    if ordered[0].config.batching == FULL_BATCH:
        return ordered
    return tuple(sorted(ordered, key=lambda run: run.split))


@cache
def dataset_ref(name: str, data: Path | None) -> DatasetRef:
    """The reference to a dataset by name; its files are read and hashed once."""
    source = find(name, data)
    dataset = DatasetRef.of(name, source)
    if not dataset.num_splits:
        raise no_splits_error(source)
    return dataset


def runs_per_split(
    configs: Sequence[Config], dataset: DatasetRef, cell: RecipeCell, seed: int
) -> Iterator[PlannedRun]:
    """The runs of configurations on every split of a cell."""
    for config in configs:
        for split in range(dataset.num_splits_of(cell)):
            key = run_key(config.to_dict, dataset.name, dataset.hash, split, seed)
            yield PlannedRun(config, split, key)


def run_key(
    config: dict[str, Any], dataset: str, hash: str, split: int, seed: int
) -> str:
    """The hash that identifies a run on every machine."""
    data = {"dataset": dataset, "dataset_hash": hash, "split": split, "seed": seed}
    return json_hash({**config, **data})


# The flags --only and --set


def parse_filter(words: Sequence[str]) -> ConfigFilter:
    """Parse a filter from words like method=linkx and hidden=64.

    All names must match; a name with several values matches any of them. Values may be
    written as in recipes: false, 5e-4.
    """
    accepted: dict[str, set[str]] = {}
    for name, value in parse_assignments(words, "--only", "method=linkx"):
        accepted.setdefault(name, set()).add(str(parse_value(value)))

    def matches(recipe: Recipe, cell: RecipeCell, config: Config) -> bool:
        options = config.to_dict["options"]
        fields = {
            **{name: str(value) for name, value in options.items()},
            "row": recipe.row,
            "recipe": recipe.name,
            "method": str(recipe.method),
            "dataset": cell.dataset,
        }
        return all(fields.get(name) in values for name, values in accepted.items())

    return matches


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """Parse options from words like epochs=100 and precision=bf16."""
    return {
        name: parse_value(value)
        for name, value in parse_assignments(words, "--set", "precision=bf16")
    }


def parse_assignments(
    words: Sequence[str], flag: str, example: str
) -> Iterator[tuple[str, str]]:
    """Split words of the form NAME=VALUE."""
    for word in words:
        name, separator, value = word.partition("=")
        if not separator:
            raise UserError(f"{flag} is '{word}'; write NAME=VALUE, as in {example}.")
        yield name.replace("-", "_"), value


def parse_value(text: str) -> Any:
    """Parse a value as TOML does; strings need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
