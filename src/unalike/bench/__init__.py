"""Benchmarks of speed, memory and scaling, compared with other libraries."""

from __future__ import annotations
