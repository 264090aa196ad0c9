"""Layers, datasets and loaders for PyTorch Geometric on the kernels of unalike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unalike.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unalike.pyg.attention import GATConv as GATConv
    from unalike.pyg.attention import GATv2Conv as GATv2Conv
    from unalike.pyg.datasets import dataset as dataset
    from unalike.pyg.gcn import APPNP as APPNP
    from unalike.pyg.gcn import GCN2Conv as GCN2Conv
    from unalike.pyg.gcn import GCNConv as GCNConv
    from unalike.pyg.gcn import MixHopConv as MixHopConv
    from unalike.pyg.gcn import SGConv as SGConv
    from unalike.pyg.linkx import LINKX as LINKX
    from unalike.pyg.loader import RowLoader as RowLoader
    from unalike.pyg.replacement import accelerate as accelerate
    from unalike.pyg.sage_gin import GINConv as GINConv
    from unalike.pyg.sage_gin import SAGEConv as SAGEConv
    from unalike.pyg.to_adjacency import ToAdjacency as ToAdjacency

__getattr__, __dir__, EXPORTS = lazy_exports(__name__, Path(__file__))
