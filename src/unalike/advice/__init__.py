"""Advice: which method to try on a graph, and why."""

from __future__ import annotations

from unalike.advice.recommend import Advice, advise

__all__ = ["Advice", "advise"]
