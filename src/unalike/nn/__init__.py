"""Layers for sparse inputs and graphs, sparse products, kernels and optimizers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unalike.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unalike.nn.attention import GATLayers as GATLayers
    from unalike.nn.jumping_knowledge import ConcatJump as ConcatJump
    from unalike.nn.jumping_knowledge import LSTMJump as LSTMJump
    from unalike.nn.jumping_knowledge import MaxJump as MaxJump
    from unalike.nn.linear import ConcatResidual as ConcatResidual
    from unalike.nn.linear import Dropout as Dropout
    from unalike.nn.mlp import MLP as MLP
    from unalike.nn.mlp import layer_sizes as layer_sizes
    from unalike.nn.norm import NormActDrop as NormActDrop
    from unalike.nn.norm import NormActDropLinear as NormActDropLinear
    from unalike.nn.normalized_adjacency import GCNNorm as GCNNorm
    from unalike.nn.normalized_adjacency import (
        NormalizedAdjacency as NormalizedAdjacency,
    )
    from unalike.nn.sparse_linear import DenseLinear as DenseLinear
    from unalike.nn.sparse_linear import InputLinear as InputLinear
    from unalike.nn.sparse_linear import SparseLinear as SparseLinear

__getattr__, __dir__, EXPORTS = lazy_exports(__name__, Path(__file__))
