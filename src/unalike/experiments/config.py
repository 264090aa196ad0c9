"""Hyperparameter configuration of a method, dataset options, and their hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from unalike.data.graph import Graph
from unalike.data.metrics import METRICS, Metric
from unalike.data.split import Split
from unalike.data.store import StoredGraph
from unalike.data.task import CLASS_WEIGHTS, Task
from unalike.datasets import GraphSource
from unalike.datasets.base import RawDataset
from unalike.datasets.twins.twin import Twin
from unalike.errors import UserError, lookup
from unalike.methods import METHODS, name_of
from unalike.methods.base import Method
from unalike.options import options_of, with_options
from unalike.progress import NO_PROGRESS, Progress

# View: a dataset, seen otherwise than it is usually handed to methods.


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """What differs from the usual; by default nothing does."""

    metric: str | None = None
    """The metric to learn for and to be graded by."""
    both_ways: bool = False
    """Does every edge go both ways, also where direction is usually kept?"""
    class_weights: str | None = None
    """What train nodes count for by their class; all alike where nothing is told."""

    def __post_init__(self) -> None:
        if self.metric is not None:
            lookup(METRICS, self.metric, "metric")
        if self.class_weights is not None:
            lookup(CLASS_WEIGHTS, self.class_weights, "class weights")

    @property
    def overrides(self) -> dict[str, Any]:
        """What is unusual, by name."""
        return {name: value for name, value in asdict(self).items() if value}

    def apply(self, source: GraphSource) -> GraphSource:
        """The source as it is seen; itself, where nothing differs."""
        return DatasetWithOptions(source, self) if self.overrides else source

    def add_class_weights(self, task: Task) -> Task:
        """The task with the weights of its classes, where they are told."""
        if self.class_weights is None:
            return task
        labels = task.graph.labels[task.train]
        weights = CLASS_WEIGHTS[self.class_weights](labels, task.graph.num_classes)
        return replace(task, class_weights=weights)


NO_OVERRIDES = DatasetOptions()


@dataclass(frozen=True, eq=False)
class DatasetWithOptions:
    """A source through a view; its graph and splits are read once."""

    source: GraphSource
    view: DatasetOptions = NO_OVERRIDES
    _prepared: list[Graph] = field(default_factory=list, init=False, repr=False)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def metric(self) -> Metric:
        told = self.view.metric
        return METRICS[told] if told else self.source.metric

    def load(self) -> Graph:
        return self.source.load()

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        if not self._prepared:
            graph = self.source.prepared(progress=progress)
            self._prepared.append(
                graph.to_undirected() if self.view.both_ways else graph
            )
        return self._prepared[0]

    @cached_property
    def _splits(self) -> list[Split]:
        return self.source.splits()

    def splits(self) -> list[Split]:
        return self._splits

    def remarks(self) -> list[str]:
        return self.source.remarks()


def base_dataset(source: GraphSource) -> GraphSource:
    """A source without the view through which it is seen."""
    return source.source if isinstance(source, DatasetWithOptions) else source


def class_names(source: GraphSource) -> list[str] | None:
    """What the user calls the classes, where a stored graph tells."""
    stored = base_dataset(source)
    known = (
        stored.metadata.get("class_names") if isinstance(stored, StoredGraph) else None
    )
    return [*map(str, known)] if known else None


def options_of_dataset(source: GraphSource) -> DatasetOptions:
    """How a source is seen."""
    return source.view if isinstance(source, DatasetWithOptions) else NO_OVERRIDES


# Fingerprint: the hash of a dataset as methods are given it.


HASH_LENGTH = 32
"""Hexadecimal digits of a digest; two of 10^12 agree by chance of 10^-15."""
STEPS = ("preparation", "symmetrised")
"""What sources call the steps from the stored arrays to the graph of methods."""


def dataset_hash(source: GraphSource) -> str:
    """A digest of the stored arrays, splits included, and of their preparation."""
    arrays = stored_graph_of(source).metadata["arrays"]
    steps = {
        name: repr(getattr(source, name)) for name in STEPS if hasattr(source, name)
    }
    hashes = {name: facts["sha256"] for name, facts in arrays.items()}
    return json_hash({"arrays": hashes, "steps": steps})


def stored_graph_of(source: GraphSource) -> StoredGraph:
    """The folder behind a source."""
    if isinstance(source, StoredGraph):
        return source
    if isinstance(source, RawDataset | Twin):
        return source.load_or_generate()
    raise UserError(f"{source.name} is not a stored graph; save it first.")


def json_hash(facts: dict[str, Any]) -> str:
    """The hash of facts that JSON can tell."""
    told = json.dumps(facts, sort_keys=True)
    return sha256(told.encode()).hexdigest()[:HASH_LENGTH]


# Setting: a method with all its options, and its view of a dataset.


FULL_BATCH = "full"
"""The batching of methods that have none to choose."""


@dataclass(frozen=True)
class Config:
    """What is the same for all splits of a dataset."""

    method: Method
    view: DatasetOptions = NO_OVERRIDES

    @cached_property
    def to_dict(self) -> dict[str, Any]:
        """The setting as JSON can tell it."""
        return {
            "method": name_of(self.method),
            "options": options_of(self.method),
            "view": self.view.overrides,
        }

    @cached_property
    def hash(self) -> str:
        """A digest of all of it."""
        return json_hash(self.to_dict)

    @cached_property
    def stack_key(self) -> str:
        """A digest of what the runs of one stack share."""
        free = self.method.stackable_options
        told = self.to_dict["options"].items()
        shared = {name: value for name, value in told if name not in free}
        return json_hash({**self.to_dict, "options": shared})

    @property
    def batching(self) -> str:
        """The name of its batching."""
        return str(self.to_dict["options"].get("batching", FULL_BATCH))

    def describe(self, *, shared: bool = False) -> str:
        """The options that are not the usual ones; or those that a stack shares."""
        usual = options_of(type(self.method)())
        told = {**self.to_dict["options"], **self.view.overrides}
        free = self.method.stackable_options if shared else ()
        return " ".join(
            f"{name}={value}"
            for name, value in told.items()
            if usual.get(name) != value and name not in free
        )


def build_method(name: str, options: Mapping[str, Any]) -> Method:
    """A method of the table with some options, those of its batching among them."""
    return with_options(lookup(METHODS, name, "method")(), options, name)


def config_from_dict(facts: Mapping[str, Any]) -> Config:
    """The setting that facts tell; options that were unknown then are as usual."""
    return Config(
        build_method(facts["method"], facts["options"]), DatasetOptions(**facts["view"])
    )
