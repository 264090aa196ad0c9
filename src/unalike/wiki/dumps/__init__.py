"""`collect`."""

from __future__ import annotations

from unalike.wiki.dumps.build import collect

__all__ = ["collect"]
