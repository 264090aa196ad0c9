"""Table of samplers by option name."""

from __future__ import annotations

from unalike.samplers.base import FullBatch, RandomPartSampler, Sampler
from unalike.samplers.clusters import ClusterSampler
from unalike.samplers.graphsaint import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
)
from unalike.samplers.neighbours import NeighbourSampler
from unalike.samplers.rows import RowSampler

SAMPLERS: dict[str, type[Sampler]] = {
    "full": FullBatch,
    "rows": RowSampler,
    "clusters": ClusterSampler,
    "random-parts": RandomPartSampler,
    "saint-nodes": GraphSAINTNodeSampler,
    "saint-edges": GraphSAINTEdgeSampler,
    "saint-walks": GraphSAINTRandomWalkSampler,
    "neighbours": NeighbourSampler,
}
