"""Propagation against dense algebra: values, gradients, stacks, halves."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap

from unalike import Adjacency
from unalike.nn import cpu, reference
from unalike.nn.normalized_adjacency import NormalizedSpMM
from unalike.nn.sparse import NormalizedCSR


@st.composite
def spreads(draw):
    """A spread, the same as a dense matrix, and two dense matrices to go with it."""
    nodes, width = draw(st.integers(1, 8)), draw(st.integers(0, 5))
    chance = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    share = draw(st.sampled_from([0.0, 0.3, 0.9]))
    there = torch.rand(nodes, nodes, generator=chance) < share
    weights = torch.randn(nodes, nodes, generator=chance)
    dense = (weights if draw(st.booleans()) else torch.ones(nodes, nodes)) * there
    source, target = dense.nonzero().T
    rows = Adjacency.from_edges(
        source, target, shape=(nodes, nodes), values=dense[source, target]
    )
    scale, added = torch.rand(2, nodes, generator=chance)
    exact = scale.double()
    whole = exact[:, None] * (dense.double() + added.double().diag()) * exact
    pair = torch.randn(2, nodes, width, generator=chance, dtype=torch.float64)
    return NormalizedCSR(rows, scale, added), whole, *pair


def shares_of(dense, least=0.3):
    """What is kept of each column: of no two the same."""
    return torch.linspace(least, 1, dense.shape[1] + 1, dtype=torch.float64)[:-1]


@given(spreads(), st.sampled_from([1.0, 0.9, 0.25]), st.booleans())
def test_values_and_gradients(case, least, begun):
    spread, whole, dense, start = case
    keep = shares_of(dense, least)
    mine, wanted = (
        [part.clone().requires_grad_() for part in (dense, start)] for _ in range(2)
    )
    found = NormalizedSpMM.apply(spread, keep, mine[0], mine[1] if begun else None)
    algebra = keep * (whole @ wanted[0]) + begun * wanted[1]
    torch.testing.assert_close(found, algebra, rtol=1e-6, atol=1e-7)
    slope = torch.randn_like(found)
    found.backward(slope)
    algebra.backward(slope)
    for one, other in list(zip(mine, wanted, strict=True))[: 1 + begun]:
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=1e-7)


@given(spreads(), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_processor_cores_do_as_the_plain_kernel(case, kind):
    spread, _, dense, start = case
    dense, start = dense.to(kind), start.to(kind)
    tolerance = {"rtol": 2**-7, "atol": 1e-5} if kind == torch.bfloat16 else {}
    keep = shares_of(dense)
    for given_too in ((), (keep,), (keep, start), (None, start)):
        found, wanted = (
            kernels.propagate(spread, dense, *given_too) for kernels in (cpu, reference)
        )
        assert found.dtype == wanted.dtype == kind
        torch.testing.assert_close(found, wanted, **tolerance)


@given(spreads())
@settings(max_examples=20)
def test_slopes_of_slopes(case):
    spread, _, dense, start = case
    given_both = (dense.requires_grad_(), start.requires_grad_())

    def propagate(*both):
        return NormalizedSpMM.apply(spread, shares_of(dense), *both)

    assert torch.autograd.gradcheck(propagate, given_both)
    assert torch.autograd.gradgradcheck(propagate, given_both)


@given(spreads(), st.integers(0, 2), st.booleans(), st.booleans())
@settings(max_examples=40)
def test_a_stack_equals_a_loop(case, place, shared, alike):
    spread, _, dense, start = case
    stack = torch.stack([dense, 2 * dense, dense - 1], place)
    starts = start if shared else torch.stack([start, -start, start + 1], place)

    keeps = torch.stack([shares_of(dense, least) for least in (0.0, 0.3, 0.7)])
    keeps = keeps[0] if alike else keeps

    def propagate(keep, one, begun):
        return NormalizedSpMM.apply(spread, keep, one, begun)

    places = (None if alike else 0, place, None if shared else place)
    found = vmap(propagate, places)(keeps, stack, starts)
    begun = [start] * 3 if shared else starts.unbind(place)
    kept = [keeps] * 3 if alike else keeps
    members = zip(kept, stack.unbind(place), begun, strict=True)
    wanted = [propagate(*one) for one in members]
    torch.testing.assert_close(found, torch.stack(wanted))


def test_nothing_of_the_size_of_the_nodes_is_kept():
    sizes = []
    rows = Adjacency.from_edges(
        torch.tensor([0, 1]), torch.tensor([1, 2]), shape=(3, 3)
    )
    spread = NormalizedCSR(rows, torch.rand(3), torch.ones(3))
    dense = torch.randn(3, 4, requires_grad=True)
    keep = torch.full((4,), 0.9)

    def note(one):
        sizes.append(one.numel())
        return one

    with torch.autograd.graph.saved_tensors_hooks(note, lambda one: one):
        once = NormalizedSpMM.apply(spread, None, dense, None)
        NormalizedSpMM.apply(spread, keep, once, dense)
    assert sizes == [keep.numel()]


@pytest.mark.parametrize("kernels", [cpu, reference])
def test_slices_of_wider_matrices(kernels):
    rows = Adjacency.from_edges(torch.arange(4), torch.arange(4).flip(0), shape=(4, 4))
    spread = NormalizedCSR(rows, torch.rand(4), torch.zeros(4))
    wide = torch.randn(4, 9)
    keep = torch.full((4,), 0.5)
    found = kernels.propagate(spread, wide[:, 3:7], keep, wide[:, 5:])
    wanted = kernels.propagate(
        spread, wide[:, 3:7].contiguous(), keep, wide[:, 5:].contiguous()
    )
    assert torch.equal(found, wanted)
