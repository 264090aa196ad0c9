"""Training: one loop over a stack of runs that share a graph."""

from __future__ import annotations
