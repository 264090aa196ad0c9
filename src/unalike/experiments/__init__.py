"""Experiments: datasets, splits and methods in, results out."""

from __future__ import annotations
