"""Features: a number per node and feature, dense or sparse behind one interface."""

from typing import TypeAlias

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency, Ids

Features: TypeAlias = Float[Tensor, "nodes features"] | Adjacency
"""Both kinds know `x @ weight`, `x[ids]`, `x.shape`, `x.to(device)`, `x.to_dense()`."""


def as_features(given: Features | np.ndarray | scipy.sparse.sparray) -> Features:
    """Features as unalike holds them: sparse stays sparse, integers become floats."""
    if isinstance(given, Adjacency):
        return given
    if scipy.sparse.issparse(given):
        return Adjacency.from_scipy(given)
    tensor = torch.as_tensor(given)
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor if tensor.is_floating_point() else tensor.float()


def cut_features(
    features: Features, nodes: Ids | slice
) -> Float[Tensor, "cut features"] | Adjacency:
    """The features of some nodes; those of a slice share the memory of these."""
    if isinstance(features, Adjacency) or isinstance(nodes, slice):
        return features[nodes]
    # Twice as fast as brackets on rows that are spread over a mapped file.
    return features.index_select(0, nodes)
