"""Tables and figures of results, datasets and benchmarks."""

from __future__ import annotations
