"""Saved models, predictions for new nodes, explanations and `NodeClassifier`."""

from __future__ import annotations
