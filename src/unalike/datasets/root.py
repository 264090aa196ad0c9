"""The data root: where raw files lie and where stored graphs go."""

import os
from pathlib import Path


def stored_folder(name: str, data: Path | None = None) -> Path:
    """The folder of a stored graph: under the data root where that can be written."""
    named = data or os.environ.get("UNALIKE_DATA")
    if named and os.access(named, os.W_OK):
        return Path(named) / "stored" / name
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "unalike" / "stored" / name
