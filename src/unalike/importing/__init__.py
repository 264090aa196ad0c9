"""`import_graph`, `ImportOptions`."""

from __future__ import annotations
