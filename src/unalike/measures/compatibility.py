"""The compatibility matrix: where the edges of each class end."""

import numpy as np

from unalike.measures.tally import Matrix, Tally


def compatibility(tally: Tally) -> Matrix:
    """The share of the edges from class k (row) that end in class l (column).

    H_kl = |{(u, v) in E: k_u = k, k_v = l}| / |{(u, v) in E: k_u = k}|; rows sum to 1.
    A class without edges has a row that is not a number (Zhu et al. 2021,
    arXiv:2009.13566).
    """
    out = tally.edges.sum(1, keepdims=True)
    return np.divide(
        tally.edges, out, out=np.full_like(tally.edges, np.nan), where=out > 0
    )
