"""Datasets of unalike as `torch_geometric.data.Data`, with the masks of all splits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph
from unalike.data.split import Split, stack_codes
from unalike.data.store import GraphSource
from unalike.datasets import find
from unalike.errors import require

if TYPE_CHECKING:
    from unalike.pyg.graph_dataset import GraphDataset

MASKS = ("train_mask", "val_mask", "test_mask")
"""Names of the parts of a split in PyTorch Geometric, in the order of their codes."""


def dataset(
    source: str | Path | Graph,
    *,
    splits: Sequence[Split] | None = None,
    sparse: bool = False,
    prepared: bool = False,
    root: Path | None = None,
) -> GraphDataset:
    """A dataset, a twin, a stored graph or a `Graph` as PyTorch Geometric's `Data`.

    It has `x`, `edge_index`, `y` (-1 where the class is unknown), `train_mask`,
    `val_mask` and `test_mask` of shape [nodes, splits], `num_classes`, and
    `edge_weight` where edges have weights; `name`, `metric` (its name), `citation` and
    `licence` are strings, empty where unknown. It is also a dataset of one graph:
    `len(dataset)` is 1 and `dataset[0]` a plain `Data`. All tensors are copies.

    Args:
        source: The name of a dataset or twin, the folder of a stored graph, or a
            `Graph`.
        splits: Splits instead of those of the dataset; a `Graph` has none by itself.
        sparse: Give `x` as a `torch.sparse` CSR matrix. By default it is dense, as in
            the datasets of PyTorch Geometric.
        prepared: Give the graph as the methods of unalike get it, mostly undirected.
            By default a directed edge is in `edge_index` once, as stored, and an
            undirected one in both directions.
        root: Folder of the raw files and stored graphs.
    """
    require("torch_geometric", "pyg", "unalike.pyg.dataset needs torch-geometric")
    from unalike.pyg.graph_dataset import GraphDataset

    if isinstance(source, Graph):
        graph, own_splits, description = source, [], _description(None)
    else:
        found = find(str(source), root)
        graph = found.prepared() if prepared else found.load()
        own_splits, description = found.splits(), _description(found)
    rows = graph.adjacency[:]
    weight = {} if rows.values is None else {"edge_weight": rows.values.clone()}
    return GraphDataset(
        x=_features(graph.features, sparse=sparse),
        edge_index=rows.edge_index,
        y=graph.labels.clone(),
        num_nodes=graph.num_nodes,
        num_classes=graph.num_classes,
        **weight,
        **split_masks(own_splits if splits is None else splits, graph.num_nodes),
        **description,
    )


def split_masks(
    splits: Sequence[Split], num_nodes: int
) -> dict[str, Bool[Tensor, "nodes splits"]]:
    """A mask for each part of the splits, with a column for each split."""
    codes = torch.from_numpy(np.ascontiguousarray(stack_codes(splits, num_nodes).T))
    return {name: codes == part for part, name in enumerate(MASKS)}


def _description(source: GraphSource | None) -> dict[str, str]:
    """Name, metric, citation and licence; empty where a source does not have them."""
    if source is None:
        return dict.fromkeys(("name", "metric", "citation", "licence"), "")
    stored: dict[str, str] = getattr(source, "metadata", {})
    return {
        "name": source.name,
        "metric": source.metric.name,
        "citation": getattr(source, "citation", stored.get("citation", "")),
        "licence": getattr(source, "licence", stored.get("licence", "")),
    }


def _features(features: Features, *, sparse: bool) -> Float[Tensor, "nodes features"]:
    """A copy of the features as float32, dense or in CSR format."""
    if not sparse:
        return features.to_dense().to(torch.float32, copy=True)
    if not isinstance(features, Adjacency):
        features = Adjacency.from_dense(features.float())
    return features.to_torch_csr().clone()
