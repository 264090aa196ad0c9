"""GAT attention on a GPU against the reference: values, gradients, same bits."""

import pytest
import reference_kernels as reference
import torch

from unalike import Adjacency
from unalike.nn.attention import gat_aggregate

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

SHAPES = [(1, 1), (1, 5), (2, 8), (9, 12), (3, 33), (8, 32), (40, 8), (1, 300)]
BOUNDS = {torch.float64: 1e-9, torch.float32: 5e-5, torch.bfloat16: 5e-2}


def random_rows(nodes):
    """A directed graph with empty, ordinary and very long rows, and self-loops."""
    density = torch.rand(nodes, 1) ** 4
    density[0] = 0
    density[-1] = 1
    ends = (torch.rand(nodes, nodes) < density).nonzero().T
    return Adjacency.from_edges(*ends, shape=(nodes, nodes))


def output_and_gradients(attention, inputs, grad_out):
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    out = attention(*leaves)
    return out.detach(), *torch.autograd.grad(out, leaves, grad_out)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("nodes", [1, 7, 300])
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_is_that_of_the_reference(shape, nodes, dtype):
    torch.manual_seed(nodes)
    rows = random_rows(nodes)
    on_gpu = rows.to("cuda")
    sizes = [(nodes, *shape), (nodes, shape[0]), (nodes, shape[0]), (nodes, *shape)]
    *inputs, grad_out = (torch.randn(size).to(dtype) for size in sizes)
    expected = output_and_gradients(
        lambda *tensors: reference.gat_forward(rows, *tensors)[0],
        [tensor.double() for tensor in inputs],
        grad_out.double(),
    )
    actual = output_and_gradients(
        lambda *tensors: gat_aggregate(on_gpu, *tensors),
        [tensor.cuda() for tensor in inputs],
        grad_out.cuda(),
    )
    scale = max(float(tensor.norm()) for tensor in expected)
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == dtype
        error = (one.double().cpu() - other).norm()
        assert float(error) <= BOUNDS[dtype] * max(float(other.norm()), 0.01 * scale)


def test_output_without_gradients_is_the_same():
    rows = random_rows(300).to("cuda")
    shapes = [(300, 3, 12), (300, 3), (300, 3)]
    inputs = [torch.randn(shape, device="cuda") for shape in shapes]
    leaves = (tensor.clone().requires_grad_() for tensor in inputs)
    trained = gat_aggregate(rows, *leaves)
    with torch.no_grad():
        torch.testing.assert_close(gat_aggregate(rows, *inputs), trained)


def test_large_scores_stay_finite():
    rows = random_rows(50).to("cuda")
    x = torch.randn(50, 2, 4, device="cuda", requires_grad=True)
    source, target = (1000 * torch.randn(50, 2, device="cuda") for _ in range(2))
    source[:25] -= 20_000
    source, target = (tensor.requires_grad_() for tensor in (source, target))
    out = gat_aggregate(rows, x, source, target)
    assert torch.isfinite(out).all()
    for grad in torch.autograd.grad(out.sum(), (x, source, target)):
        assert torch.isfinite(grad).all()


def test_repeated_calls_give_the_same_bits():
    rows = random_rows(1000).to("cuda")
    shapes = [(1000, 8, 16), (1000, 8), (1000, 8)]
    inputs = [torch.randn(shape, device="cuda") for shape in shapes]
    grad_out = torch.randn(shapes[0], device="cuda")

    def once():
        return output_and_gradients(
            lambda *tensors: gat_aggregate(rows, *tensors), inputs, grad_out
        )

    first = once()
    for _ in range(5):
        assert all(map(torch.equal, first, once()))
