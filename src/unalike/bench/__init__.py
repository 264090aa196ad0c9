"""Benchmarks of speed and memory beside other libraries, and of scaling."""

from __future__ import annotations
