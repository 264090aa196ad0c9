"""Rows that are written with their zeros, and those that are not."""

import pytest
import torch

from unalike import Adjacency
from unalike.nn import sparse
from unalike.nn.sparse import MIN_COLUMNS, dense_if_faster


def rows_of(share, *, weighted=False):
    draw = torch.Generator().manual_seed(0)
    source, target = (torch.rand(60, 40, generator=draw) < share).nonzero().T
    values = torch.randn(len(source), generator=draw) if weighted else None
    return Adjacency.from_edges(source, target, shape=(60, 40), values=values)


def other(width=MIN_COLUMNS, dtype=torch.float32):
    return torch.zeros(40, width, dtype=dtype)


@pytest.fixture
def rounding(monkeypatch):
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")


@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_crowded_rows_are_those_with_zeros(weighted, dtype):
    rows = rows_of(0.3, weighted=weighted)
    found = dense_if_faster(rows, other(dtype=dtype))
    assert found.dtype == dtype
    assert torch.equal(found, rows.to_dense().to(dtype))
    assert dense_if_faster(rows, other(dtype=dtype)) is found


@pytest.mark.usefixtures("rounding")
def test_sparse_rows_and_narrow_products_are_left_alone():
    assert dense_if_faster(rows_of(0.02), other()) is None
    assert dense_if_faster(rows_of(0.3), other(width=MIN_COLUMNS - 1)) is None


def test_exact_products_are_left_alone():
    assert dense_if_faster(rows_of(0.3), other()) is None


@pytest.mark.usefixtures("rounding")
def test_zeros_that_would_take_too_much_room_are_not_written(monkeypatch):
    monkeypatch.setattr(sparse, "free_memory", lambda device: 1000)
    assert dense_if_faster(rows_of(0.3), other()) is None
