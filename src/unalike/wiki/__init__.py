"""Read a wiki by its API or its dumps, and build a graph of its articles."""

from __future__ import annotations
