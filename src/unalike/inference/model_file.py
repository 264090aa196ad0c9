"""Save and load a model as safetensors with metadata and checksum."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from unalike.data.regression import NumberScale
from unalike.data.store import string_array, string_buffers
from unalike.errors import MAX_COUNT, UserError, did_you_mean, first_line
from unalike.files import atomic_write, check_writable
from unalike.importing.features import FeatureEncoder
from unalike.inference.model import Model, SavedMethod, model_class
from unalike.inference.new_nodes import TrainingGraph
from unalike.methods import METHODS, name_of
from unalike.options import options_of, with_options
from unalike.training.old_names import with_new_names
from unalike.version import __version__

FORMAT = 3
READABLE = (2, FORMAT)
"""Format 2 has other names of weights."""
ABOUT, DIGEST, WEIGHTS = "unalike", "sha256", "weights/"
SPARE_LAYERS = 8
"""Layers without a tensor of their own that a model may have."""
READ_ERRORS = (
    SafetensorError,
    KeyError,
    TypeError,
    ValueError,
    RuntimeError,
    RecursionError,
    AttributeError,
    MemoryError,
    OverflowError,
)
"""Errors that a file with wrong contents may raise."""
OTHER_FORMATS = {
    b"PK": "a zip archive, as torch.save writes it; it is not unpacked",
    b"\x80": "a pickle; it could run code and is not read",
    b"\x1f\x8b": "a gzip file; it is not unpacked",
    b"PAR1": "a Parquet file",
    b"{": "a JSON file",
    b"": "no model of unalike, or a damaged one",
}
"""Formats of other files by their first bytes."""


def save_model(model: Model, path: Path) -> int:
    """Write a model to a new file; returns its size in bytes."""
    check_can_create(path)
    if type(model.method) not in METHODS.values():
        raise UserError(
            f"{name_of(model.method)} is not in unalike's table of methods, "
            "so that a file of its weights could not be read again."
        )
    model.check()
    tensors = {WEIGHTS + name: weight for name, weight in model.weights.items()}
    tensors |= ids_to_tensors(model.names)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    about = _metadata(model)
    # One entry, because safetensors writes several in an order of its own.
    metadata = {ABOUT: _dump({**about, DIGEST: _checksum(about, tensors)})}
    try:
        with atomic_write(path) as partial:
            save_file(tensors, partial, metadata)
    except SafetensorError as error:
        raise UserError(f"Cannot write {path}: {error}.") from None
    return path.stat().st_size


def load_model(path: str | Path, *, device: torch.device | str = "cpu") -> Model:
    """Read a model from its file, after checking its header and checksum."""
    path = Path(path)
    metadata = read_header(path)
    if ABOUT not in metadata:
        raise UserError(f"{path} holds tensors, but is no model of unalike.")
    try:
        about = json.loads(metadata[ABOUT])
        if about["format"] not in READABLE:
            raise UserError(
                f"{path} has the format {about['format']}, written by unalike "
                f"{about['unalike']}; unalike {__version__} reads {FORMAT}."
            )
        tensors, digest = load_file(path), about.pop(DIGEST)
        if _checksum(about, tensors) != digest:
            raise UserError(f"{path} is damaged: its sha256 differs.")
        return _from_metadata(about, tensors, torch.device(device))
    except READ_ERRORS as error:
        raise UserError(f"{path} is damaged: {first_line(error)}.") from None


def check_can_create(path: Path) -> None:
    """Raise if the file exists already, or cannot be made in its folder."""
    if path.exists():
        raise UserError(f"{path} exists already; name another file or remove it.")
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent} to write {path.name} to.")
    check_writable(path)


def _metadata(model: Model) -> dict[str, Any]:
    columns = model.encoder and [column.to_dict() for column in model.encoder.columns]
    scale, graph = model.number_scale, asdict(model.graph_info)
    if not graph["weighted"]:
        del graph["weighted"]  # files of earlier versions have no such key
    return {
        "format": FORMAT,
        "unalike": __version__,
        "method": name_of(model.method),
        "options": options_of(model.method),
        "graph": graph,
        "classes": model.classes,
        "temperature": model.temperature,
        "feature_columns": columns,
        **({"number_scale": asdict(scale)} if scale else {}),
    }


def _from_metadata(
    about: dict[str, Any], tensors: dict[str, Tensor], device: torch.device
) -> Model:
    if about["method"] not in METHODS:
        raise UserError(
            f"No method '{about['method']}'.{did_you_mean(about['method'], METHODS)} "
            "A module of yours is registered by unalike.method(name, module) "
            "before its model is loaded."
        )
    _check_sizes(about, tensors)
    default = METHODS[about["method"]]()
    method = with_options(default, about["options"], about["method"])
    if not isinstance(method, SavedMethod):
        raise ValueError(f"{about['method']} has no weights")
    columns, scale = about["feature_columns"], about.get("number_scale")
    weights = {
        # Aligned copies: the last bit of a product can depend on the alignment.
        name.removeprefix(WEIGHTS): tensor.to(device, copy=True)
        for name, tensor in tensors.items()
        if name.startswith(WEIGHTS)
    }
    model = model_class(method)(
        method=method,
        weights=weights,
        graph_info=TrainingGraph(**about["graph"]),
        classes=about["classes"],
        encoder=None if columns is None else FeatureEncoder.from_dict(columns),
        names=ids_from_tensors(tensors),
        temperature=float(about.get("temperature", 1)),
        number_scale=None if scale is None else NumberScale(**scale),
    )
    if about["format"] < FORMAT:
        model = replace(model, weights=with_new_names(model.untrained(), weights))
    model.check()
    return model


def _check_sizes(about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Refuse numbers of nodes, features and layers that the file cannot have."""
    for name in ("num_known", "num_features", "num_classes"):
        size = about["graph"][name]
        if not isinstance(size, int) or not 0 <= size <= MAX_COUNT:
            raise ValueError(f"{name} is {size}")
    for name, value in about["options"].items():
        if name.endswith("layers") and value > len(tensors) + SPARE_LAYERS:
            raise ValueError(f"{name} is {value}, but it has {len(tensors)} tensors")


def _dump(about: dict[str, Any]) -> str:
    return json.dumps(about, ensure_ascii=False)


def _checksum(about: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """SHA-256 of the metadata and of every tensor with its name and shape."""
    digest = sha256(_dump(about).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_header(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file whose header and size are valid."""
    try:
        with path.open("rb") as file:
            first_bytes = file.read(9)
        # A safetensors file is 8 bytes of header length, then JSON.
        if first_bytes[8:] != b"{":
            formats = OTHER_FORMATS.items()
            kinds = (kind for start, kind in formats if first_bytes.startswith(start))
            raise UserError(f"{path} is {next(kinds)}.")
        with safe_open(path, "pt") as tensors:
            return tensors.metadata() or {}
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except SafetensorError as error:
        raise UserError(f"{path} is truncated or damaged: {error}.") from None


# Node ids as tensors.


SIGNED, UNSIGNED = "names/signed", "names/unsigned"
STARTS, TEXT = "names/starts", "names/text"


def ids_to_tensors(names: pa.Array | None) -> dict[str, Tensor]:
    """Tensors of 64-bit integer ids, or of concatenated UTF-8 with its offsets."""
    if names is None:
        return {}
    if pa.types.is_integer(names.type):
        large = pa.types.is_uint64(names.type)
        bits = names.cast(pa.uint64() if large else pa.int64()).to_numpy()
        values = torch.from_numpy(bits.view(np.int64).copy())
        return {UNSIGNED if large else SIGNED: values}
    offsets, text = map(torch.tensor, string_buffers(names))
    return {STARTS: offsets, TEXT: text}


def ids_from_tensors(tensors: dict[str, Tensor]) -> pa.Array | None:
    """The ids in such tensors; None without any."""
    if TEXT in tensors:
        names = string_array(tensors[STARTS].numpy(), tensors[TEXT].numpy())
        names.validate(full=True)
        return names
    if UNSIGNED in tensors:
        return pa.array(tensors[UNSIGNED].numpy().view(np.uint64))
    return pa.array(tensors[SIGNED].numpy()) if SIGNED in tensors else None
