"""The sparse product against dense algebra: values, gradients, stacks, halves."""

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
    """Sparse rows, the same as a dense matrix, and a dense matrix to multiply."""
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    width = draw(st.integers(0, 5))
    chance = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    share = draw(st.sampled_from([0.0, 0.2, 0.9]))
    there = torch.rand(rows, columns, generator=chance) < share
    weights = torch.randn(rows, columns, generator=chance)
    dense = (weights if draw(st.booleans()) else torch.ones(rows, columns)) * there
    source, target = dense.nonzero().T
    sparse = Adjacency.from_edges(
        source, target, shape=(rows, columns), values=dense[source, target]
    )
    return sparse, dense.double(), torch.randn(columns, width, generator=chance)


@given(factors())
def test_values_and_gradients(case):
    sparse, dense, right = case
    mine, wanted = (right.double().clone().requires_grad_() for _ in range(2))
    product = sparse @ mine
    assert torch.allclose(product, dense @ wanted, atol=1e-12)
    slope = torch.randn_like(product)
    product.backward(slope)
    (dense @ wanted).backward(slope)
    assert torch.allclose(mine.grad, wanted.grad, atol=1e-12)


@given(factors())
def test_single_precision(case):
    sparse, dense, right = case
    found = sparse @ right
    assert found.dtype == torch.float32
    assert torch.allclose(found, (dense @ right.double()).float(), atol=1e-5)


@given(factors())
def test_halves_are_summed_in_single_and_rounded_once(case):
    sparse, dense, right = case
    half = right.bfloat16()
    found = sparse @ half
    assert found.dtype == torch.bfloat16
    wanted = (dense @ half.double()).float()
    assert torch.allclose(found.float(), wanted, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("name", ["path", "directed", "first node alone", "no edges"])
def test_gradcheck(name):
    rows = HAND_DRAWN[name].adjacency
    dense = torch.randn(rows.width, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(rows.__matmul__, dense)
    assert torch.autograd.gradgradcheck(rows.__matmul__, dense)


@given(factors(), st.integers(0, 2))
@settings(max_examples=30)
def test_a_stack_equals_a_loop(case, place):
    sparse, _, right = case
    stack = torch.stack([right, 2 * right, right - 1], place)

    def product(dense):
        return SpMM.apply(sparse, dense)

    found = vmap(product, place)(stack)
    wanted = torch.stack([product(one) for one in stack.unbind(place)])
    assert torch.allclose(found, wanted, atol=1e-6)


@given(factors(), st.integers(1, 6))
@settings(max_examples=50)
def test_more_entries_than_fit_into_one_call(case, limit):
    sparse, dense, right = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "ENTRIES_AT_ONCE", limit)
        found = cpu.spmm(sparse, right.double())
    assert torch.allclose(found, dense @ right.double(), atol=1e-12)
