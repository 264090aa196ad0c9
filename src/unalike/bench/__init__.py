"""Benches: speed and memory, measured side by side in one run."""

from __future__ import annotations
