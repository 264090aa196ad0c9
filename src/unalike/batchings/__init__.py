"""Batchings: the ways to cut a graph into batches, by name."""

from unalike.batchings.batching import Batching
from unalike.batchings.clusters import Clusters
from unalike.batchings.full import Full
from unalike.batchings.neighbours import Neighbours
from unalike.batchings.random_parts import RandomParts
from unalike.batchings.rows import Rows
from unalike.batchings.saint_edges import SaintEdges
from unalike.batchings.saint_nodes import SaintNodes
from unalike.batchings.saint_walks import SaintWalks

BATCHINGS: dict[str, type[Batching]] = {
    "full": Full,
    "rows": Rows,
    "clusters": Clusters,
    "random-parts": RandomParts,
    "saint-nodes": SaintNodes,
    "saint-edges": SaintEdges,
    "saint-walks": SaintWalks,
    "neighbours": Neighbours,
}
