"""Best configuration by validation score, for a list of runs or for a table cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev

from unalike.data.store import StoredGraph
from unalike.datasets import GraphSource, find
from unalike.datasets.base import Dataset
from unalike.datasets.twins.twin import Twin
from unalike.errors import UserError, lookup
from unalike.experiments.config import (
    OWN_PATIENCE,
    dataset_hash,
    no_features,
    with_own_patience,
)
from unalike.experiments.database import ResultsDatabase, Row
from unalike.experiments.recipe import Recipe, RecipeCell, SearchSpace
from unalike.methods import METHODS


@dataclass(frozen=True, eq=False)
class ConfigRuns:
    """The runs of one configuration and seed on one version of a dataset."""

    setting: str
    """The hash of the configuration."""
    runs: list[Row]

    @property
    def splits(self) -> frozenset[int]:
        return frozenset(row["split"] for row in self.runs)

    @property
    def seed(self) -> int:
        return int(self.runs[0]["seed"])

    @property
    def valid(self) -> float:
        """The mean validation score over the splits."""
        return mean(row["valid"] for row in self.runs)

    @property
    def test(self) -> float:
        """The mean test score over the splits."""
        return mean(row["test"] for row in self.runs)

    @property
    def std(self) -> float | None:
        """The sample standard deviation of the test scores over the splits."""
        tests = [row["test"] for row in self.runs]
        return stdev(tests) if len(tests) > 1 else None


def best_by_validation(configs: Iterable[ConfigRuns]) -> ConfigRuns | None:
    """The configuration with the highest mean validation score.

    Ties are broken by the hash, so that the order of the runs does not matter.
    """
    return max(configs, key=lambda one: (one.valid, one.setting), default=None)


def group_by_config(rows: Iterable[Row]) -> list[ConfigRuns]:
    """Group runs by configuration."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        key = (row["dataset_hash"], row["setting"], row["seed"])
        groups.setdefault(key, []).append(row)
    return [ConfigRuns(setting, runs) for (_, setting, _), runs in groups.items()]


def on_splits(
    configs: Iterable[ConfigRuns], splits: Collection[int]
) -> list[ConfigRuns]:
    """The configurations with a run on each of these splits, without other runs."""
    return [
        ConfigRuns(one.setting, [row for row in one.runs if row["split"] in splits])
        for one in configs
        if one.splits.issuperset(splits)
    ]


def most_splits(configs: Iterable[ConfigRuns]) -> frozenset[int]:
    """The largest set of splits of a configuration; the most frequent of that size."""
    counts = Counter(one.splits for one in configs)
    return max(
        counts,
        key=lambda splits: (len(splits), counts[splits], [-n for n in sorted(splits)]),
        default=frozenset(),
    )


NOT_PUBLISHED = "no published number is known to us"

MOST_COMPLETE, ANY = "most", "any"


def of_seed(configs: Sequence[ConfigRuns], seed: str) -> list[ConfigRuns]:
    """The configurations of a seed, of `any`, or of the one with the `most` of them.

    The lowest seed is chosen among those with equally many configurations.
    """
    if seed == ANY:
        return list(configs)
    if seed == MOST_COMPLETE:
        counts = Counter(one.seed for one in configs)
        wanted = max(counts, key=lambda one: (counts[one], -one), default=0)
        return [one for one in configs if one.seed == wanted]
    try:
        return [one for one in configs if one.seed == int(seed)]
    except ValueError:
        raise UserError(
            f"--seed is '{seed}'; write a number, {MOST_COMPLETE} or {ANY}."
        ) from None


# The version of a dataset that a table shows


@dataclass(frozen=True)
class DatasetVersion:
    """The data at hand, or the version of a dataset that has the most runs."""

    name: str
    """The name that its runs are stored by."""
    hash: str | None
    """None if there are neither data nor runs."""
    num_splits: int | None
    """None for a known dataset without data at hand."""
    runs: int
    other_runs: int
    """Number of runs on other versions of the dataset."""


def dataset_version(
    dataset: str, results: ResultsDatabase, data: Path | None
) -> DatasetVersion:
    """The version of a dataset that a table shows.

    All methods of a table must be compared on the same data. These are the data at
    hand. Without data it is the version with the most runs, the newest among equals.
    """
    source: GraphSource | None = None
    with suppress(UserError):
        source = find(dataset, data)
    name = source.name if source else dataset
    versions = results.dataset_versions(name)
    # A source that must be converted or generated first is not opened.
    stored = source.cached() if isinstance(source, Dataset | Twin) else source
    hash: str | None = None
    splits: int | None = None
    if source and isinstance(stored, StoredGraph):
        hash, splits = dataset_hash(source), len(stored.array("splits"))
        matches = [row for row in versions if row["dataset_hash"] == hash]
    else:
        matches = versions[:1]
        hash = matches[0]["dataset_hash"] if matches else None
        splits = None if source else sum(row["splits"] for row in matches)
    runs = sum(row["runs"] for row in matches)
    others = sum(row["runs"] for row in versions) - runs
    return DatasetVersion(name, hash, splits, runs, others)


# Selection for a cell of a results table


OTHER_SETTINGS = "run only with settings outside the grid, which --settings any shows"


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which runs count for a cell: those of a grid, or any that were stored."""

    settings: str = "grid"
    variant: str = ""
    seed: str = MOST_COMPLETE
    """A number; `most`: the seed with the most complete configurations; or `any`."""
    data: Path | None = None

    def __post_init__(self) -> None:
        lookup(dict.fromkeys(("grid", "any")), self.settings, "choice of settings")


@dataclass(frozen=True)
class CellSelection:
    """The best configuration of a cell, and among how many it was selected."""

    chosen: ConfigRuns | None
    num_complete: int
    grid_size: int | None
    """Number of configurations of the grid; None if any configuration counts."""
    missing: str | None = None
    """Why no configuration could be selected."""


@dataclass(frozen=True, eq=False)
class CellSelector:
    """Selects configurations for cells; looks up the version of each dataset once."""

    results: ResultsDatabase
    options: SelectionOptions
    _versions: dict[str, DatasetVersion] = field(default_factory=dict, init=False)

    def version(self, dataset: str) -> DatasetVersion:
        """The version of a dataset whose runs count."""
        if dataset not in self._versions:
            self._versions[dataset] = dataset_version(
                dataset, self.results, self.options.data
            )
        return self._versions[dataset]

    def select(self, recipe: Recipe, cell: RecipeCell) -> CellSelection:
        """Select the best complete configuration of a cell by validation score."""
        if not recipe.is_implemented:
            quoted = f"quoted from {cell.quoted}" if cell.quoted else NOT_PUBLISHED
            missing = f"{recipe.method} on batches of {recipe.batching} is not here"
            return CellSelection(None, 0, None, missing if recipe.method else quoted)
        version, method = self.version(cell.dataset), str(recipe.method)
        hash = version.hash or ""
        rows = list(
            self.results.runs(dataset=version.name, dataset_hash=hash, method=method)
        )
        grid = self.grid_hashes(recipe, cell)
        if grid is None:
            filtered = self.with_fixed_options(recipe, cell, rows)
        else:
            filtered = [row for row in rows if row["setting"] in grid]
        splits = num_splits(cell, version, filtered)
        configs = on_splits(group_by_config(filtered), range(splits))
        complete = of_seed(configs, self.options.seed)
        chosen = best_by_validation(complete)
        reason = None
        if not chosen and filtered and splits:
            reason = f"no setting has all {splits} splits yet"
        elif not chosen:
            reason = self.why_missing(recipe, cell, rows, grid)
        grid_size = None if grid is None else len(set(grid.values()))
        return CellSelection(chosen, len(complete), grid_size, reason)

    def grid_hashes(self, recipe: Recipe, cell: RecipeCell) -> dict[str, str] | None:
        """The hashes of the runs of a grid, each with the hash of its configuration.

        Runs on a graph of the user count with early stopping and without it. None if
        other settings count, or the grid has ranges.
        """
        variant = self.options.variant
        ranges = SearchSpace.of(recipe, cell, variant).has_range
        if self.options.settings == "any" or ranges:
            return None
        own = may_be_own(cell.dataset, self.options.data)
        hashes = {}
        for config in recipe.configs(cell, variant):
            hashes[config.hash] = config.hash
            if own:
                hashes[with_own_patience(config).hash] = config.hash
        return hashes

    def with_fixed_options(
        self, recipe: Recipe, cell: RecipeCell, rows: Iterable[Row]
    ) -> list[Row]:
        """The runs with the options that the recipe fixes."""
        fixed = SearchSpace.of(recipe, cell, self.options.variant).fixed
        views = [cell.view.overrides]
        if cell.view.patience is None and may_be_own(cell.dataset, self.options.data):
            views.append({**cell.view.overrides, "patience": OWN_PATIENCE})
        return [
            row
            for row in rows
            if row["view"] in views
            and row["batching"] == recipe.batching
            and all(row["options"].get(name) == one for name, one in fixed.items())
        ]

    def notes(self, dataset: str, *, has_numbers: bool) -> list[str]:
        """What readers of a table should know about the data of its numbers."""
        version, notes = self.version(dataset), []
        if others := version.other_runs:
            total = version.runs + others
            notes.append(f"{version.name}: {others} of {total} runs are on other data")
        with suppress(UserError):
            source = find(dataset, self.options.data)
            if has_numbers and lacks_features(source):
                notes.append(f"{no_features(source)}; numbers of it are without them")
        return notes

    def why_missing(
        self,
        recipe: Recipe,
        cell: RecipeCell,
        rows: Sequence[Row],
        grid: Collection[str] | None,
    ) -> str:
        """Why a cell has none of the runs that count."""
        version, method = self.version(cell.dataset), str(recipe.method)
        failures = self.results.failures(dataset=version.name, method=method)
        for row in failures:
            if grid is None or row["setting"] in grid:
                return f"failed: {row['error'].splitlines()[-1]}"
        if self.with_fixed_options(recipe, cell, rows):
            return OTHER_SETTINGS
        if version.other_runs and not version.runs:
            return "all runs are on other data than those at hand"
        if cell.quoted:
            return f"quoted from {cell.quoted}"
        try:
            source = find(cell.dataset, self.options.data)
        except UserError as error:
            return str(error)
        needs_features = METHODS[method]().needs_features
        return why_not_run(
            source, needs_features=needs_features and not cell.view.label_inputs
        )


def why_not_run(source: GraphSource, *, needs_features: bool) -> str:
    """Why there are no runs of a method: missing files, or only that none was made."""
    if not isinstance(source, Dataset):
        return "not run"
    if not source.cached() and not has_files(source):
        return f"the files of {source.name} are not here"
    if needs_features and lacks_features(source):
        return no_features(source)
    return "not run"


def has_files(dataset: Dataset) -> bool:
    """Are the raw files here without which a dataset cannot be read?"""
    return bool(dataset.files) and not dataset.missing_files()


def lacks_features(source: GraphSource) -> bool:
    """Is a dataset here, but without features?"""
    if not isinstance(source, Dataset):
        return False
    if stored := source.cached():
        return not stored.metadata["num_features"]
    return has_files(source) and not source.has_features_file()


def num_splits(cell: RecipeCell, version: DatasetVersion, rows: Iterable[Row]) -> int:
    """How many splits a complete configuration of a cell has, as a sweep counts them.

    Without a number in the recipe and without data, all splits with runs count.
    """
    if cell.splits and version.num_splits:
        return min(cell.splits, version.num_splits)
    return cell.splits or version.num_splits or len({row["split"] for row in rows})


def may_be_own(dataset: str, data: Path | None) -> bool:
    """Whether a name is a graph of the user, or of no graph that is here."""
    try:
        return isinstance(find(dataset, data), StoredGraph)
    except UserError:
        return True


def best_with_most_splits(
    rows: Iterable[Row], seed: str = MOST_COMPLETE
) -> CellSelection:
    """Select among the configurations with the most splits by validation score."""
    configs = of_seed(group_by_config(rows), seed)
    complete = on_splits(configs, most_splits(configs))
    return CellSelection(best_by_validation(complete), len(complete), None)
