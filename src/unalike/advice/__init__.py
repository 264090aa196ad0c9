"""Recommend methods for a graph."""

from __future__ import annotations

from unalike.advice.recommend import Advice, advise

__all__ = ["Advice", "advise"]
