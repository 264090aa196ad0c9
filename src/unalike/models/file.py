"""Model files: tensors with a JSON description, in which nothing can be run."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from unalike.draft import UNWRITABLE
from unalike.errors import UserError, did_you_mean
from unalike.importing.encoding import Encoder
from unalike.methods import METHODS, name_of
from unalike.methods.method import Trained
from unalike.models.facts import Facts
from unalike.models.header import read_header
from unalike.models.model import Model
from unalike.models.names import NAMES, names_of, tensors_of
from unalike.options import options_of, with_options
from unalike.training.old_names import with_new_names
from unalike.version import __version__

FORMAT = 3
READABLE = (2, FORMAT)
"""Format 2 has other names of weights."""
ABOUT, DIGEST, WEIGHTS = "unalike", "sha256", "weights/"
BROKEN = (
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
    check_new(path)
    check_saveable(model)
    tensors = {WEIGHTS + name: weight for name, weight in model.weights.items()}
    tensors |= tensors_of(model.names)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    about = _about(model)
    # One entry: safetensors writes several in an order of its own.
    told = {ABOUT: _told({**about, DIGEST: _digest(about, tensors)})}
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
        if about["format"] not in READABLE:
            raise UserError(
                f"{path} has the format {about['format']}, written by unalike "
                f"{about['unalike']}; unalike {__version__} reads {FORMAT}."
            )
        tensors, digest = load_file(path), about.pop(DIGEST)
        if _digest(about, tensors) != digest:
            raise UserError(f"{path} is damaged: its sha256 differs.")
        return _restored(about, tensors).to(device)
    except BROKEN as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path} is damaged: {reason}.") from None


def check_new(path: Path) -> None:
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


def _about(model: Model) -> dict[str, Any]:
    columns = model.encoder and [column.about() for column in model.encoder.columns]
    return {
        "format": FORMAT,
        "unalike": __version__,
        "method": name_of(model.method),
        "options": options_of(model.method),
        "graph": asdict(model.facts),
        "classes": model.classes,
        "temperature": model.temperature,
        "feature_columns": columns,
    }


def _restored(about: dict[str, Any], tensors: dict[str, Tensor]) -> Model:
    if about["method"] not in METHODS:
        raise UserError(
            f"No method '{about['method']}'.{did_you_mean(about['method'], METHODS)} "
            "A module of yours is registered by unalike.method(name, module) "
            "before its model is loaded."
        )
    usual = METHODS[about["method"]]()
    method = with_options(usual, about["options"], about["method"])
    if not isinstance(method, Trained):
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
        facts=Facts(**about["graph"]),
        classes=about["classes"],
        encoder=None if told is None else Encoder.from_about(told),
        names=names_of({name: tensors[name] for name in NAMES if name in tensors}),
        temperature=float(about.get("temperature", 1)),
    )
    if about["format"] < FORMAT:
        model = replace(model, weights=with_new_names(model.untrained(), weights))
    model.check()
    return model


def _told(about: dict[str, Any]) -> str:
    return json.dumps(about, ensure_ascii=False)


def _digest(about: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """A digest of the description and of every tensor with its name and shape."""
    digest = sha256(_told(about).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
