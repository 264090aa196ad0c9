"""Dense copies of sparse matrices, made where tensor cores multiply them faster."""

import pytest
import torch

from unalike import Adjacency
from unalike.nn import sparse
from unalike.nn.sparse import MIN_COLUMNS, dense_if_faster


def random_matrix(density, *, weighted=False):
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.rand(60, 40, generator=generator) < density).nonzero().T
    values = torch.randn(len(source), generator=generator) if weighted else None
    return Adjacency.from_edges(source, target, shape=(60, 40), values=values)


def other(width=MIN_COLUMNS, dtype=torch.float32):
    return torch.zeros(40, width, dtype=dtype)


@pytest.fixture
def tf32(monkeypatch):
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dense_copy_has_the_same_values_and_is_made_once(weighted, dtype):
    rows = random_matrix(0.3, weighted=weighted)
    dense = dense_if_faster(rows, other(dtype=dtype))
    assert dense.dtype == dtype
    assert torch.equal(dense, rows.to_dense().to(dtype))
    assert dense_if_faster(rows, other(dtype=dtype)) is dense


@pytest.mark.usefixtures("tf32")
def test_sparse_matrices_and_narrow_products_stay_sparse():
    assert dense_if_faster(random_matrix(0.02), other()) is None
    assert dense_if_faster(random_matrix(0.3), other(width=MIN_COLUMNS - 1)) is None


def test_exact_products_stay_sparse():
    assert dense_if_faster(random_matrix(0.3), other()) is None


@pytest.mark.usefixtures("tf32")
def test_no_dense_copy_is_made_where_memory_is_short(monkeypatch):
    monkeypatch.setattr(sparse, "free_memory", lambda device: 1000)
    assert dense_if_faster(random_matrix(0.3), other()) is None
