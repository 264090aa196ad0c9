"""The sparse product against dense algebra: values, gradients, vmap, bfloat16."""

import pytest
import torch
from graphs import HAND_DRAWN
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap

from unalike import Adjacency
from unalike.nn import cpu
from unalike.nn.sparse import SpMM


@st.composite
def factors(draw):
    """A sparse matrix, its dense form, and a dense matrix to multiply."""
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    width = draw(st.integers(0, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    density = draw(st.sampled_from([0.0, 0.2, 0.9]))
    mask = torch.rand(rows, columns, generator=generator) < density
    weights = torch.randn(rows, columns, generator=generator)
    dense = (weights if draw(st.booleans()) else torch.ones(rows, columns)) * mask
    source, target = dense.nonzero().T
    sparse = Adjacency.from_edges(
        source, target, shape=(rows, columns), values=dense[source, target]
    )
    return sparse, dense.double(), torch.randn(columns, width, generator=generator)


@given(factors())
def test_values_and_gradients(case):
    sparse, dense, right = case
    actual, expected = (right.double().clone().requires_grad_() for _ in range(2))
    product = sparse @ actual
    assert torch.allclose(product, dense @ expected, atol=1e-12)
    grad_out = torch.randn_like(product)
    product.backward(grad_out)
    (dense @ expected).backward(grad_out)
    assert torch.allclose(actual.grad, expected.grad, atol=1e-12)


@given(factors())
def test_single_precision(case):
    sparse, dense, right = case
    product = sparse @ right
    assert product.dtype == torch.float32
    assert torch.allclose(product, (dense @ right.double()).float(), atol=1e-5)


@given(factors())
def test_bfloat16_is_summed_in_float32_and_rounded_once(case):
    sparse, dense, right = case
    half = right.bfloat16()
    product = sparse @ half
    assert product.dtype == torch.bfloat16
    expected = (dense @ half.double()).float()
    assert torch.allclose(product.float(), expected, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("name", ["path", "directed", "first node alone", "no edges"])
def test_gradcheck(name):
    rows = HAND_DRAWN[name].adjacency
    dense = torch.randn(rows.num_cols, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(rows.__matmul__, dense)
    assert torch.autograd.gradgradcheck(rows.__matmul__, dense)


@given(factors(), st.integers(0, 2))
@settings(max_examples=30)
def test_vmap_equals_a_loop(case, dim):
    sparse, _, right = case
    stack = torch.stack([right, 2 * right, right - 1], dim)

    def product(dense):
        return SpMM.apply(sparse, dense)

    actual = vmap(product, dim)(stack)
    expected = torch.stack([product(dense) for dense in stack.unbind(dim)])
    assert torch.allclose(actual, expected, atol=1e-6)


@given(factors(), st.integers(1, 6))
@settings(max_examples=50)
def test_more_entries_than_fit_into_one_call(case, limit):
    sparse, dense, right = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "MAX_NNZ_PER_CALL", limit)
        product = cpu.spmm(sparse, right.double())
    assert torch.allclose(product, dense @ right.double(), atol=1e-12)
