"""Sparse rows against dense algebra."""

import torch

from unalike import Adjacency


def test_rows_are_sorted_and_repeats_merge():
    rows = Adjacency.from_edges(
        torch.tensor([2, 0, 2, 2]), torch.tensor([1, 3, 0, 1]), shape=(4, 4)
    )
    assert rows.starts.tolist() == [0, 1, 1, 3, 3]
    assert rows.columns.tolist() == [3, 0, 1]
