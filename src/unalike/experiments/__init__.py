"""Runs, sweeps, hyperparameter search and the database of their results."""

from __future__ import annotations
