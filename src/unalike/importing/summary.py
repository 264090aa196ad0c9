"""Summary: what an import made of its tables, for graph.json and for the user."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unalike.importing.edges import Spill
from unalike.importing.kinds import CATEGORY
from unalike.importing.nodes import Nodes
from unalike.importing.options import ImportOptions
from unalike.importing.placing import Placed
from unalike.importing.tables import Tables
from unalike.split import PARTS, Split

CROWDED = 100
"""From this many categories on, one for every two nodes is worth a word."""


@dataclass(frozen=True, kw_only=True)
class Summary:
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

    def about(self) -> dict[str, Any]:
        """The summary as JSON tells it."""
        told = asdict(self)
        told["classes"] = [
            {"name": name, "nodes": count} for name, count in self.classes
        ]
        return {**told, "edges_per_second": self.edges_per_second}


@dataclass(frozen=True)
class Built:
    """Nodes, edges and splits of a graph whose arrays are on disk."""

    nodes: Nodes
    spill: Spill
    placed: Placed
    splits: list[Split]
    sparse: bool
    directed: bool

    @property
    def num_edges(self) -> int:
        """Edges as people count them: an undirected one counts once."""
        if self.directed:
            return self.placed.num_entries
        return (self.placed.num_entries + self.placed.num_loops) // 2

    def about(self, tables: Tables, options: ImportOptions) -> dict[str, Any]:
        """What graph.json says of the graph."""
        encoder = self.nodes.encoder
        return {
            "num_nodes": len(self.nodes.names),
            "num_edges": self.num_edges,
            "num_loops": self.placed.num_loops,
            "num_features": encoder.width,
            "num_classes": len(self.nodes.class_names),
            "directed": self.directed,
            "metric": options.metric,
            "class_names": self.nodes.class_names,
            "feature_columns": [column.about() for column in encoder.columns],
            "provenance": {
                **tables.about(self.spill.rows, self.nodes.rows),
                "options": asdict(options),
            },
        }

    def summary(self, folder: Path, tables: Tables, seconds: float) -> Summary:
        """What the user is told at the end."""
        encoder, labels = self.nodes.encoder, self.nodes.labels
        counts = np.bincount(labels[labels >= 0], minlength=len(self.nodes.class_names))
        one_hot = (column for column in encoder.columns if column.kind == CATEGORY)
        return Summary(
            folder=str(folder),
            nodes=len(labels),
            edges=self.num_edges,
            directed=self.directed,
            repeats=self.spill.num_pairs - self.num_edges,
            loops=self.placed.num_loops,
            isolated=int((self.spill.met[: len(labels)] == 0).sum()),
            dropped=self.spill.num_dropped,
            features=encoder.width,
            one_hot_columns=sum(column.width for column in one_hot),
            sparse=self.sparse,
            classes=list(zip(self.nodes.class_names, counts.tolist(), strict=True)),
            unlabelled=int((labels < 0).sum()),
            splits=[
                {part: len(getattr(split, part)) for part in PARTS}
                for split in self.splits
            ],
            bytes=sum(file.stat().st_size for file in folder.iterdir()),
            seconds=seconds,
            notes=[*tables.notes, *self._notes()],
        )

    def _notes(self) -> Iterator[str]:
        codes = self.nodes.codes
        if codes is not None:
            lost = int(((codes >= 0) & (self.nodes.labels < 0)).sum())
            if lost:
                yield f"{lost:,} nodes of the split have no label and are left out."
        for column in self.nodes.encoder.columns:
            if column.width > max(CROWDED, len(self.nodes.names) // 2):
                yield (
                    f"The column '{column.name}' has {column.width:,} categories; "
                    f"--ignore {column.name} leaves it out."
                )
