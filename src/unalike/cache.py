"""The cache: the user's own folder for what can be made again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where that folder is."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "unalike"
