"""`ImportOptions` (becomes the CLI flags) and `ImportSummary`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from unalike.data.metrics import METRICS
from unalike.errors import UserError, lookup
from unalike.importing.tables import Header

# ImportOptions: what a user may say about the tables.


Column = str | None
Columns = tuple[str, ...]

NODE_OPTIONS = ("id", "label", "features", "ignore", "categories", "split")


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """How tables of edges and nodes are to be read; what is not told is guessed."""

    source: Column = None
    """Column of the edges' sources; guessed by its name, else the first column."""
    target: Column = None
    """Column of the edges' targets; guessed by its name, else the second column."""
    id: Column = None
    """Column of the node ids; guessed by its name, else the first column."""
    label: Column = None
    """Column of the classes; a node without a value is unlabelled."""
    features: Columns | None = None
    """Columns that are features; all that have no other use, if not told."""
    ignore: Columns = ()
    """Columns to leave out."""
    categories: Columns = ()
    """Columns of numbers that are names of categories, such as codes of places."""
    directed: bool = False
    """Keep the direction of the edges."""
    unknown: Literal["refuse", "drop"] = "refuse"
    """What becomes of an edge with an end that is not in the node table."""
    header: Header = "guess"
    """Does the first line of a text file name its columns? Numbers alone do not."""
    split: Column = None
    """Column that says train, valid or test; blank for none."""
    splits: int = 5
    """How many random splits to draw, where no column gives one."""
    seed: int = 0
    """Where the drawing of random splits begins."""
    metric: str = "accuracy"
    """How predictions are to be graded: accuracy or roc-auc."""

    def __post_init__(self) -> None:
        lookup(METRICS, self.metric, "metric")
        if self.splits < 0:
            raise UserError(f"There cannot be {self.splits} splits.")

    def check(self, *, has_nodes: bool) -> None:
        """Refuse options that speak of a node table where there is none."""
        for name in () if has_nodes else NODE_OPTIONS:
            if getattr(self, name):
                raise UserError(f"--{name} speaks of a node table; name it by --nodes.")

    def check_classes(self, classes: Sequence[Hashable]) -> None:
        """Refuse a metric that cannot grade so many classes."""
        most = METRICS[self.metric].max_classes
        if most is not None and len(classes) > most:
            raise UserError(
                f"--metric {self.metric} grades {most} classes; "
                f"the label '{self.label}' has {len(classes)}."
            )


# Summary: what an import made of its tables, for graph.json and for the user.


MANY_CATEGORIES = 100
"""From this many categories on, one for every two nodes is worth a word."""


@dataclass(frozen=True, kw_only=True)
class ImportSummary:
    """What was read, what was made of it, and how long it took."""

    folder: str
    nodes: int
    edges: int
    directed: bool
    repeats: int
    """Edges that were there already and merged; undirected, either way round."""
    loops: int
    isolated: int
    """Nodes that no edge touches."""
    dropped: int
    """Edges left out since an end is unknown."""
    features: int
    one_hot_columns: int
    """How many of the features stand for a category."""
    sparse: bool
    """Are the features stored without their zeros?"""
    classes: list[tuple[Hashable, int]]
    """The name of each class and its nodes."""
    unlabelled: int
    splits: list[dict[str, int]]
    """Nodes in each part of each split."""
    bytes: int
    seconds: float
    notes: list[str]
    """What was guessed and should be known."""

    @property
    def edges_per_second(self) -> float:
        """Rows of edges read for each second of the whole import."""
        return (self.edges + self.repeats + self.dropped) / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON tells it."""
        told = asdict(self)
        told["classes"] = [
            {"name": name, "nodes": count} for name, count in self.classes
        ]
        return {**told, "edges_per_second": self.edges_per_second}
