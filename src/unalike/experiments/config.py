"""Hyperparameter configuration of a method, dataset options, and their hashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.data.regression import ALL_METRICS
from unalike.data.split import Split, random_splits, split_by_order
from unalike.data.store import StoredGraph
from unalike.data.task import (
    CLASS_WEIGHTS,
    Task,
    class_weights_by_name,
    parse_class_weights,
)
from unalike.datasets import GraphSource
from unalike.datasets.base import Dataset
from unalike.datasets.registry import GraphInMemory
from unalike.datasets.splits import NUM_SPLITS
from unalike.datasets.twins.twin import Twin
from unalike.errors import UserError, check_at_least_one, lookup
from unalike.files import json_hash
from unalike.methods import METHODS, name_of
from unalike.methods.base import Method, TrainedMethod
from unalike.options import options_of, with_options
from unalike.progress import NO_PROGRESS, Progress
from unalike.samplers.rows import paper_range_count

FULL_BATCH = "full"
"""The batching of methods that have no batching option."""

# Splits of the paper's minibatch program, which does not use those of its files


PAPER_EPOCHS, PAPER_PARTS = 500, 10
"""Epochs of a run and ranges of nodes of the paper's row batches."""


def splits_between_rows(graph: Graph, count: int) -> list[Split]:
    """The splits of runs with row batches.

    The range of each epoch comes from the generator of the splits, so that 500 random
    integers are taken from it between two splits.
    """
    rng = np.random.RandomState(0)
    labelled = (graph.labels >= 0).nonzero()[:, 0]
    ranges = paper_range_count(graph.adjacency, PAPER_PARTS)
    splits = []
    for _ in range(count):
        order = rng.permutation(len(labelled))
        splits.append(split_by_order(labelled, order, train=0.5, valid=0.25))
        for _ in range(PAPER_EPOCHS):
            rng.randint(ranges)
    return splits


FRESH_SPLITS: dict[str, Callable[[Graph, int], list[Split]]] = {
    "rows": splits_between_rows,
    "samplers": lambda graph, count: random_splits(graph.labels, count=count),
}
"""Splits by the kind of batches; for subgraphs, successive random permutations."""

# Dataset options: metric, undirected edges, class weights and fresh splits


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """Overrides of how a dataset is given to methods; by default none."""

    metric: str | None = None
    """Train for and evaluate by this metric instead of the dataset's own."""
    both_ways: bool = False
    """Make the graph undirected, also where direction is usually preserved."""
    class_weights: str | None = None
    """balanced gives every class the same weight in the loss; fraud=5,good=1 gives
    each class its own."""
    fresh_splits: str | None = None
    """Random splits of the paper's minibatch program instead of the stored ones: rows,
    of its row batches, or samplers, of its subgraphs."""
    as_stored: bool = False
    """Use the stored graph: directed edges, no added self-loops, raw features."""
    raw_features: bool = False
    """Do not divide the features of each node by their sum."""
    no_added_loops: bool = False
    """Add no self-loops; those of the stored graph stay."""
    label_inputs: bool = False
    """Give the method histograms of the train labels up to two steps away as more
    features; no row has its own label."""
    inductive: bool = False
    """Train on the graph without the test nodes and their edges."""
    patience: int | None = None
    """Stop a split when its validation score has not improved for so many epochs; by
    default 200 on a graph of your own, and all epochs on named datasets."""

    def __post_init__(self) -> None:
        if self.as_stored and self.both_ways:
            raise UserError("--as-stored and --both-ways exclude each other.")
        if self.inductive and self.label_inputs:
            raise UserError("--inductive and --label-inputs exclude each other.")
        if self.metric is not None:
            lookup(ALL_METRICS, self.metric, "metric")
        if self.class_weights is not None and "=" in self.class_weights:
            parse_class_weights(self.class_weights)
        elif self.class_weights is not None:
            lookup(CLASS_WEIGHTS, self.class_weights, "class weights")
        if self.patience is not None:
            check_at_least_one("--patience", self.patience)
        if self.fresh_splits is not None:
            lookup(FRESH_SPLITS, self.fresh_splits, "fresh splits")

    @property
    def overrides(self) -> dict[str, Any]:
        """The options that differ from their defaults, by name."""
        return {name: value for name, value in asdict(self).items() if value}

    def apply(self, source: GraphSource) -> GraphSource:
        """The source with these options; the source itself if there are none."""
        return DatasetWithOptions(source, self) if self.overrides else source

    def apply_to_task(self, task: Task) -> Task:
        """The task with the class weights and the patience of the options."""
        task = replace(task, patience=self.patience)
        if self.class_weights is None:
            return task
        graph, labels = task.graph, task.graph.labels[task.train]
        weights = (
            CLASS_WEIGHTS[self.class_weights](labels, graph.num_classes)
            if self.class_weights in CLASS_WEIGHTS
            else class_weights_by_name(self.class_weights, graph)
        )
        return replace(task, class_weights=weights)


NO_OVERRIDES = DatasetOptions()


@dataclass(frozen=True, eq=False)
class DatasetWithOptions:
    """A source with dataset options; its graph and splits are loaded once."""

    source: GraphSource
    view: DatasetOptions = NO_OVERRIDES
    _loaded: list[tuple[Graph, list[Split]]] = field(
        default_factory=list, init=False, repr=False
    )

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def metric(self) -> Metric:
        name = self.view.metric
        return ALL_METRICS[name] if name else self.source.metric

    def load(self) -> Graph:
        return self.source.load()

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        return self._load(progress)[0]

    def splits(self) -> list[Split]:
        return self._load(NO_PROGRESS)[1]

    def remarks(self) -> list[str]:
        return self.source.remarks()

    def _load(self, progress: Progress) -> tuple[Graph, list[Split]]:
        if not self._loaded:
            if self.view.as_stored:
                stored = stored_graph_of(self.source, progress)
                graph, splits = stored.graph, stored.splits()
            else:
                source = self._with_preparation()
                graph, splits = load_graph_and_splits(source, progress)
            graph = graph.to_undirected() if self.view.both_ways else graph
            if self.view.fresh_splits:
                fresh = FRESH_SPLITS[self.view.fresh_splits]
                splits = fresh(graph, len(splits) or NUM_SPLITS)
            self._loaded.append((graph, splits))
        return self._loaded[0]

    def _with_preparation(self) -> GraphSource:
        """The source without the steps of preparation that the options leave out."""
        skipped = {
            step: False
            for option, step in SKIPPED_STEPS.items()
            if getattr(self.view, option)
        }
        if not skipped or not isinstance(self.source, Dataset):
            return self.source
        steps = replace(self.source.preparation, **skipped)
        return replace(self.source, preparation=steps)


SKIPPED_STEPS = {"raw_features": "row_normalised", "no_added_loops": "self_loops"}
"""Dataset options, each with the step of preparation that it leaves out."""


def load_graph_and_splits(
    source: GraphSource, progress: Progress = NO_PROGRESS
) -> tuple[Graph, list[Split]]:
    """The prepared graph and the splits of a source, from one opened stored graph."""
    if isinstance(source, Dataset | Twin):
        stored = stored_graph_of(source, progress)
        return source.prepare(stored, progress=progress), stored.splits()
    return source.prepared(progress=progress), source.splits()


def base_dataset(source: GraphSource) -> GraphSource:
    """The source without dataset options."""
    return source.source if isinstance(source, DatasetWithOptions) else source


def options_of_dataset(source: GraphSource) -> DatasetOptions:
    """The dataset options of a source."""
    return source.view if isinstance(source, DatasetWithOptions) else NO_OVERRIDES


OWN_PATIENCE = 200
"""Epochs without a better validation score before training stops on own graphs."""


def has_default_patience(source: GraphSource, method: Method) -> bool:
    """Whether a graph of the user is trained with `OWN_PATIENCE`, by a default.

    Named datasets run all epochs, as in the paper.
    """
    own = isinstance(base_dataset(source), StoredGraph | GraphInMemory)
    return own and uses_own_patience(method, options_of_dataset(source))


def uses_own_patience(method: Method, options: DatasetOptions) -> bool:
    """Whether a method on a graph of the user stops after `OWN_PATIENCE` epochs."""
    epochs = method.training.epochs if isinstance(method, TrainedMethod) else 0
    return options.patience in (None, OWN_PATIENCE) and epochs > OWN_PATIENCE


def with_default_patience(source: GraphSource, method: Method) -> GraphSource:
    """The source with early stopping, if it is a graph of the user."""
    if not has_default_patience(source, method):
        return source
    options = replace(options_of_dataset(source), patience=OWN_PATIENCE)
    return options.apply(base_dataset(source))


def class_names(source: GraphSource) -> list[str] | None:
    """The class names in the metadata of a stored graph, if there are any."""
    stored = base_dataset(source)
    if not isinstance(stored, StoredGraph | GraphInMemory):
        return None
    names = stored.load().class_names
    return [*map(str, names)] if names else None


def no_features(source: GraphSource) -> str:
    """Says that a source has no features, and which file has them."""
    base, hint = base_dataset(source), ""
    if isinstance(base, Dataset) and base.features_file:
        hint = f" (`unalike fetch {base.name}` gets {base.features_file.path})"
    return f"{source.name} has no features{hint}"


def no_features_error(method: Method, source: GraphSource) -> UserError:
    """The error of a method that needs features on a source without them."""
    names = [name for name, kind in METHODS.items() if not kind().needs_features]
    return UserError(
        f"{no_features(source)}, and {name_of(method)} needs them; "
        f"methods that need none are {', '.join(names)}."
    )


def no_splits_error(source: GraphSource) -> UserError:
    """The error of a graph without splits."""
    if isinstance(base_dataset(source), GraphInMemory):
        return UserError(f"{source.name} has no labels to train by.")
    return UserError(
        f"{source.name} has no splits. An import makes none if too few nodes are "
        "labelled; save_graph stores those that it is given, as in "
        "splits=unalike.random_splits(graph.labels, count=5)."
    )


# Configuration of a method


@dataclass(frozen=True)
class Config:
    """A method with all its hyperparameters, and the dataset options of its runs."""

    method: Method
    view: DatasetOptions = NO_OVERRIDES

    @cached_property
    def to_dict(self) -> dict[str, Any]:
        """The configuration as JSON."""
        return {
            "method": name_of(self.method),
            "options": options_of(self.method),
            "view": self.view.overrides,
        }

    @cached_property
    def hash(self) -> str:
        return json_hash(self.to_dict)

    @cached_property
    def stack_key(self) -> str:
        """The hash of all options that runs of one stack have in common."""
        differing = self.method.stackable_options
        options = self.to_dict["options"].items()
        shared = {name: value for name, value in options if name not in differing}
        return json_hash({**self.to_dict, "options": shared})

    @property
    def batching(self) -> str:
        return str(self.to_dict["options"].get("batching", FULL_BATCH))

    def describe(self, *, shared: bool = False) -> str:
        """The options that are not default; with `shared`, only those of its stack."""
        defaults = options_of(type(self.method)())
        options = {**self.to_dict["options"], **self.view.overrides}
        omitted = self.method.stackable_options if shared else ()
        return " ".join(
            f"{name}={value}"
            for name, value in options.items()
            if defaults.get(name) != value and name not in omitted
        )


def build_method(name: str, options: Mapping[str, Any]) -> Method:
    """Build a method by name with some options, also those of its batching."""
    return with_options(lookup(METHODS, name, "method")(), options, name)


def config_from_dict(fields: Mapping[str, Any]) -> Config:
    """Build a configuration from JSON; options that are missing get their defaults."""
    return Config(
        build_method(fields["method"], fields["options"]),
        DatasetOptions(**fields["view"]),
    )


def with_own_patience(config: Config) -> Config:
    """The configuration of a sweep on a graph of the user, with its early stopping."""
    if not uses_own_patience(config.method, config.view):
        return config
    return replace(config, view=replace(config.view, patience=OWN_PATIENCE))


# Hashes


PREPARATION_FIELDS = ("preparation", "symmetrised")
"""Attributes of sources that say how stored arrays become the graph of methods.

Their names and values are part of the dataset hash of every stored run.
"""


def dataset_hash(source: GraphSource) -> str:
    """The hash of the stored arrays, splits included, and of their preparation."""
    arrays = stored_graph_of(source).metadata["arrays"]
    steps = {
        name: repr(getattr(source, name))
        for name in PREPARATION_FIELDS
        if hasattr(source, name)
    }
    hashes = {name: array["sha256"] for name, array in arrays.items()}
    return json_hash({"arrays": hashes, "steps": steps})


def stored_graph_of(
    source: GraphSource, progress: Progress = NO_PROGRESS
) -> StoredGraph:
    """Open the stored graph of a source; convert or generate it if necessary."""
    if isinstance(source, StoredGraph):
        return source
    if isinstance(source, Dataset | Twin):
        return source.open_stored(progress=progress)
    raise UserError(f"{source.name} is not a stored graph; save it first.")
