"""View: a dataset, seen otherwise than it is usually handed to methods."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from unalike.class_weights import CLASS_WEIGHTS
from unalike.datasets import Source
from unalike.errors import lookup
from unalike.graph import Graph
from unalike.metrics import METRICS, Metric
from unalike.progress import SILENT, Progress
from unalike.split import Split
from unalike.store import Stored
from unalike.task import Task


@dataclass(frozen=True, kw_only=True)
class View:
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
    def changes(self) -> dict[str, Any]:
        """What is unusual, by name."""
        return {name: value for name, value in asdict(self).items() if value}

    def of(self, source: Source) -> Source:
        """The source as it is seen; itself, where nothing differs."""
        return Seen(source, self) if self.changes else source

    def weigh(self, task: Task) -> Task:
        """The task with the weights of its classes, where they are told."""
        if self.class_weights is None:
            return task
        labels = task.graph.labels[task.train]
        weights = CLASS_WEIGHTS[self.class_weights](labels, task.graph.num_classes)
        return replace(task, class_weights=weights)


AS_USUAL = View()


@dataclass(frozen=True, eq=False)
class Seen:
    """A source through a view; its graph and splits are read once."""

    source: Source
    view: View = AS_USUAL
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

    def prepared(self, *, progress: Progress = SILENT) -> Graph:
        if not self._prepared:
            graph = self.source.prepared(progress=progress)
            self._prepared.append(graph.symmetric() if self.view.both_ways else graph)
        return self._prepared[0]

    @cached_property
    def _splits(self) -> list[Split]:
        return self.source.splits()

    def splits(self) -> list[Split]:
        return self._splits

    def remarks(self) -> list[str]:
        return self.source.remarks()


def unseen(source: Source) -> Source:
    """A source without the view through which it is seen."""
    return source.source if isinstance(source, Seen) else source


def class_names(source: Source) -> list[str] | None:
    """What the user calls the classes, where a stored graph tells."""
    stored = unseen(source)
    known = stored.about.get("class_names") if isinstance(stored, Stored) else None
    return [*map(str, known)] if known else None


def view_of(source: Source) -> View:
    """How a source is seen."""
    return source.view if isinstance(source, Seen) else AS_USUAL
