"""Options of a graph import, which are also its CLI flags, and its summary."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from unalike.data.regression import ALL_METRICS, R2
from unalike.errors import UserError, lookup
from unalike.importing.scaling import ScaleName
from unalike.importing.tables import Header
from unalike.options import check_options

Column = str | None
Columns = tuple[str, ...]

NODE_OPTIONS = (
    "id",
    "label",
    "features",
    "ignore",
    "categories",
    "split",
    "split_time",
)
"""Options that describe node tables."""

MANY_CATEGORIES = 100
"""Categories of a column up to which no note is printed."""
MANY_CLASSES = 50
"""Classes up to which no note is printed."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """How tables of edges and nodes are read; columns not named are guessed."""

    source: Column = None
    """Column of the edges' sources; guessed by its name, else the first column."""
    target: Column = None
    """Column of the edges' targets; guessed by its name, else the second column."""
    weight: Column = None
    """Column of edge weights above 0; those of repeated edges are added. Without it all
    edges count alike."""
    id: Column = None
    """Column of the node ids; guessed by its name, else the first column."""
    label: Column = None
    """Column of the classes; a node without a value is unlabelled."""
    features: Columns | None = None
    """Columns that are features; by default all that have no other use."""
    ignore: Columns = ()
    """Columns to leave out."""
    categories: Columns = ()
    """Columns of numbers that are category names, such as postal codes."""
    scale: ScaleName = "standard"
    """Scale numbers and dates: to mean 0 and standard deviation 1 after clipping, with
    logarithms where a tail is heavy; to quantiles; or not at all."""
    missing: Literal["fill", "refuse"] = "fill"
    """What to do with missing numbers: use the median and add an indicator feature."""
    directed: bool = False
    """Keep the direction of the edges."""
    unknown: Literal["refuse", "drop"] = "refuse"
    """What to do with an edge whose source or target is not in the node table."""
    header: Header = "guess"
    """Does the first line of a text file name its columns? Numbers alone do not."""
    split: Column = None
    """Column that says train, valid or test; blank for none."""
    split_time: Column = None
    """Column of times, dates or numbers, for one split: half of the labelled nodes are
    train, the next quarter valid, the latest test."""
    splits: int = 5
    """Number of random splits, where no column gives one."""
    seed: int = 0
    """Seed of the random splits."""
    metric: str = "accuracy"
    """Metric of predictions, such as accuracy or roc-auc; r2 predicts numbers: the
    label is not a class."""
    name: str | None = None
    """Name of the graph in tables and results; by default the name of its folder."""

    def __post_init__(self) -> None:
        check_options(self)
        if self.name is not None and not self.name.strip():
            raise UserError("--name is blank; write a name or leave it out.")
        lookup(ALL_METRICS, self.metric, "metric")
        if self.split_time is not None and self.split is not None:
            raise UserError("--split and --split-time exclude each other.")
        if self.split_time is not None and self.label is None:
            raise UserError("--split-time needs --label: it divides labelled nodes.")
        if self.splits < 0:
            raise UserError(f"There cannot be {self.splits} splits.")

    @property
    def predicts_numbers(self) -> bool:
        """Is the label a number to predict, not a class?"""
        return self.metric == R2.name and self.label is not None

    def check(self, *, has_nodes: bool) -> None:
        """Raise an error for options of node tables if none is given."""
        for name in () if has_nodes else NODE_OPTIONS:
            if getattr(self, name):
                flag = name.replace("_", "-")
                raise UserError(f"--{flag} needs a node table; give it with --nodes.")

    def check_classes(self, classes: Sequence[Hashable]) -> None:
        """Raise an error for a metric that cannot score so many classes."""
        max_classes = ALL_METRICS[self.metric].max_classes
        if max_classes is not None and len(classes) > max_classes:
            raise UserError(
                f"--metric {self.metric} needs {max_classes} classes; "
                f"the label '{self.label}' has {len(classes)}."
            )


@dataclass(frozen=True, kw_only=True)
class ImportSummary:
    """Counts of an imported graph, its size on disk and the time it took."""

    folder: str
    nodes: int
    edges: int
    directed: bool
    repeats: int
    """Duplicate edges that were merged; of an undirected graph in both directions."""
    loops: int
    isolated: int
    """Nodes without edges."""
    dropped: int
    """Edges left out because their source or target is unknown."""
    features: int
    one_hot_columns: int
    """Features that are one-hot columns of categories."""
    scaled_columns: int
    """Columns of numbers and dates that were scaled."""
    sparse: bool
    """Whether the features are stored as a sparse matrix."""
    classes: list[tuple[Hashable, int]]
    """Name and number of nodes of each class."""
    label_range: tuple[float, float] | None
    """The least and the largest label, where labels are numbers."""
    unlabelled: int
    splits: list[dict[str, int]]
    """Nodes in train, valid and test of each split."""
    bytes: int
    seconds: float
    notes: list[str]
    """Guesses and warnings to print."""

    @property
    def edges_per_second(self) -> float:
        """Edge rows per second, over the total time of the import."""
        return (self.edges + self.repeats + self.dropped) / self.seconds

    def to_dict(self) -> dict[str, Any]:
        document = asdict(self)
        document["classes"] = [
            {"name": name, "nodes": count} for name, count in self.classes
        ]
        return {**document, "edges_per_second": self.edges_per_second}
