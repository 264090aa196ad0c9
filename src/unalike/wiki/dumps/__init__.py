"""Read the public dumps of a wiki into a collection of tables."""

from __future__ import annotations

from unalike.wiki.dumps.build import collect

__all__ = ["collect"]
