"""Measures of homophily, and what each counts."""

from unalike.measures.convention import STORED, Convention
from unalike.measures.measure import measure
from unalike.measures.paper import CONVENTIONS, paper_conventions
from unalike.measures.table import MEASURES

__all__ = [
    "CONVENTIONS",
    "MEASURES",
    "STORED",
    "Convention",
    "measure",
    "paper_conventions",
]
