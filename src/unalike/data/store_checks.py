"""Check stored graphs: graph.json, hashes of arrays, pointers and indices in range."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from unalike.data.regression import ALL_METRICS
from unalike.errors import UserError
from unalike.files import json_hash, read_json_object, sha256_file, write_cache
from unalike.system import cache_dir

ELEMENTS_AT_ONCE = 1 << 22

HASH_KEY = "sha256"
"""Key of graph.json with the hash of the rest of it; older graphs have none."""


def with_hash(document: dict[str, Any]) -> dict[str, Any]:
    """The document of graph.json with its hash."""
    rest = {key: value for key, value in document.items() if key != HASH_KEY}
    return {**rest, HASH_KEY: json_hash(rest, 64)}


def check_metadata(folder: Path, metadata: dict[str, Any]) -> None:
    """Raise a `UserError` if graph.json does not describe a graph."""
    path = folder / "graph.json"
    for name, is_valid in REQUIRED.items():
        if name not in metadata or not is_valid(metadata[name]):
            raise UserError(f"{path} is damaged: it has no valid '{name}'.")
    for name, is_valid in OPTIONAL.items():
        if name in metadata and not is_valid(metadata[name]):
            raise UserError(f"{path} is damaged: its '{name}' is not valid.")
    for name, shape in expected_shapes(metadata).items():
        entry = metadata["arrays"].get(name)
        if entry is not None and not fits(entry["shape"], shape):
            raise UserError(
                f"{path} is damaged: the array '{name}' has the shape {entry['shape']}."
            )
    if metadata.get(HASH_KEY) not in (None, with_hash(metadata)[HASH_KEY]):
        raise UserError(
            f"{path} is damaged or was changed; if you changed it, remove its key "
            f"'{HASH_KEY}'."
        )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _is_list_of(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_valid, value))


def _is_a(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _is_entry(item: tuple[str, Any]) -> bool:
    name, entry = item
    return (
        "/" not in name
        and isinstance(entry, dict)
        and all(isinstance(entry.get(key), str) for key in ("dtype", "sha256"))
        and _is_count(entry.get("bytes"))
        and _is_list_of(_is_count)(entry.get("shape"))
    )


def _are_columns(columns: Any) -> bool:
    return _is_list_of(_is_a(dict))(columns) and all(
        isinstance(column.get("name"), str)
        and isinstance(column.get("kind"), str)
        and _is_count(column.get("width"))
        and _is_list_of(_is_a(str))(column.get("categories", []))
        for column in columns
    )


def _are_bounds(bounds: Any) -> bool:
    is_list = _is_list_of(_is_count)(bounds)
    return is_list and len(bounds) > 1 and bounds == sorted(bounds)


REQUIRED: dict[str, Callable[[Any], bool]] = {
    "num_nodes": _is_count,
    "num_edges": _is_count,
    "num_features": _is_count,
    "num_classes": _is_count,
    "directed": _is_a(bool),
    "metric": lambda metric: isinstance(metric, str) and metric in ALL_METRICS,
    "arrays": lambda arrays: (
        isinstance(arrays, dict) and all(map(_is_entry, arrays.items()))
    ),
}
"""Keys of graph.json and what their values must be."""
OPTIONAL: dict[str, Callable[[Any], bool]] = {
    "name": lambda name: name is None or isinstance(name, str),
    "num_loops": _is_count,
    "bounds": lambda bounds: bounds is None or _are_bounds(bounds),
    "class_names": _is_list_of(_is_a(str, int)),
    "feature_columns": _are_columns,
    "provenance": _is_a(dict),
}

LABEL_VALUES = "label_values"
"""The array of the number that each label stands for."""

Shape = tuple[int | None, ...]


def fits(shape: list[int], expected: Shape) -> bool:
    """Whether a shape is the expected one, in which None is any length."""
    return len(shape) == len(expected) and all(
        need in (None, length) for length, need in zip(shape, expected, strict=True)
    )


def expected_shapes(metadata: dict[str, Any]) -> dict[str, Shape]:
    """The shapes that the counts of graph.json ask for."""
    nodes, features = metadata["num_nodes"], metadata["num_features"]
    shapes: dict[str, Shape] = {
        "features": (nodes, features),
        "labels": (nodes,),
        LABEL_VALUES: (None,),
        "splits": (None, nodes),
        "names": (nodes,),
        "names_offsets": (nodes + 1,),
        "names_text": (None,),
    }
    for prefix in csr_widths(metadata):
        shapes[f"{prefix}starts"] = (nodes + 1,)
        shapes[f"{prefix}columns"] = shapes[f"{prefix}values"] = (
            array_length(metadata, f"{prefix}columns"),
        )
    return shapes


def array_length(metadata: dict[str, Any], name: str) -> int | None:
    """The length of an array by graph.json; None without the array."""
    shape = metadata["arrays"].get(name, {}).get("shape")
    return shape[0] if shape else None


def csr_widths(metadata: dict[str, Any]) -> dict[str, int]:
    """The number of columns of each CSR matrix, by the prefix of its arrays."""
    widths = {"": metadata["num_nodes"], "features_": metadata["num_features"]}
    bounds = metadata.get("bounds") or [0]
    for index, begin in enumerate(bounds[:-1]):
        widths[f"shard{index}_"] = bounds[index + 1] - begin
    return widths


# The hash and the values of an array are checked the first time it is opened, and
# again when its file is another one. The cache folder lists the checked files.


def check_array(
    folder: Path, name: str, array: np.ndarray, metadata: dict[str, Any]
) -> None:
    """Check an array unless its file was checked before."""
    version = file_version(folder / f"{name}.npy")
    if read_json_object(list_of_checked(folder)).get(name) != version:
        try:
            verify_array(folder, name, array, metadata)
        except UserError as error:
            hint = f"`unalike import --verify {folder}` checks all arrays"
            raise UserError(f"{str(error).rstrip('.')}; {hint}.") from None
        record_checked(folder, {name: version})


def verify_array(
    folder: Path, name: str, array: np.ndarray, metadata: dict[str, Any]
) -> None:
    """Compare an array with its hash, and check that its values are in range."""
    try:
        digest = sha256_file(folder / f"{name}.npy")
    except OSError as error:
        raise UserError(
            f"{folder}: the array '{name}' cannot be read ({error.strerror})."
        ) from None
    if digest != metadata["arrays"][name]["sha256"]:
        raise UserError(f"{folder}: the array '{name}' is damaged (sha256 differs).")
    problem = find_problem(name, array, metadata)
    if problem:
        raise UserError(f"{folder}: the array '{name}' is damaged ({problem}).")


def find_problem(name: str, array: np.ndarray, metadata: dict[str, Any]) -> str | None:
    """What is wrong with the values of an array, if anything is."""
    for prefix, width in csr_widths(metadata).items():
        if name == f"{prefix}columns":
            return range_problem(array, 0, width)
        if name == f"{prefix}starts":
            return pointer_problem(array, array_length(metadata, f"{prefix}columns"))
    if name == "names_offsets":
        return pointer_problem(array, array_length(metadata, "names_text"))
    if name == "labels":
        num_values = array_length(metadata, LABEL_VALUES)
        num_labels = metadata["num_classes"] if num_values is None else num_values
        return range_problem(array, -1, num_labels)
    if name == LABEL_VALUES:
        return None if np.isfinite(array).all() else "not all numbers are finite"
    return range_problem(array, -1, 3) if name == "splits" else None


def range_problem(array: np.ndarray, low: int, high: int) -> str | None:
    """Whether an integer is below `low` or not below `high`."""
    if array.dtype.kind not in "iu":
        return f"its type is {array.dtype}"
    flat = array.reshape(-1)
    for begin in range(0, len(flat), ELEMENTS_AT_ONCE):
        chunk = flat[begin : begin + ELEMENTS_AT_ONCE]
        if chunk.min() < low or chunk.max() >= high:
            return f"a value is not from {low} to {high - 1}"
    return None


def pointer_problem(array: np.ndarray, end: int | None) -> str | None:
    """Whether pointers do not rise from 0 to the length of what they point into."""
    if array.dtype != np.int64:
        return f"its type is {array.dtype}"
    if array[0] != 0 or (end is not None and array[-1] != end):
        return "its first or last pointer is wrong"
    for begin in range(0, len(array), ELEMENTS_AT_ONCE):
        chunk = array[begin : begin + ELEMENTS_AT_ONCE + 1]
        if (chunk[1:] < chunk[:-1]).any():
            return "a pointer is smaller than the one before"
    return None


def file_version(path: Path) -> list[int]:
    """Numbers that change if a file is written again or copied."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def record_checked(folder: Path, versions: dict[str, list[int]]) -> None:
    """Record the file versions of arrays that were checked, by name."""
    path = list_of_checked(folder)
    write_cache(path, json.dumps(read_json_object(path) | versions))


def list_of_checked(folder: Path) -> Path:
    """The file in the cache folder that lists the checked arrays of a graph folder."""
    key = json_hash({"folder": str(folder.absolute())})
    return cache_dir() / "checked" / f"{key}.json"
