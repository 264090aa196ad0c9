"""Attention against its plain form and finite differences: values, slopes, stacks."""

import pytest
import torch
from graphs import HAND_DRAWN
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap

from unalike import Adjacency
from unalike.nn import cpu, reference
from unalike.nn.attention import gat_aggregate


def drawn_inputs(nodes, heads, width, chance, *, spread=1.0):
    """Something to gather, and scores of both ends of edges."""
    shapes = [(nodes, heads, width), (nodes, heads), (nodes, heads)]
    return [
        spread * torch.randn(shape, generator=chance, dtype=torch.float64)
        for shape in shapes
    ]


@st.composite
def cases(draw):
    """A graph with loops, isolated nodes and one-way edges, and what is gathered."""
    nodes = draw(st.integers(1, 8))
    chance = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    share = draw(st.sampled_from([0.0, 0.2, 1.0]))
    ends = (torch.rand(nodes, nodes, generator=chance) < share).nonzero().T
    rows = Adjacency.from_edges(*ends, shape=(nodes, nodes))
    heads, width = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    spread = draw(st.sampled_from([0.1, 1.0, 100.0]))
    return rows, drawn_inputs(nodes, heads, width, chance, spread=spread)


def slopes(found, inputs):
    pull = torch.linspace(-1, 2, found.numel(), dtype=found.dtype).view_as(found)
    return torch.autograd.grad(found, inputs, pull)


@given(cases())
def test_values_and_slopes_are_those_of_the_plain_form(case):
    rows, inputs = case
    inputs = [one.requires_grad_() for one in inputs]
    found, wanted = (
        gat_aggregate(rows, *inputs),
        reference.gat_forward(rows, *inputs)[0],
    )
    torch.testing.assert_close(found, wanted)
    for mine, theirs in zip(slopes(found, inputs), slopes(wanted, inputs), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-9)


@given(cases())
@settings(max_examples=30)
def test_log_sums_are_those_of_the_plain_form(case):
    rows, inputs = case
    found = cpu.gat_forward(rows, *inputs, learning=False)[1]
    torch.testing.assert_close(found, reference.gat_forward(rows, *inputs)[1])


def test_scoring_gives_the_bits_of_training():
    rows = HAND_DRAWN["directed"].adjacency
    inputs = drawn_inputs(4, 2, 3, torch.Generator().manual_seed(0))
    trained = gat_aggregate(rows, *(one.requires_grad_() for one in inputs))
    with torch.no_grad():
        assert torch.equal(gat_aggregate(rows, *inputs), trained)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_lower_precision(kind):
    chance = torch.Generator().manual_seed(0)
    inputs = [one.to(kind) for one in drawn_inputs(4, 3, 5, chance)]
    inputs = [one.requires_grad_() for one in inputs]
    rows = HAND_DRAWN["directed"].adjacency
    found = gat_aggregate(rows, *inputs)
    exact = [one.detach().double().requires_grad_() for one in inputs]
    wanted = reference.gat_forward(rows, *exact)[0]
    bounds = {"rtol": 0.02, "atol": 0.02} if kind == torch.bfloat16 else {}
    torch.testing.assert_close(found, wanted.to(kind), **bounds)
    for mine, theirs in zip(slopes(found, inputs), slopes(wanted, exact), strict=True):
        assert mine.dtype == kind
        torch.testing.assert_close(mine, theirs.to(kind), **bounds)


def test_weights_of_edges_count_for_nothing():
    rows = HAND_DRAWN["directed"].adjacency
    values = torch.arange(rows.num_entries) + 0.5
    other = Adjacency(rows.starts, rows.columns, rows.width, values)
    inputs = drawn_inputs(4, 2, 3, torch.Generator().manual_seed(0))
    assert torch.equal(gat_aggregate(rows, *inputs), gat_aggregate(other, *inputs))


@pytest.mark.parametrize(
    "name", ["path", "directed", "first node alone", "loops", "one node", "no edges"]
)
def test_gradcheck(name):
    rows = HAND_DRAWN[name].adjacency
    inputs = drawn_inputs(rows.width, 2, 3, torch.Generator().manual_seed(1))
    inputs = [one.requires_grad_() for one in inputs]
    assert torch.autograd.gradcheck(lambda *given: gat_aggregate(rows, *given), inputs)


@given(cases(), st.integers(0, 2), st.booleans())
@settings(max_examples=30)
def test_a_stack_equals_a_loop(case, place, shared):
    rows, (x, source, target) = case
    stacks = [
        torch.stack([one, 2 * one, one - 1], min(place, one.dim()))
        for one in (x, source)
    ]
    targets = target if shared else torch.stack([target, -target, 0 * target])
    given_stacks = [one.requires_grad_() for one in (*stacks, targets)]
    dims = (*(min(place, one.dim()) for one in (x, source)), None if shared else 0)
    found = vmap(lambda *one: gat_aggregate(rows, *one), dims)(*given_stacks)
    runs = [
        [
            one if dim is None else one.select(dim, run)
            for one, dim in zip(given_stacks, dims, strict=True)
        ]
        for run in range(3)
    ]
    wanted = torch.stack([gat_aggregate(rows, *run) for run in runs])
    torch.testing.assert_close(found, wanted)
    for mine, theirs in zip(
        slopes(found, given_stacks), slopes(wanted, given_stacks), strict=True
    ):
        torch.testing.assert_close(mine, theirs)
