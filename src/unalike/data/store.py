"""Stored graphs: open, save, verify a folder of memory-mapped arrays; rows by pread."""

from __future__ import annotations

import math
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol, runtime_checkable
from weakref import finalize

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.csr import row_bounds
from unalike.data.graph import Features, Graph
from unalike.data.metrics import Metric
from unalike.data.regression import ALL_METRICS, default_metric
from unalike.data.split import Split, stack_codes
from unalike.data.store_checks import (
    LABEL_VALUES,
    check_array,
    check_metadata,
    file_version,
    record_checked,
    verify_array,
    with_hash,
)
from unalike.errors import UserError, lookup
from unalike.files import (
    allocate,
    partial_folder,
    read_metadata,
    sha256_file,
    sync,
    write_metadata,
)
from unalike.progress import NO_PROGRESS, Progress
from unalike.version import __version__

FORMAT = 1
METADATA_FILE = "graph.json"

FILE_BACKED_BYTES = 2**30
"""Matrices whose indices take more than this are read from their files row by row."""
WRITE_BYTES = 2**26
"""Bytes of dense features that are written at a time."""
SCALED_KINDS = ("numeric", "date")
"""Types of imported columns that can be scaled."""
SCALE_ROWS = 10_000
"""Rows by which scales of features are compared."""
MAX_SCALE_RATIO = 1_000


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
    metadata: dict[str, Any] = field(repr=False)
    """The content of graph.json: counts, direction, names, provenance, array hashes."""

    @property
    def name(self) -> str:
        return self.metadata.get("name") or self.folder.name

    @property
    def metric(self) -> Metric:
        return lookup(ALL_METRICS, self.metadata["metric"], "metric")

    @cached_property
    def graph(self) -> Graph:
        """The graph, over memory-mapped arrays."""
        return Graph(
            adjacency=self._adjacency(),
            features=self._features(),
            labels=self.array("labels"),
            num_classes=self.metadata["num_classes"],
            directed=self.metadata["directed"],
            class_names=self.metadata.get("class_names") or None,
            label_values=self._optional(LABEL_VALUES),
        )

    def load(self) -> Graph:
        return self.graph

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        """The graph as methods get it: the same as `graph`."""
        return self.graph

    def splits(self) -> list[Split]:
        return [Split.from_codes(codes) for codes in self.array("splits")]

    def remarks(self) -> list[str]:
        """Notes of its creator for users, and a warning about raw features."""
        remarks = list(self.metadata.get("provenance", {}).get("remarks", []))
        columns = self.metadata.get("feature_columns", ())
        raw = any(c["kind"] in SCALED_KINDS and "scale" not in c for c in columns)
        saved = not {"feature_columns", "provenance"} & self.metadata.keys()
        if (raw or saved) and differ_in_scale(self.graph.features):
            remedy = "import the graph with --scale standard" if raw else SCALE_FIRST
            remarks.append(f"{UNSCALED}; {remedy}")
        return remarks

    @cached_property
    def names(self) -> pa.Array:
        """The user's id of each node: integers or strings."""
        if "names_text" in self.metadata["arrays"]:
            offsets, text = self.array("names_offsets"), self.array("names_text")
            names = string_array(offsets.numpy(), text.numpy())
            try:
                names.validate(full=True)
            except pa.ArrowInvalid:
                raise UserError(
                    f"{self.folder}: the array 'names_text' is not UTF-8."
                ) from None
            return names
        if "names" in self.metadata["arrays"]:
            return pa.array(self.array("names").numpy())
        return pa.array(np.arange(self.metadata["num_nodes"]))

    def array(self, name: str) -> Shaped[Tensor, ...]:
        """One of the arrays, memory-mapped."""
        with warnings.catch_warnings():
            # The map is read-only, which torch tensors cannot be: torch warns.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            entry = self.metadata["arrays"].get(name)
            if entry is None:
                raise UserError(f"{self.folder} has no array '{name}'.")
            array = _map(self.folder, name, entry)
            check_array(self.folder, name, array, self.metadata)
            return torch.from_numpy(array)

    def _optional(self, name: str) -> Shaped[Tensor, ...] | None:
        return self.array(name) if name in self.metadata["arrays"] else None

    def _adjacency(self) -> Adjacency:
        nodes, bounds = self.metadata["num_nodes"], self.metadata.get("bounds")
        if bounds is None:
            undirected = not self.metadata["directed"]
            return self._csr("", nodes)._mark_symmetric(undirected)
        from unalike.data.sharding import ShardedAdjacency

        def shard(index: int) -> Adjacency:
            return self._csr(f"shard{index}_", bounds[index + 1] - bounds[index])

        indptr, empty = self.array("starts"), torch.empty(0, dtype=torch.int32)
        return ShardedAdjacency(indptr, empty, nodes, bounds=bounds, open=shard)

    def _features(self) -> Features:
        if "features" in self.metadata["arrays"]:
            return self.array("features")
        return self._csr("features_", self.metadata["num_features"])

    def _csr(self, prefix: str, num_cols: int) -> Adjacency:
        indptr, indices = self.array(f"{prefix}starts"), self.array(f"{prefix}columns")
        values = self._optional(f"{prefix}values")
        if indices.nbytes < FILE_BACKED_BYTES:
            return Adjacency(indptr, indices, num_cols, values)
        return FileBackedAdjacency(
            indptr.clone(),
            indices,
            num_cols,
            values,
            columns_file=self._file(f"{prefix}columns"),
            values_file=None if values is None else self._file(f"{prefix}values"),
        )

    def _file(self, name: str) -> ArrayFile:
        array = self.array(name).numpy()
        path = self.folder / f"{name}.npy"
        return ArrayFile.open(path, size=array.nbytes, dtype=array.dtype)


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """An open file with the numbers of an array."""

    path: Path
    file: int
    """File descriptor."""
    offset: int
    """Bytes before the first number."""
    dtype: np.dtype

    @classmethod
    def open(cls, path: Path, *, size: int, dtype: np.dtype) -> ArrayFile:
        """Open a file that ends with `size` bytes of numbers."""
        file = os.open(path, os.O_RDONLY)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        array_file = cls(path, file, path.stat().st_size - size, dtype)
        finalize(array_file, os.close, file)
        return array_file

    def read(
        self, first: Int[Tensor, " ranges"], indptr: Int[Tensor, " ranges_and_one"]
    ) -> Shaped[Tensor, " numbers"]:
        """Ranges that begin at `first`, concatenated with the bounds `indptr`."""
        from unalike.data.numba_utils import pread_ranges

        out, size = np.empty(int(indptr[-1]), self.dtype), self.dtype.itemsize
        offsets, bounds = self.offset + size * first.numpy(), size * indptr.numpy()
        failed = pread_ranges(self.file, offsets, bounds, out.view(np.uint8))
        if failed:
            raise UserError(f"{self.path}: {failed} rows cannot be read.")
        return torch.from_numpy(out)


@dataclass(frozen=True, eq=False)
class FileBackedAdjacency(Adjacency):
    """A memory-mapped matrix whose rows are read from its files when selected."""

    columns_file: ArrayFile = field(kw_only=True)
    values_file: ArrayFile | None = field(kw_only=True)

    def select_rows(self, ids: Ids) -> Adjacency:
        first, indptr = row_bounds(self.indptr, ids)
        indices = self.columns_file.read(first, indptr)
        file = self.values_file
        values = None if file is None else file.read(first, indptr)
        return Adjacency(indptr, indices, self.num_cols, values)


def open_graph(folder: str | Path) -> StoredGraph:
    """Open a stored graph: reads graph.json, and maps arrays when they are used."""
    folder = Path(folder)
    metadata = read_metadata(
        folder / METADATA_FILE, kind="stored graph", content="arrays", version=FORMAT
    )
    check_metadata(folder, metadata)
    return StoredGraph(folder, metadata)


UNSCALED = (
    "the features differ by orders of magnitude and are not scaled, which most "
    "methods need"
)
SCALE_FIRST = "scale them first, for example by StandardScaler of scikit-learn"


def differ_in_scale(features: Features) -> bool:
    """Whether dense columns differ in their largest absolute value a thousandfold."""
    if isinstance(features, Adjacency) or not features.numel():
        return False
    step = max(1, len(features) // SCALE_ROWS)
    largest = features[::step].abs().amax(0)
    largest = largest[largest > 0]
    return len(largest) > 0 and bool(
        largest.max() > MAX_SCALE_RATIO * largest.min().clamp(max=1)
    )


def save_graph(
    folder: str | Path,
    graph: Graph,
    *,
    splits: Sequence[Split] = (),
    metric: Metric | None = None,
    names: pa.Array | None = None,
    about: dict[str, Any] | None = None,
) -> StoredGraph:
    """Write a graph to a new folder; `about` is added to its metadata.

    The metric is accuracy, or R² of a graph with numbers, unless it is given.
    """
    folder = Path(folder)
    metric = metric or default_metric(graph)
    if graph.class_names is not None:
        about = {"class_names": list(graph.class_names), **(about or {})}
    if not graph.directed and not graph.adjacency.is_symmetric:
        raise UserError(
            "The graph is marked as undirected, and its adjacency is not symmetric; "
            "set directed=True or add the reverse edges."
        )
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


def add_nodes(
    writer: GraphWriter, graph: Graph, splits: Sequence[Split], dtype: Any = None
) -> None:
    """Write features, labels and splits; dense features with another dtype if given."""
    if isinstance(graph.features, Adjacency):
        add_csr(writer, "features_", graph.features)
    else:
        write_in_blocks(writer, "features", graph.features, dtype)
    writer.add("labels", graph.labels.numpy())
    if graph.label_values is not None:
        writer.add(LABEL_VALUES, graph.label_values.numpy())
    writer.add("splits", stack_codes(splits, graph.num_nodes))


def write_in_blocks(writer: GraphWriter, name: str, rows: Tensor, dtype: Any) -> None:
    """Write a matrix in blocks of rows, because it may be memory-mapped."""
    dtype = dtype or rows.numpy().dtype
    array = writer.create_memmap(name, dtype, tuple(rows.shape))
    step = max(1, WRITE_BYTES // max(1, 4 * rows.shape[1]))
    for start in range(0, len(rows), step):
        array[start : start + step] = rows[start : start + step].numpy()


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
    offsets, text = string_buffers(names)
    writer.add("names_offsets", offsets)
    writer.add("names_text", text)


def string_array(offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    """Build an Arrow array whose string i is data[offsets[i]:offsets[i + 1]]."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def string_buffers(strings: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets, from 0 on, and the UTF-8 bytes of an array of strings."""
    if not len(strings):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    strings = strings.cast(pa.large_string())
    _, offsets, data = strings.buffers()
    offsets = np.frombuffer(offsets, np.int64)
    offsets = offsets[strings.offset : strings.offset + len(strings) + 1]
    first, end = offsets[0], offsets[-1]
    data = np.frombuffer(data or b"", np.uint8)[first:end]
    return offsets - first if first else offsets, data


def verify_graph(folder: Path) -> StoredGraph:
    """Check every array and its hash; the error names the first that is damaged."""
    stored = open_graph(folder)
    for name, entry in stored.metadata["arrays"].items():
        verify_array(folder, name, _map(folder, name, entry), stored.metadata)
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
        if not isinstance(array, np.ndarray):
            raise ValueError("no array")
    except FileNotFoundError:
        raise UserError(f"{folder}: the array '{name}' is missing.") from None
    except UserError:
        raise
    except Exception as error:
        # A damaged header can raise nearly any exception.
        raise UserError(f"{folder}: the array '{name}' is damaged ({error}).") from None
    if list(array.shape) != entry["shape"] or str(array.dtype) != entry["dtype"]:
        raise UserError(f"{folder}: the array '{name}' differs from graph.json.")
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
        self.names.append(name)
        write_npy(self.folder / f"{name}.npy", array)

    def create_memmap(
        self, name: str, dtype: Any, shape: tuple[int, ...]
    ) -> np.ndarray:
        """Allocate one array on disk and map it, to be filled in place."""
        self.names.append(name)
        if 0 in shape:
            np.save(self.folder / f"{name}.npy", np.zeros(shape, dtype))
            return np.zeros(shape, dtype)
        path = self.folder / f"{name}.npy"
        with path.open("wb") as file:
            _write_header(file, dtype, shape)
            allocate(file, math.prod(shape) * np.dtype(dtype).itemsize)
        return np.load(path, mmap_mode="r+")

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
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)

    def commit(self, metadata: dict[str, Any]) -> None:
        """Write the metadata, flush everything to disk, and rename the folder."""
        self.discard_scratch()
        arrays = {name: self._checksum(name) for name in self.names}
        document = {"format": FORMAT, "unalike": __version__, **metadata}
        document["arrays"] = arrays | self.links
        write_metadata(self.folder / METADATA_FILE, with_hash(document))
        try:
            self.folder.rename(self.final)
        except OSError:
            if not self.final.exists():
                raise
            raise UserError(
                f"{self.final} exists already: another process wrote it meanwhile."
            ) from None
        files = {name: self.final / f"{name}.npy" for name in self.names}
        versions = {name: file_version(path) for name, path in files.items()}
        record_checked(self.final, versions)

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


def write_npy(path: Path, array: np.ndarray) -> None:
    """Write an array as `np.save` does, whose error for a full disk has no reason."""
    with path.open("wb") as file:
        _write_header(file, array.dtype, array.shape)
        file.write(np.ascontiguousarray(array).data)


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
    with partial_folder(folder) as hidden:
        yield GraphWriter(folder, hidden)
