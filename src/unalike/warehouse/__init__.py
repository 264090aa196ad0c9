"""Measures, views, scores and samples of graphs whose tables stay in their engine."""

from __future__ import annotations

from unalike.warehouse.measures import measure
from unalike.warehouse.sample import sample
from unalike.warehouse.scoring import score
from unalike.warehouse.views import views

__all__ = ["measure", "sample", "score", "views"]
