"""PyTorch Geometric, whose own import warns of what it will have to change."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch_geometric.data import Data
    from torch_geometric.nn.models.linkx import LINKX

Peer = LINKX
"""The same method by other people."""

__all__ = ["Data", "Peer"]
