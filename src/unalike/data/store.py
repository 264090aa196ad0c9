"""Stored graph folder: open, save, verify, memory-mapped arrays, atomic writer."""

from __future__ import annotations

import errno
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import file_digest
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
from unalike.progress import NO_PROGRESS, Progress
from unalike.version import __version__

# A graph folder being written: it takes its name only when it is whole.


FORMAT = 1
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS)


@dataclass
class GraphWriter:
    """A hidden folder beside the final one, filled array by array, then renamed."""

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
        """Make room for one array and map it, to be filled in place."""
        self.names.append(name)
        if 0 in shape:
            np.save(self.folder / f"{name}.npy", np.zeros(shape, dtype))
            return np.zeros(shape, dtype)
        path = self.folder / f"{name}.npy"
        array = np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
        with path.open("r+b") as file:
            # Claim the blocks now: a full disk must not end in SIGBUS later.
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        return array

    @contextmanager
    def append_array(self, name: str, dtype: Any) -> Iterator[Callable[[Any], None]]:
        """Write one flat array piece by piece; its length need not be known."""
        self.names.append(name)
        length = 0

        def append(piece: np.ndarray) -> None:
            nonlocal length
            file.write(np.ascontiguousarray(piece, dtype).data)
            length += len(piece)

        with (self.folder / f"{name}.npy").open("wb") as file:
            _write_header(file, dtype, (0,))
            yield append
            # Numpy pads headers, so that a longer length fits into the same bytes.
            file.seek(0)
            _write_header(file, dtype, (length,))

    def link_array(self, name: str, path: Path, facts: dict[str, Any]) -> None:
        """Take over an array of another folder, with what is known of it, uncopied."""
        self.links[name] = facts
        own = self.folder / f"{name}.npy"
        try:
            own.hardlink_to(path)
        except OSError:
            own.symlink_to(path.absolute())

    def scratch(self, name: str) -> Path:
        """A path for a temporary file; it is gone when the draft is done."""
        path = self.folder / "scratch"
        path.mkdir(exist_ok=True)
        return path / name

    def discard_scratch(self) -> None:
        """Remove the temporary files."""
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)

    def commit(self, about: dict[str, Any]) -> None:
        """Describe what was written, make it durable, and give it its name."""
        self.discard_scratch()
        arrays = {name: self._checksum(name) for name in self.names}
        told = {"format": FORMAT, "unalike": __version__, **about}
        told["arrays"] = arrays | self.links
        text = json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        with (self.folder / "graph.json").open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self.folder.rename(self.final)

    def _checksum(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.npy"
        array = np.load(path, mmap_mode=None if path.stat().st_size < 4096 else "r")
        with path.open("r+b") as file:
            digest = file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        return {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "bytes": path.stat().st_size,
            "sha256": digest,
        }


def _write_header(file: IO[bytes], dtype: Any, shape: tuple[int, ...]) -> None:
    facts = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(file, facts)


@contextmanager
def atomic_graph_writer(folder: Path) -> Iterator[GraphWriter]:
    """Write a graph folder; whatever goes wrong, nothing is left behind."""
    folder = Path(folder).absolute()
    if folder.exists():
        raise UserError(f"{folder} exists already; name another folder or remove it.")
    _remove_stale(folder)
    hidden = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    missing = [parent for parent in hidden.parents if not parent.exists()]
    try:
        hidden.mkdir(parents=True)
        yield GraphWriter(folder, hidden)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise UserError(f"Cannot write {folder}: {error.strerror}.") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        with suppress(OSError):
            for parent in missing:
                parent.rmdir()


def _remove_stale(folder: Path) -> None:
    """Remove drafts of the same folder whose writers were killed."""
    for draft in folder.parent.glob(f".{folder.name}.*.draft"):
        writer = draft.name.split(".")[-2]
        alive = False
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(writer), 0)
            alive = True
        if not alive:
            shutil.rmtree(draft, ignore_errors=True)


# The stored graph: a folder of plain arrays that is mapped, not read.


ABOUT = "graph.json"

FILE_BACKED_BYTES = 2**30
"""Entries that take more than this are read from their file, row by row."""


@dataclass(frozen=True, eq=False)
class StoredGraph:
    """An opened folder: the graph, its splits, and what is written about them."""

    folder: Path
    metadata: dict[str, Any]
    """What graph.json says: counts, direction, names, provenance, a hash per array."""

    @property
    def name(self) -> str:
        return self.metadata.get("name") or self.folder.name

    @property
    def metric(self) -> Metric:
        return lookup(METRICS, self.metadata["metric"], "metric")

    @cached_property
    def graph(self) -> Graph:
        """The graph, over mapped arrays."""
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
        """What methods are given: the graph as it is."""
        return self.graph

    def splits(self) -> list[Split]:
        """The splits that were stored with the graph."""
        return [Split.from_codes(codes) for codes in self.array("splits")]

    def remarks(self) -> list[str]:
        """What its maker noted for those who use it."""
        return self.metadata.get("provenance", {}).get("remarks", [])

    @cached_property
    def names(self) -> pa.Array:
        """The user's own id of each node: numbers or strings."""
        if "names_text" in self.metadata["arrays"]:
            offsets, text = self.array("names_offsets"), self.array("names_text")
            buffers = [None, pa.py_buffer(offsets.numpy()), pa.py_buffer(text.numpy())]
            return pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers[1:])
        if "names" in self.metadata["arrays"]:
            return pa.array(self.array("names").numpy())
        return pa.array(np.arange(self.metadata["num_nodes"]))

    def array(self, name: str) -> Shaped[Tensor, ...]:
        """One of the arrays, mapped."""
        with warnings.catch_warnings():
            # The map is read-only; torch cannot say so of a tensor, and warns.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return torch.from_numpy(
                _map(self.folder, name, self.metadata["arrays"][name])
            )

    def _adjacency(self) -> Adjacency:
        nodes, bounds = self.metadata["num_nodes"], self.metadata.get("bounds")
        if bounds is None:
            return self._rows("", nodes)
        starts, none = self.array("starts"), torch.empty(0, dtype=torch.int32)

        def shard(place: int) -> Adjacency:
            width = bounds[place + 1] - bounds[place]
            return self._rows(f"shard{place}_", width)

        return ShardedAdjacency(starts, none, nodes, bounds=bounds, open=shard)

    def _features(self) -> Features:
        if "features" in self.metadata["arrays"]:
            return self.array("features")
        return self._rows("features_", self.metadata["num_features"])

    def _rows(self, prefix: str, width: int) -> Adjacency:
        starts, columns = (
            self.array(f"{prefix}{part}") for part in ("starts", "columns")
        )
        name = f"{prefix}values"
        weighted = name in self.metadata["arrays"]
        values = self.array(name) if weighted else None
        if columns.nbytes < FILE_BACKED_BYTES:
            return Adjacency(starts, columns, width, values)
        return FileBackedAdjacency(
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


def open_graph(folder: Path) -> StoredGraph:
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
    return StoredGraph(folder, about)


def save_graph(
    folder: Path,
    graph: Graph,
    *,
    splits: Sequence[Split] = (),
    metric: Metric = ACCURACY,
    names: pa.Array | None = None,
    about: dict[str, Any] | None = None,
) -> StoredGraph:
    """Write a graph that is in memory to a new folder, whole or not at all."""
    with atomic_graph_writer(folder) as draft:
        add_csr(draft, "", graph.adjacency)
        add_nodes(draft, graph, splits)
        if names is not None:
            add_names(draft, names)
        draft.commit({**(about or {}), **graph_counts(graph), "metric": metric.name})
    return open_graph(folder)


def graph_counts(graph: Graph) -> dict[str, Any]:
    """The facts of a graph that its folder states."""
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_loops": graph.num_loops,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "directed": graph.directed,
    }


def add_nodes(draft: GraphWriter, graph: Graph, splits: Sequence[Split]) -> None:
    """Put what is known of nodes into a draft: features, labels, splits."""
    if isinstance(graph.features, Adjacency):
        add_csr(draft, "features_", graph.features)
    else:
        draft.add("features", graph.features.numpy())
    draft.add("labels", graph.labels.numpy())
    draft.add("splits", stack_codes(splits, graph.num_nodes))


def add_csr(draft: GraphWriter, prefix: str, rows: Adjacency) -> None:
    """Put sparse rows into a draft."""
    draft.add(f"{prefix}starts", rows.indptr.numpy())
    draft.add(f"{prefix}columns", rows.indices.numpy())
    if rows.values is not None:
        draft.add(f"{prefix}values", rows.values.numpy())


def add_names(draft: GraphWriter, names: pa.Array) -> None:
    """Put the user's node ids into a draft: numbers as they are, strings as UTF-8."""
    if pa.types.is_integer(names.type):
        draft.add("names", names.to_numpy(zero_copy_only=False))
        return
    names = pa.concat_arrays([names.cast(pa.large_string())])
    _, offsets, text = names.buffers()
    offsets = np.frombuffer(offsets, np.int64)[: len(names) + 1]
    draft.add("names_offsets", offsets)
    draft.add("names_text", np.frombuffer(text or b"", np.uint8)[: offsets[-1]])


def verify_graph(folder: Path) -> StoredGraph:
    """Read every array and compare it with its hash; name the first that differs."""
    stored = open_graph(folder)
    for name, facts in stored.metadata["arrays"].items():
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


# DATASETS: every dataset by its name, and how to find one.


@runtime_checkable
class GraphSource(Protocol):
    """Whatever a graph with splits and a metric comes from."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> Metric: ...

    def load(self) -> Graph:
        """The graph as it is stored."""

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        """The graph as methods are given it."""

    def splits(self) -> list[Split]:
        """Its splits."""

    def remarks(self) -> list[str]:
        """What somebody who uses the graph should know about this copy of it."""
