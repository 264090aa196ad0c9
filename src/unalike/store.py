"""The stored graph: a folder of plain arrays that is mapped, not read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Shaped
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.draft import FORMAT, Draft, drafting
from unalike.errors import UserError, lookup
from unalike.features import Features
from unalike.filed_rows import ArrayFile, FiledRows
from unalike.graph import Graph
from unalike.metrics import ACCURACY, METRICS, Metric
from unalike.progress import SILENT, Progress
from unalike.shard import Divided
from unalike.split import Split, to_matrix

ABOUT = "graph.json"

FILED_BYTES = 2**30
"""Entries that take more than this are read from their file, row by row."""


@dataclass(frozen=True, eq=False)
class Stored:
    """An opened folder: the graph, its splits, and what is written about them."""

    folder: Path
    about: dict[str, Any]
    """What graph.json says: counts, direction, names, provenance, a hash per array."""

    @property
    def name(self) -> str:
        return self.about.get("name") or self.folder.name

    @property
    def metric(self) -> Metric:
        return lookup(METRICS, self.about["metric"], "metric")

    @cached_property
    def graph(self) -> Graph:
        """The graph, over mapped arrays."""
        return Graph(
            adjacency=self._adjacency(),
            features=self._features(),
            labels=self.array("labels"),
            num_classes=self.about["num_classes"],
            directed=self.about["directed"],
        )

    def load(self) -> Graph:
        return self.graph

    def prepared(self, *, progress: Progress = SILENT) -> Graph:
        """What methods are given: the graph as it is."""
        return self.graph

    def splits(self) -> list[Split]:
        """The splits that were stored with the graph."""
        return [Split.from_codes(codes) for codes in self.array("splits")]

    def remarks(self) -> list[str]:
        """What its maker noted for those who use it."""
        return self.about.get("provenance", {}).get("remarks", [])

    @cached_property
    def names(self) -> pa.Array:
        """The user's own id of each node: numbers or strings."""
        if "names_text" in self.about["arrays"]:
            offsets, text = self.array("names_offsets"), self.array("names_text")
            buffers = [None, pa.py_buffer(offsets.numpy()), pa.py_buffer(text.numpy())]
            return pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers[1:])
        if "names" in self.about["arrays"]:
            return pa.array(self.array("names").numpy())
        return pa.array(np.arange(self.about["num_nodes"]))

    def array(self, name: str) -> Shaped[Tensor, ...]:
        """One of the arrays, mapped."""
        with warnings.catch_warnings():
            # The map is read-only; torch cannot say so of a tensor, and warns.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return torch.from_numpy(_map(self.folder, name, self.about["arrays"][name]))

    def _adjacency(self) -> Adjacency:
        nodes, bounds = self.about["num_nodes"], self.about.get("bounds")
        if bounds is None:
            return self._rows("", nodes)
        starts, none = self.array("starts"), torch.empty(0, dtype=torch.int32)

        def shard(place: int) -> Adjacency:
            width = bounds[place + 1] - bounds[place]
            return self._rows(f"shard{place}_", width)

        return Divided(starts, none, nodes, bounds=bounds, open=shard)

    def _features(self) -> Features:
        if "features" in self.about["arrays"]:
            return self.array("features")
        return self._rows("features_", self.about["num_features"])

    def _rows(self, prefix: str, width: int) -> Adjacency:
        starts, columns = (
            self.array(f"{prefix}{part}") for part in ("starts", "columns")
        )
        name = f"{prefix}values"
        weighted = name in self.about["arrays"]
        values = self.array(name) if weighted else None
        if columns.nbytes < FILED_BYTES:
            return Adjacency(starts, columns, width, values)
        return FiledRows(
            starts.clone(),
            columns,
            width,
            values,
            columns_file=self._file(f"{prefix}columns"),
            values_file=self._file(name) if weighted else None,
        )

    def _file(self, name: str) -> ArrayFile:
        array = self.array(name).numpy()
        path = self.folder / f"{name}.npy"
        return ArrayFile.open(path, size=array.nbytes, dtype=array.dtype)


def open_graph(folder: Path) -> Stored:
    """Open a stored graph: reads one small file and maps the rest when asked for."""
    try:
        about = json.loads((folder / ABOUT).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} is not a stored graph: it has no {ABOUT}.") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{folder / ABOUT} is damaged: {error}.") from None
    if not isinstance(about, dict) or "arrays" not in about:
        raise UserError(f"{folder / ABOUT} does not describe a graph.")
    if (found := about.get("format")) != FORMAT:
        raise UserError(
            f"{folder} has the format {found}; unalike here reads {FORMAT}."
        )
    return Stored(folder, about)


def save_graph(
    folder: Path,
    graph: Graph,
    *,
    splits: Sequence[Split] = (),
    metric: Metric = ACCURACY,
    names: pa.Array | None = None,
    about: dict[str, Any] | None = None,
) -> Stored:
    """Write a graph that is in memory to a new folder, whole or not at all."""
    with drafting(folder) as draft:
        add_rows(draft, "", graph.adjacency)
        add_nodes(draft, graph, splits)
        if names is not None:
            add_names(draft, names)
        draft.commit({**(about or {}), **counts(graph), "metric": metric.name})
    return open_graph(folder)


def counts(graph: Graph) -> dict[str, Any]:
    """The facts of a graph that its folder states."""
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_loops": graph.num_loops,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "directed": graph.directed,
    }


def add_nodes(draft: Draft, graph: Graph, splits: Sequence[Split]) -> None:
    """Put what is known of nodes into a draft: features, labels, splits."""
    if isinstance(graph.features, Adjacency):
        add_rows(draft, "features_", graph.features)
    else:
        draft.add("features", graph.features.numpy())
    draft.add("labels", graph.labels.numpy())
    draft.add("splits", to_matrix(splits, graph.num_nodes))


def add_rows(draft: Draft, prefix: str, rows: Adjacency) -> None:
    """Put sparse rows into a draft."""
    draft.add(f"{prefix}starts", rows.starts.numpy())
    draft.add(f"{prefix}columns", rows.columns.numpy())
    if rows.values is not None:
        draft.add(f"{prefix}values", rows.values.numpy())


def add_names(draft: Draft, names: pa.Array) -> None:
    """Put the user's node ids into a draft: numbers as they are, strings as UTF-8."""
    if pa.types.is_integer(names.type):
        draft.add("names", names.to_numpy(zero_copy_only=False))
        return
    names = pa.concat_arrays([names.cast(pa.large_string())])
    _, offsets, text = names.buffers()
    offsets = np.frombuffer(offsets, np.int64)[: len(names) + 1]
    draft.add("names_offsets", offsets)
    draft.add("names_text", np.frombuffer(text or b"", np.uint8)[: offsets[-1]])


def verify_graph(folder: Path) -> Stored:
    """Read every array and compare it with its hash; name the first that differs."""
    stored = open_graph(folder)
    for name, facts in stored.about["arrays"].items():
        _map(folder, name, facts)
        with (folder / f"{name}.npy").open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != facts["sha256"]:
                raise UserError(
                    f"{folder}: the array '{name}' is damaged (sha256 differs)."
                )
    return stored


def _map(folder: Path, name: str, facts: dict[str, Any]) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        size, told = path.stat().st_size, facts["bytes"]
        if size != told:
            raise UserError(
                f"{folder}: the array '{name}' has {size} bytes instead of {told}."
            )
        empty = 0 in facts["shape"]
        array = np.load(path, mmap_mode=None if empty else "r", allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"{folder}: the array '{name}' is missing.") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{folder}: the array '{name}' is damaged ({error}).") from None
    if list(array.shape) != facts["shape"] or str(array.dtype) != facts["dtype"]:
        raise UserError(f"{folder}: the array '{name}' is not the one described.")
    return array
