"""GAT attention against the reference and finite differences, with vmap."""

import pytest
import reference_kernels as reference
import torch
from graphs import HAND_DRAWN
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap

from unalike import Adjacency
from unalike.nn import cpu
from unalike.nn.attention import gat_aggregate


def random_inputs(nodes, heads, width, generator, *, scale=1.0):
    """Features, and the scores of both ends of edges."""
    shapes = [(nodes, heads, width), (nodes, heads), (nodes, heads)]
    return [
        scale * torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in shapes
    ]


@st.composite
def cases(draw):
    """A directed graph with self-loops and isolated nodes, and inputs."""
    nodes = draw(st.integers(1, 8))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    density = draw(st.sampled_from([0.0, 0.2, 1.0]))
    ends = (torch.rand(nodes, nodes, generator=generator) < density).nonzero().T
    rows = Adjacency.from_edges(*ends, shape=(nodes, nodes))
    heads, width = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    scale = draw(st.sampled_from([0.1, 1.0, 100.0]))
    return rows, random_inputs(nodes, heads, width, generator, scale=scale)


def gradients(out, inputs):
    grad_out = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
    return torch.autograd.grad(out, inputs, grad_out)


def assert_close_gradients(actual, expected, **tolerance):
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **tolerance)


@given(cases())
@pytest.mark.long
def test_values_and_gradients_are_those_of_the_reference(case):
    rows, inputs = case
    inputs = [tensor.requires_grad_() for tensor in inputs]
    actual = gat_aggregate(rows, *inputs)
    expected = reference.gat_forward(rows, *inputs)[0]
    torch.testing.assert_close(actual, expected)
    assert_close_gradients(
        gradients(actual, inputs), gradients(expected, inputs), rtol=1e-7, atol=1e-9
    )


@given(cases())
@settings(max_examples=30)
def test_logsumexp_is_that_of_the_reference(case):
    rows, inputs = case
    actual = cpu.gat_forward(rows, *inputs, needs_grad=False)[1]
    torch.testing.assert_close(actual, reference.gat_forward(rows, *inputs)[1])


def test_output_without_gradients_has_the_same_bits():
    rows = HAND_DRAWN["directed"].adjacency
    inputs = random_inputs(4, 2, 3, torch.Generator().manual_seed(0))
    trained = gat_aggregate(rows, *(tensor.requires_grad_() for tensor in inputs))
    with torch.no_grad():
        assert torch.equal(gat_aggregate(rows, *inputs), trained)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision(dtype):
    generator = torch.Generator().manual_seed(0)
    inputs = [tensor.to(dtype) for tensor in random_inputs(4, 3, 5, generator)]
    inputs = [tensor.requires_grad_() for tensor in inputs]
    rows = HAND_DRAWN["directed"].adjacency
    actual = gat_aggregate(rows, *inputs)
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    expected = reference.gat_forward(rows, *exact)[0]
    bounds = {"rtol": 0.02, "atol": 0.02} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(actual, expected.to(dtype), **bounds)
    pairs = zip(gradients(actual, inputs), gradients(expected, exact), strict=True)
    for one, other in pairs:
        assert one.dtype == dtype
        torch.testing.assert_close(one, other.to(dtype), **bounds)


def test_edge_weights_are_ignored():
    rows = HAND_DRAWN["directed"].adjacency
    values = torch.arange(rows.nnz) + 0.5
    weighted = Adjacency(rows.indptr, rows.indices, rows.num_cols, values)
    inputs = random_inputs(4, 2, 3, torch.Generator().manual_seed(0))
    assert torch.equal(gat_aggregate(rows, *inputs), gat_aggregate(weighted, *inputs))


@pytest.mark.parametrize(
    "name", ["path", "directed", "first node alone", "loops", "one node", "no edges"]
)
def test_gradcheck(name):
    rows = HAND_DRAWN[name].adjacency
    inputs = random_inputs(rows.num_cols, 2, 3, torch.Generator().manual_seed(1))
    inputs = [tensor.requires_grad_() for tensor in inputs]
    assert torch.autograd.gradcheck(
        lambda *tensors: gat_aggregate(rows, *tensors), inputs
    )


@given(cases(), st.integers(0, 2), st.booleans())
@settings(max_examples=30)
def test_vmap_equals_a_loop(case, dim, shared):
    rows, (x, source, target) = case
    stacks = [
        torch.stack([tensor, 2 * tensor, tensor - 1], min(dim, tensor.dim()))
        for tensor in (x, source)
    ]
    targets = target if shared else torch.stack([target, -target, 0 * target])
    inputs = [tensor.requires_grad_() for tensor in (*stacks, targets)]
    dims = (
        *(min(dim, tensor.dim()) for tensor in (x, source)),
        None if shared else 0,
    )
    actual = vmap(lambda *tensors: gat_aggregate(rows, *tensors), dims)(*inputs)
    runs = [
        [
            tensor if dim is None else tensor.select(dim, run)
            for tensor, dim in zip(inputs, dims, strict=True)
        ]
        for run in range(3)
    ]
    expected = torch.stack([gat_aggregate(rows, *run) for run in runs])
    torch.testing.assert_close(actual, expected)
    assert_close_gradients(gradients(actual, inputs), gradients(expected, inputs))
