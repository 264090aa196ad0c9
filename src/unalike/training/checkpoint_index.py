"""The index of a checkpoint: names, shapes and places of tensors as JSON."""

from __future__ import annotations

import json
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    _StorageInfo,
)
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.storage import WriteResult

from unalike.datasets.safe_pickle import check_opcodes
from unalike.files import atomic_write
from unalike.training.checkpoint import INDEX_FILE, PICKLED_INDEX_FILE

MAX_INDEX_BYTES = 1 << 26
MAX_TUPLES = 10_000
"""Tuples of an older index; each tensor has about five."""
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
}

Document = dict[str, Any]
"""Dtype, size and chunks of each tensor; a chunk has offsets, sizes and its place in a
file: name, offset and length in bytes."""


class IndexWriter(FileSystemWriter):
    """Writes tensors as torch does, and the index as JSON instead of a pickle."""

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        places = {one.index: one.storage_data for part in results for one in part}
        document = {
            name: tensor_entry(name, entry, places)
            for name, entry in metadata.state_dict_metadata.items()
            if isinstance(entry, TensorStorageMetadata)
        }
        with atomic_write(Path(self.path) / INDEX_FILE, fsync=True) as partial:
            partial.write_text(json.dumps({"tensors": document}), "utf-8")


class IndexReader(FileSystemReader):
    """Reads tensors as torch does, without unpickling an index."""

    def read_metadata(self, *_: Any, **__: Any) -> Metadata:
        folder = Path(self.path)
        path = folder / INDEX_FILE
        is_json = path.exists()
        path = path if is_json else folder / PICKLED_INDEX_FILE
        if path.stat().st_size > MAX_INDEX_BYTES:
            raise ValueError(f"{path.name} has more than {MAX_INDEX_BYTES:,} bytes")
        content = path.read_bytes()
        try:
            tensors = json.loads(content)["tensors"] if is_json else unpickle(content)
            metadata = to_metadata(tensors, folder)
        except Exception as error:
            # A damaged or crafted index can raise nearly any exception.
            raise ValueError(f"{path.name} is damaged: {error}") from None
        metadata.storage_meta = StorageMeta(load_id=self.load_id)
        return metadata


def tensor_entry(
    name: str,
    entry: TensorStorageMetadata,
    places: dict[MetadataIndex, _StorageInfo],
) -> Document:
    """The part of the index about one tensor."""
    chunks = [
        {
            "offsets": list(chunk.offsets),
            "sizes": list(chunk.sizes),
            "file": place.relative_path,
            "offset": place.offset,
            "length": place.length,
        }
        for chunk in entry.chunks
        for place in [places[MetadataIndex(name, chunk.offsets)]]
    ]
    dtype = str(entry.properties.dtype).removeprefix("torch.")
    return {"dtype": dtype, "size": list(entry.size), "chunks": chunks}


def to_metadata(tensors: Document, folder: Path) -> Metadata:
    """The index as torch has it; every place is checked against the files."""
    entries, places = dict[str, Any](), dict[MetadataIndex, _StorageInfo]()
    file_sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    for name, entry in tensors.items():
        chunks = []
        for chunk in entry["chunks"]:
            offsets, sizes = to_size(chunk["offsets"]), to_size(chunk["sizes"])
            file = chunk["file"]
            offset, length = to_size([chunk["offset"], chunk["length"]])
            if offset + length > file_sizes[file]:
                raise ValueError(f"{file} is shorter than it says")
            chunks.append(ChunkStorageMetadata(offsets, sizes))
            places[MetadataIndex(name, offsets)] = _StorageInfo(file, offset, length)
        properties = TensorProperties(dtype=DTYPES[entry["dtype"]])
        size = to_size(entry["size"])
        entries[name] = TensorStorageMetadata(properties, size, chunks)
    return Metadata(entries, storage_data=places)


def to_size(numbers: Any) -> torch.Size:
    """A shape or an offset of natural numbers."""
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"{numbers} are no natural numbers")
    return torch.Size(numbers)


# Indices before JSON are pickles of torch's classes. Every global of such a pickle is
# read as `Pickled`, which keeps its arguments and state and runs nothing.


class Pickled:
    """Stand-in for the classes of an older index; a class itself takes no state."""

    state: Any

    def __init__(self, *arguments: Any) -> None:
        self.state = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


PICKLED_GLOBALS = {
    ("pathlib", "PosixPath"),
    ("pathlib._local", "PosixPath"),
    ("torch", "Size"),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    *(
        ("torch.distributed.checkpoint.metadata", name)
        for name in (
            "_MEM_FORMAT_ENCODING",
            "ChunkStorageMetadata",
            "Metadata",
            "MetadataIndex",
            "StorageMeta",
            "TensorProperties",
            "TensorStorageMetadata",
        )
    ),
    ("torch.serialization", "_get_layout"),
}


class IndexUnpickler(pickle.Unpickler):
    """Gives `Pickled` for the classes of an index, and refuses all other globals."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in DTYPES:
            return name
        if (module, name) not in PICKLED_GLOBALS:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, which is not allowed"
            )
        return Pickled


def unpickle(content: bytes) -> Document:
    """The index of a checkpoint that was written as a pickle."""
    check_opcodes(content, max_tuples=MAX_TUPLES)
    metadata = IndexUnpickler(BytesIO(content)).load().state
    places = {
        (key.state["fqn"], key.state["offset"].state[0]): place.state
        for key, place in metadata["storage_data"].items()
    }
    tensors = {}
    for name, pickled in metadata["state_dict_metadata"].items():
        entry, chunks = pickled.state, []
        for one in entry["chunks"]:
            chunk = {key: list(value.state[0]) for key, value in one.state.items()}
            place = places[name, tuple(chunk["offsets"])]
            file = {"file": place["relative_path"]}
            position = {key: place[key] for key in ("offset", "length")}
            chunks.append({**chunk, **file, **position})
        tensors[name] = {
            "dtype": entry["properties"].state[0],
            "size": list(entry["size"].state[0]),
            "chunks": chunks,
        }
    return tensors
