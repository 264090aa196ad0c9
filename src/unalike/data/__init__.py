"""Graphs and tasks: CSR adjacency, labels, splits, metrics, stored graph folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unalike.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unalike.data.adjacency import Adjacency as Adjacency
    from unalike.data.calibration import Reliability as Reliability
    from unalike.data.calibration import (
        expected_calibration_error as expected_calibration_error,
    )
    from unalike.data.calibration import temperature as temperature
    from unalike.data.graph import Graph as Graph
    from unalike.data.metrics import METRICS as METRICS
    from unalike.data.metrics import Metric as Metric
    from unalike.data.sharding import shard_graph as shard_graph
    from unalike.data.split import Split as Split
    from unalike.data.split import random_splits as random_splits
    from unalike.data.store import StoredGraph as StoredGraph
    from unalike.data.store import open_graph as open_graph
    from unalike.data.store import save_graph as save_graph
    from unalike.data.store import verify_graph as verify_graph
    from unalike.data.task import Curve as Curve
    from unalike.data.task import Solution as Solution
    from unalike.data.task import Task as Task

__getattr__, __dir__, EXPORTS = lazy_exports(__name__, Path(__file__))
