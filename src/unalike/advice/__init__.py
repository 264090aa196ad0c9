"""Advice: which method to try on a graph, and why."""

from unalike.advice.advice import Advice, advise

__all__ = ["Advice", "advise"]
