"""ImportOptions: what a user may say about the tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from unalike.errors import UserError, lookup
from unalike.importing.batch import Header
from unalike.metrics import METRICS

Column = str | None
Columns = tuple[str, ...]

OF_NODES = ("id", "label", "features", "ignore", "categories", "split")


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
        for name in () if has_nodes else OF_NODES:
            if getattr(self, name):
                raise UserError(f"--{name} speaks of a node table; name it by --nodes.")

    def check_classes(self, classes: Sequence[Hashable]) -> None:
        """Refuse a metric that cannot grade so many classes."""
        most = METRICS[self.metric].most_classes
        if most is not None and len(classes) > most:
            raise UserError(
                f"--metric {self.metric} grades {most} classes; "
                f"the label '{self.label}' has {len(classes)}."
            )
