"""Stored graphs: open, save and verify a folder of memory-mapped arrays."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Shaped
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph
from unalike.data.memmap import ArrayFile, FileBackedAdjacency
from unalike.data.metrics import ACCURACY, METRICS, Metric
from unalike.data.sharding import ShardedAdjacency
from unalike.data.split import Split, stack_codes
from unalike.errors import UserError, lookup
from unalike.files import sha256_file, sync, write_errors
from unalike.progress import NO_PROGRESS, Progress
from unalike.version import __version__

FORMAT = 1
METADATA_FILE = "graph.json"

FILE_BACKED_BYTES = 2**30
"""Matrices whose indices take more than this are read from their files row by row."""


@runtime_checkable
class GraphSource(Protocol):
    """A source of a graph with splits and a metric: a dataset or a stored graph."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> Metric: ...

    def load(self) -> Graph:
        """The graph as it is stored."""

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        """The graph as methods get it."""

    def splits(self) -> list[Split]:
        """Its splits."""

    def remarks(self) -> list[str]:
        """Notes for users of this copy of the graph."""


@dataclass(frozen=True, eq=False)
class StoredGraph:
    """An opened graph folder: the graph, its splits and its metadata."""

    folder: Path
    metadata: dict[str, Any]
    """The content of graph.json: counts, direction, names, provenance, array hashes."""

    @property
    def name(self) -> str:
        return self.metadata.get("name") or self.folder.name

    @property
    def metric(self) -> Metric:
        return lookup(METRICS, self.metadata["metric"], "metric")

    @cached_property
    def graph(self) -> Graph:
        """The graph, over memory-mapped arrays."""
        return Graph(
            adjacency=self._adjacency(),
            features=self._features(),
            labels=self.array("labels"),
            num_classes=self.metadata["num_classes"],
            directed=self.metadata["directed"],
        )

    def load(self) -> Graph:
        return self.graph

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        """The graph as methods get it: the same as `graph`."""
        return self.graph

    def splits(self) -> list[Split]:
        """The splits that are stored with the graph."""
        return [Split.from_codes(codes) for codes in self.array("splits")]

    def remarks(self) -> list[str]:
        """Notes of its creator for users."""
        return self.metadata.get("provenance", {}).get("remarks", [])

    @cached_property
    def names(self) -> pa.Array:
        """The user's id of each node: integers or strings."""
        if "names_text" in self.metadata["arrays"]:
            offsets, text = self.array("names_offsets"), self.array("names_text")
            buffers = [None, pa.py_buffer(offsets.numpy()), pa.py_buffer(text.numpy())]
            return pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers[1:])
        if "names" in self.metadata["arrays"]:
            return pa.array(self.array("names").numpy())
        return pa.array(np.arange(self.metadata["num_nodes"]))

    def array(self, name: str) -> Shaped[Tensor, ...]:
        """One of the arrays, memory-mapped."""
        with warnings.catch_warnings():
            # The map is read-only, which torch tensors cannot be: torch warns.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return torch.from_numpy(
                _map(self.folder, name, self.metadata["arrays"][name])
            )

    def _adjacency(self) -> Adjacency:
        nodes, bounds = self.metadata["num_nodes"], self.metadata.get("bounds")
        if bounds is None:
            return self._csr("", nodes)

        def shard(index: int) -> Adjacency:
            return self._csr(f"shard{index}_", bounds[index + 1] - bounds[index])

        indptr, empty = self.array("starts"), torch.empty(0, dtype=torch.int32)
        return ShardedAdjacency(indptr, empty, nodes, bounds=bounds, open=shard)

    def _features(self) -> Features:
        if "features" in self.metadata["arrays"]:
            return self.array("features")
        return self._csr("features_", self.metadata["num_features"])

    def _csr(self, prefix: str, num_cols: int) -> Adjacency:
        indptr, indices = (
            self.array(f"{prefix}{name}") for name in ("starts", "columns")
        )
        name = f"{prefix}values"
        weighted = name in self.metadata["arrays"]
        values = self.array(name) if weighted else None
        if indices.nbytes < FILE_BACKED_BYTES:
            return Adjacency(indptr, indices, num_cols, values)
        return FileBackedAdjacency(
            indptr.clone(),
            indices,
            num_cols,
            values,
            columns_file=self._file(f"{prefix}columns"),
            values_file=self._file(name) if weighted else None,
        )

    def _file(self, name: str) -> ArrayFile:
        array = self.array(name).numpy()
        path = self.folder / f"{name}.npy"
        return ArrayFile.open(path, size=array.nbytes, dtype=array.dtype)


def open_graph(folder: Path) -> StoredGraph:
    """Open a stored graph: reads graph.json, and maps arrays when they are used."""
    path = folder / METADATA_FILE
    try:
        metadata = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder} is not a stored graph: it has no {METADATA_FILE}."
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{path} is damaged: {error}.") from None
    if not isinstance(metadata, dict) or "arrays" not in metadata:
        raise UserError(f"{path} does not describe a graph.")
    if (version := metadata.get("format")) != FORMAT:
        raise UserError(
            f"{folder} has the format {version}; this unalike reads {FORMAT}."
        )
    return StoredGraph(folder, metadata)


def save_graph(
    folder: Path,
    graph: Graph,
    *,
    splits: Sequence[Split] = (),
    metric: Metric = ACCURACY,
    names: pa.Array | None = None,
    about: dict[str, Any] | None = None,
) -> StoredGraph:
    """Write a graph to a new folder; `about` is added to its metadata."""
    with atomic_graph_writer(folder) as writer:
        add_csr(writer, "", graph.adjacency)
        add_nodes(writer, graph, splits)
        if names is not None:
            add_names(writer, names)
        writer.commit({**(about or {}), **graph_counts(graph), "metric": metric.name})
    return open_graph(folder)


def graph_counts(graph: Graph) -> dict[str, Any]:
    """The counts of a graph that its metadata has."""
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_loops": graph.num_loops,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "directed": graph.directed,
    }


def add_nodes(writer: GraphWriter, graph: Graph, splits: Sequence[Split]) -> None:
    """Write features, labels and splits."""
    if isinstance(graph.features, Adjacency):
        add_csr(writer, "features_", graph.features)
    else:
        writer.add("features", graph.features.numpy())
    writer.add("labels", graph.labels.numpy())
    writer.add("splits", stack_codes(splits, graph.num_nodes))


def add_csr(writer: GraphWriter, prefix: str, rows: Adjacency) -> None:
    """Write the arrays of a CSR matrix."""
    writer.add(f"{prefix}starts", rows.indptr.numpy())
    writer.add(f"{prefix}columns", rows.indices.numpy())
    if rows.values is not None:
        writer.add(f"{prefix}values", rows.values.numpy())


def add_names(writer: GraphWriter, names: pa.Array) -> None:
    """Write the user's node ids: integers as they are, strings as UTF-8."""
    if pa.types.is_integer(names.type):
        writer.add("names", names.to_numpy(zero_copy_only=False))
        return
    names = pa.concat_arrays([names.cast(pa.large_string())])
    _, offsets, text = names.buffers()
    offsets = np.frombuffer(offsets, np.int64)[: len(names) + 1]
    writer.add("names_offsets", offsets)
    writer.add("names_text", np.frombuffer(text or b"", np.uint8)[: offsets[-1]])


def verify_graph(folder: Path) -> StoredGraph:
    """Compare every array with its hash; the error names the first that differs."""
    stored = open_graph(folder)
    for name, entry in stored.metadata["arrays"].items():
        _map(folder, name, entry)
        if sha256_file(folder / f"{name}.npy") != entry["sha256"]:
            raise UserError(
                f"{folder}: the array '{name}' is damaged (sha256 differs)."
            )
    return stored


def _map(folder: Path, name: str, entry: dict[str, Any]) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        size, expected = path.stat().st_size, entry["bytes"]
        if size != expected:
            raise UserError(
                f"{folder}: the array '{name}' has {size} bytes instead of {expected}."
            )
        empty = 0 in entry["shape"]
        array = np.load(path, mmap_mode=None if empty else "r", allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"{folder}: the array '{name}' is missing.") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{folder}: the array '{name}' is damaged ({error}).") from None
    if list(array.shape) != entry["shape"] or str(array.dtype) != entry["dtype"]:
        raise UserError(f"{folder}: the array '{name}' is not the one described.")
    return array


# Write a graph folder under a hidden name, which is renamed when it is complete.


@dataclass
class GraphWriter:
    """A hidden folder that is filled array by array and then renamed."""

    final: Path
    folder: Path
    names: list[str] = field(default_factory=list)
    links: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, array: np.ndarray) -> None:
        """Write one array."""
        self.names.append(name)
        with (self.folder / f"{name}.npy").open("wb") as file:
            _write_header(file, array.dtype, array.shape)
            # Not np.save: its error for a full disk does not say what is wrong.
            file.write(np.ascontiguousarray(array).data)

    def create_memmap(
        self, name: str, dtype: Any, shape: tuple[int, ...]
    ) -> np.ndarray:
        """Allocate one array on disk and map it, to be filled in place."""
        self.names.append(name)
        if 0 in shape:
            np.save(self.folder / f"{name}.npy", np.zeros(shape, dtype))
            return np.zeros(shape, dtype)
        path = self.folder / f"{name}.npy"
        array = np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
        with path.open("r+b") as file:
            # Allocate the blocks now: a full disk must not end in SIGBUS later.
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        return array

    @contextmanager
    def append_array(self, name: str, dtype: Any) -> Iterator[Callable[[Any], None]]:
        """Write one flat array of unknown length chunk by chunk."""
        self.names.append(name)
        length = 0

        def append(chunk: np.ndarray) -> None:
            nonlocal length
            file.write(np.ascontiguousarray(chunk, dtype).data)
            length += len(chunk)

        with (self.folder / f"{name}.npy").open("wb") as file:
            _write_header(file, dtype, (0,))
            yield append
            # NumPy pads headers, so that a longer length fits into the same bytes.
            file.seek(0)
            _write_header(file, dtype, (length,))

    def link_array(self, name: str, path: Path, entry: dict[str, Any]) -> None:
        """Link an array of another folder, with its entry in graph.json, uncopied."""
        self.links[name] = entry
        link = self.folder / f"{name}.npy"
        try:
            link.hardlink_to(path)
        except OSError:
            link.symlink_to(path.absolute())

    def scratch(self, name: str) -> Path:
        """A path for a temporary file, which is removed with the commit."""
        path = self.folder / "scratch"
        path.mkdir(exist_ok=True)
        return path / name

    def discard_scratch(self) -> None:
        """Remove the temporary files."""
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)

    def commit(self, metadata: dict[str, Any]) -> None:
        """Write the metadata, flush everything to disk, and rename the folder."""
        self.discard_scratch()
        arrays = {name: self._checksum(name) for name in self.names}
        document = {"format": FORMAT, "unalike": __version__, **metadata}
        document["arrays"] = arrays | self.links
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
        path = self.folder / METADATA_FILE
        path.write_text(f"{text}\n", "utf-8")
        sync(path)
        self.folder.rename(self.final)

    def _checksum(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.npy"
        array = np.load(path, mmap_mode=None if path.stat().st_size < 4096 else "r")
        sync(path)
        return {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "bytes": path.stat().st_size,
            "sha256": sha256_file(path),
        }


def _write_header(file: IO[bytes], dtype: Any, shape: tuple[int, ...]) -> None:
    header = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(file, header)


@contextmanager
def atomic_graph_writer(folder: Path) -> Iterator[GraphWriter]:
    """Write a graph folder completely or, after an error, not at all."""
    folder = Path(folder).absolute()
    if folder.exists():
        raise UserError(f"{folder} exists already; name another folder or remove it.")
    _remove_stale(folder)
    hidden = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    missing = [parent for parent in hidden.parents if not parent.exists()]
    try:
        with write_errors(folder):
            hidden.mkdir(parents=True)
            yield GraphWriter(folder, hidden)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        with suppress(OSError):
            for parent in missing:
                parent.rmdir()


def _remove_stale(folder: Path) -> None:
    """Remove hidden folders of killed processes that wrote the same graph."""
    for hidden in folder.parent.glob(f".{folder.name}.*.draft"):
        pid = hidden.name.split(".")[-2]
        alive = False
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(pid), 0)
            alive = True
        if not alive:
            shutil.rmtree(hidden, ignore_errors=True)
