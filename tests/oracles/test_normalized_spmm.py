"""The normalised sparse product against dense algebra: values, gradients, vmap."""

import pytest
import reference_kernels as reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap

from unalike import Adjacency
from unalike.nn import cpu
from unalike.nn.normalized_adjacency import NormalizedSpMM
from unalike.nn.sparse import NormalizedCSR


@st.composite
def cases(draw):
    """A normalised adjacency, its dense form, x and a residual."""
    nodes, width = draw(st.integers(1, 8)), draw(st.integers(0, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    density = draw(st.sampled_from([0.0, 0.3, 0.9]))
    mask = torch.rand(nodes, nodes, generator=generator) < density
    weights = torch.randn(nodes, nodes, generator=generator)
    dense = (weights if draw(st.booleans()) else torch.ones(nodes, nodes)) * mask
    source, target = dense.nonzero().T
    rows = Adjacency.from_edges(
        source, target, shape=(nodes, nodes), values=dense[source, target]
    )
    scale, self_loop_weight = torch.rand(2, nodes, generator=generator)
    exact = scale.double()
    matrix = dense.double() + self_loop_weight.double().diag()
    matrix = exact[:, None] * matrix * exact
    pair = torch.randn(2, nodes, width, generator=generator, dtype=torch.float64)
    return NormalizedCSR(rows, scale, self_loop_weight), matrix, *pair


def column_scales(x, smallest=0.3):
    """A different scale for each column."""
    return torch.linspace(smallest, 1, x.shape[1] + 1, dtype=torch.float64)[:-1]


@given(cases(), st.sampled_from([1.0, 0.9, 0.25]), st.booleans())
def test_values_and_gradients(case, smallest, with_residual):
    adjacency, matrix, x, residual = case
    column_scale = column_scales(x, smallest)
    actual, expected = (
        [tensor.clone().requires_grad_() for tensor in (x, residual)] for _ in range(2)
    )
    out = NormalizedSpMM.apply(
        adjacency, column_scale, actual[0], actual[1] if with_residual else None
    )
    dense_out = column_scale * (matrix @ expected[0]) + with_residual * expected[1]
    torch.testing.assert_close(out, dense_out, rtol=1e-6, atol=1e-7)
    grad_out = torch.randn_like(out)
    out.backward(grad_out)
    dense_out.backward(grad_out)
    for one, other in list(zip(actual, expected, strict=True))[: 1 + with_residual]:
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=1e-7)


@given(cases(), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_cpu_kernel_equals_the_reference(case, dtype):
    adjacency, _, x, residual = case
    x, residual = x.to(dtype), residual.to(dtype)
    tolerance = {"rtol": 2**-7, "atol": 1e-5} if dtype == torch.bfloat16 else {}
    scale = column_scales(x)
    for options in ((), (scale,), (scale, residual), (None, residual)):
        actual, expected = (
            kernels.normalized_spmm(adjacency, x, *options)
            for kernels in (cpu, reference)
        )
        assert actual.dtype == expected.dtype == dtype
        torch.testing.assert_close(actual, expected, **tolerance)


@given(cases())
@settings(max_examples=20)
def test_first_and_second_gradients(case):
    adjacency, _, x, residual = case
    inputs = (x.requires_grad_(), residual.requires_grad_())

    def propagate(*tensors):
        return NormalizedSpMM.apply(adjacency, column_scales(x), *tensors)

    assert torch.autograd.gradcheck(propagate, inputs)
    assert torch.autograd.gradgradcheck(propagate, inputs)


@given(cases(), st.integers(0, 2), st.booleans(), st.booleans())
@settings(max_examples=40)
def test_vmap_equals_a_loop(case, dim, shared_residual, shared_scale):
    adjacency, _, x, residual = case
    stack = torch.stack([x, 2 * x, x - 1], dim)
    residuals = torch.stack([residual, -residual, residual + 1], dim)
    residuals = residual if shared_residual else residuals
    scales = torch.stack([column_scales(x, smallest) for smallest in (0.0, 0.3, 0.7)])
    scales = scales[0] if shared_scale else scales

    def propagate(column_scale, x, residual):
        return NormalizedSpMM.apply(adjacency, column_scale, x, residual)

    dims = (None if shared_scale else 0, dim, None if shared_residual else dim)
    actual = vmap(propagate, dims)(scales, stack, residuals)
    runs = zip(
        [scales] * 3 if shared_scale else scales,
        stack.unbind(dim),
        [residual] * 3 if shared_residual else residuals.unbind(dim),
        strict=True,
    )
    expected = [propagate(*run) for run in runs]
    torch.testing.assert_close(actual, torch.stack(expected))


def test_nothing_of_the_size_of_the_nodes_is_saved_for_backward():
    sizes = []
    rows = Adjacency.from_edges(
        torch.tensor([0, 1]), torch.tensor([1, 2]), shape=(3, 3)
    )
    adjacency = NormalizedCSR(rows, torch.rand(3), torch.ones(3))
    x = torch.randn(3, 4, requires_grad=True)
    column_scale = torch.full((4,), 0.9)

    def record(tensor):
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        out = NormalizedSpMM.apply(adjacency, None, x, None)
        NormalizedSpMM.apply(adjacency, column_scale, out, x)
    assert sizes == [column_scale.numel()]


@pytest.mark.parametrize("kernels", [cpu, reference])
def test_slices_of_wider_matrices(kernels):
    rows = Adjacency.from_edges(torch.arange(4), torch.arange(4).flip(0), shape=(4, 4))
    adjacency = NormalizedCSR(rows, torch.rand(4), torch.zeros(4))
    wide = torch.randn(4, 9)
    column_scale = torch.full((4,), 0.5)
    actual = kernels.normalized_spmm(adjacency, wide[:, 3:7], column_scale, wide[:, 5:])
    expected = kernels.normalized_spmm(
        adjacency, wide[:, 3:7].contiguous(), column_scale, wide[:, 5:].contiguous()
    )
    assert torch.equal(actual, expected)
