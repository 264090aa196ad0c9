"""Save and load a model as safetensors with metadata and checksum."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from unalike.errors import UserError, lookup
from unalike.files import UNWRITABLE
from unalike.importing.features import FeatureEncoder
from unalike.inference.model import Model
from unalike.inference.new_nodes import TrainingGraph
from unalike.methods import METHODS, name_of
from unalike.methods.base import TrainedMethod
from unalike.options import options_of, with_options
from unalike.version import __version__

# Header: what a model file says of itself, read before anything is loaded.


MAX_HEADER_BYTES = 100_000_000
"""Of a header; the readers of safetensors accept no more."""

OTHER_FORMATS = {
    b"PK": "a zip archive, as torch.save writes it; it is not unpacked",
    b"\x80": "a pickle; it could run code and is not read",
    b"\x1f\x8b": "a gzip file; it is not unpacked",
    b"PAR1": "a Parquet file",
    b"{": "a JSON file",
}
"""What other files begin with."""


def read_header(path: Path) -> dict[str, str]:
    """The description in a safetensors file whose parts fill it exactly."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header, begins = _parsed(path, file, size)
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    metadata = header.pop("__metadata__", {})
    try:
        ends = [part["data_offsets"][1] for part in header.values()]
        needed = begins + max(ends, default=0)
    except (TypeError, KeyError, IndexError):
        raise UserError(f"{path} is damaged: its header names no tensors.") from None
    if size != needed:
        what = "truncated" if size < needed else "damaged"
        raise UserError(f"{path} is {what}: it has {size:,} of {needed:,} bytes.")
    if not isinstance(metadata, dict):
        raise UserError(f"{path} is damaged: it does not describe itself.")
    return metadata


def _parsed(path: Path, file: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    first = file.read(9)
    length = int.from_bytes(first[:8], "little")
    if size < 10 or length > MAX_HEADER_BYTES or first[8:] != b"{":
        found = (
            kind for start, kind in OTHER_FORMATS.items() if first.startswith(start)
        )
        kind = next(found, "no model of unalike, or a damaged one")
        raise UserError(f"{path} is {kind}.")
    if length > size - 8:
        raise UserError(f"{path} is truncated: it ends within its header.")
    try:
        header = json.loads(b"{" + file.read(length - 1))
    except (ValueError, RecursionError):
        raise UserError(f"{path} is damaged: its header is not JSON.") from None
    return header, 8 + length


# Names: the user's own node ids as tensors, and back.


SIGNED, UNSIGNED, STARTS, TEXT = NAMES = (
    "names/signed",
    "names/unsigned",
    "names/starts",
    "names/text",
)


def ids_to_tensors(names: pa.Array | None) -> dict[str, Tensor]:
    """Tensors that hold the names: numbers of 64 bits, or UTF-8 one after the other."""
    if names is None:
        return {}
    if pa.types.is_integer(names.type):
        large = pa.types.is_uint64(names.type)
        bits = names.cast(pa.uint64() if large else pa.int64()).to_numpy()
        whole = torch.from_numpy(bits.view(np.int64).copy())
        return {UNSIGNED if large else SIGNED: whole}
    names = pa.concat_arrays([names.cast(pa.large_string())])
    _, starts, text = names.buffers()
    starts = np.frombuffer(starts, np.int64)[: len(names) + 1]
    letters = np.frombuffer(text or b"", np.uint8)[: starts[-1]]
    return {
        STARTS: torch.from_numpy(starts.copy()),
        TEXT: torch.from_numpy(letters.copy()),
    }


def ids_from_tensors(tensors: dict[str, Tensor]) -> pa.Array | None:
    """The names that tensors hold; None where there are none."""
    if TEXT in tensors:
        starts, text = tensors[STARTS].numpy(), tensors[TEXT].numpy()
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        names = pa.Array.from_buffers(pa.large_string(), len(starts) - 1, buffers)
        names.validate(full=True)
        return names
    if UNSIGNED in tensors:
        return pa.array(tensors[UNSIGNED].numpy().view(np.uint64))
    return pa.array(tensors[SIGNED].numpy()) if SIGNED in tensors else None


# Model files: tensors with a JSON description, in which nothing can be run.


FORMAT = 2
ABOUT, DIGEST, WEIGHTS = "unalike", "sha256", "weights/"
READ_ERRORS = (
    SafetensorError,
    KeyError,
    TypeError,
    ValueError,
    RuntimeError,
    RecursionError,
)
"""What a file may raise that is not what it says it is."""


def save_model(model: Model, path: Path) -> int:
    """Write a model to a new file, whole or not at all; returns its bytes."""
    check_can_create(path)
    check_saveable(model)
    tensors = {WEIGHTS + name: weight for name, weight in model.weights.items()}
    tensors |= ids_to_tensors(model.names)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    about = _metadata(model)
    # One entry: safetensors writes several in an order of its own.
    told = {ABOUT: _dump({**about, DIGEST: _checksum(about, tensors)})}
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        save_file(tensors, partial, told)
        partial.rename(path)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise UserError(f"Cannot write {path}: {error.strerror}.") from None
    except SafetensorError as error:
        raise UserError(f"Cannot write {path}: {error}.") from None
    finally:
        partial.unlink(missing_ok=True)
    return path.stat().st_size


def load_model(path: str | Path, *, device: torch.device | str = "cpu") -> Model:
    """Read a model from its file, which is looked at before anything is loaded."""
    path = Path(path)
    metadata = read_header(path)
    if ABOUT not in metadata:
        raise UserError(f"{path} holds tensors, but is no model of unalike.")
    try:
        about = json.loads(metadata[ABOUT])
        if about["format"] != FORMAT:
            raise UserError(
                f"{path} has the format {about['format']}, written by unalike "
                f"{about['unalike']}; unalike {__version__} reads {FORMAT}."
            )
        tensors, digest = load_file(path), about.pop(DIGEST)
        if _checksum(about, tensors) != digest:
            raise UserError(f"{path} is damaged: its sha256 differs.")
        return _from_metadata(about, tensors).to(device)
    except READ_ERRORS as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path} is damaged: {reason}.") from None


def check_can_create(path: Path) -> None:
    """Refuse to write where a file is already, or where no folder is."""
    if path.exists():
        raise UserError(f"{path} exists already; name another file or remove it.")
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent} to write {path.name} to.")


def check_saveable(model: Model) -> None:
    """Refuse a method that the file could not name."""
    if type(model.method) not in METHODS.values():
        raise UserError(
            f"{name_of(model.method)} is not in unalike's table of methods, "
            "so that a file of its weights could not be read again."
        )


def _metadata(model: Model) -> dict[str, Any]:
    columns = model.encoder and [column.to_dict() for column in model.encoder.columns]
    return {
        "format": FORMAT,
        "unalike": __version__,
        "method": name_of(model.method),
        "options": options_of(model.method),
        "graph": asdict(model.graph_info),
        "classes": model.classes,
        "temperature": model.temperature,
        "feature_columns": columns,
    }


def _from_metadata(about: dict[str, Any], tensors: dict[str, Tensor]) -> Model:
    usual = lookup(METHODS, about["method"], "method")()
    method = with_options(usual, about["options"], about["method"])
    if not isinstance(method, TrainedMethod):
        raise ValueError(f"{about['method']} has no weights")
    told = about["feature_columns"]
    weights = {
        # Products of numbers that lie elsewhere in a cache line may differ by a bit.
        name.removeprefix(WEIGHTS): tensor.clone()
        for name, tensor in tensors.items()
        if name.startswith(WEIGHTS)
    }
    model = Model(
        method=method,
        weights=weights,
        graph_info=TrainingGraph(**about["graph"]),
        classes=about["classes"],
        encoder=None if told is None else FeatureEncoder.from_dict(told),
        names=ids_from_tensors(
            {name: tensors[name] for name in NAMES if name in tensors}
        ),
        temperature=float(about.get("temperature", 1)),
    )
    model.check()
    return model


def _dump(about: dict[str, Any]) -> str:
    return json.dumps(about, ensure_ascii=False)


def _checksum(about: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """A digest of the description and of every tensor with its name and shape."""
    digest = sha256(_dump(about).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
