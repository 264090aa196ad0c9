"""Batchings: the ways to cut a graph into batches, by name."""

from unalike.batchings.batching import Batching
from unalike.batchings.full import Full

BATCHINGS: dict[str, type[Batching]] = {"full": Full}
