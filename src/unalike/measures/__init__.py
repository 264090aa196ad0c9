"""Homophily measures of graphs."""

from __future__ import annotations

from unalike.measures.edge_statistics import (
    CONVENTIONS,
    STORED,
    Convention,
    paper_conventions,
)
from unalike.measures.measure import measure
from unalike.measures.registry import MEASURES

__all__ = [
    "CONVENTIONS",
    "MEASURES",
    "STORED",
    "Convention",
    "measure",
    "paper_conventions",
]
