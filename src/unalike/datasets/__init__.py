"""Datasets (placeholder until merge)."""

from pathlib import Path

from unalike.store import Stored, open_graph


def find(name: str, data: Path | None = None) -> Stored:
    """Find."""
    return open_graph(Path(name))
