"""PyTorch Geometric, whose own import warns of what it will have to change."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch_geometric.data import Data
    from torch_geometric.nn.models import LINKX

__all__ = ["LINKX", "Data"]
