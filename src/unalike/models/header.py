"""Header: what a model file says of itself, read before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

from unalike.errors import UserError

MOST_BYTES = 100_000_000
"""Of a header; the readers of safetensors accept no more."""

KINDS = {
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
    if size < 10 or length > MOST_BYTES or first[8:] != b"{":
        found = (kind for start, kind in KINDS.items() if first.startswith(start))
        kind = next(found, "no model of unalike, or a damaged one")
        raise UserError(f"{path} is {kind}.")
    if length > size - 8:
        raise UserError(f"{path} is truncated: it ends within its header.")
    try:
        header = json.loads(b"{" + file.read(length - 1))
    except (ValueError, RecursionError):
        raise UserError(f"{path} is damaged: its header is not JSON.") from None
    return header, 8 + length
