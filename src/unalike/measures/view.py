"""View: a graph under one convention, as the kernels read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from unalike.errors import UserError
from unalike.graph import Graph
from unalike.measures.convention import Convention


@dataclass(frozen=True, eq=False)
class View:
    """Plain arrays over the memory of the graph; a mapped graph stays mapped."""

    graph: Graph
    convention: Convention
    starts: Int[np.ndarray, " nodes_and_one"]
    columns: Int[np.ndarray, " edges"]
    codes: Int[np.ndarray, " nodes"]
    """The class of each node; the number of classes where it is unknown."""
    num_counted: int
    """Codes below this one count."""

    @classmethod
    def of(cls, graph: Graph, convention: Convention) -> View:
        """The graph as the convention reads it."""
        rows, width = graph.adjacency.shape
        if rows != width:
            raise UserError(
                f"Measures need a whole graph; this batch has {rows} of {width} rows."
            )
        seen = graph.symmetric() if convention.both_ways else graph
        adjacency = seen.adjacency.to("cpu")
        return cls(
            graph=seen,
            convention=convention,
            starts=adjacency.starts.numpy(),
            columns=adjacency.columns.numpy(),
            codes=_codes(graph),
            num_counted=graph.num_classes + convention.unlabelled,
        )

    @property
    def num_nodes(self) -> int:
        return len(self.codes)

    @property
    def is_counted(self) -> np.ndarray:
        """Does the class of each node count?"""
        return self.codes < self.num_counted


def _codes(graph: Graph) -> np.ndarray:
    # Small types keep the labels of millions of nodes in the processor's cache.
    dtype = np.int16 if graph.num_classes < np.iinfo(np.int16).max else np.int32
    codes: np.ndarray = graph.labels.cpu().numpy().astype(dtype)
    codes[codes < 0] = graph.num_classes
    return codes
