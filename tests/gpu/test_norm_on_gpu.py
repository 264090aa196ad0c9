"""Fused batch norm, ReLU and dropout on a GPU against separate torch operations."""

import pytest
import torch
from torch import nn
from unfused_norm import between, unfused

from unalike.nn import cpu
from unalike.nn.norm import NormActDrop
from unalike.nn.sparse import backend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("relu", ["before", "after", "none"])
@pytest.mark.parametrize(("nodes", "width"), [(7, 3), (1500, 64), (3000, 200)])
@pytest.mark.parametrize("products", [False, True])
def test_without_dropout(nodes, width, relu, products):
    torch.manual_seed(0)
    block = NormActDrop(nn.BatchNorm1d(width), 0.0, relu=relu).cuda()
    nn.init.normal_(block.norm.weight)
    nn.init.normal_(block.norm.bias)
    x = torch.randn(nodes, width, device="cuda") * 3 + 10 * torch.rand(width).cuda()
    square = (width, width)
    sizes = {"weight_in": square, "bias_in": (width,), "weight_out": square}
    names = sizes if products else ()
    inputs = [x, *(torch.randn(sizes[name]).cuda() / 10 for name in names)]
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    twin = NormActDrop(nn.BatchNorm1d(width), 0.0, relu=relu).cuda()
    twin.load_state_dict(block.state_dict())
    twin.double()
    actual = between(block, *leaves)
    expected = unfused(twin, exact[0], *exact[1:])
    grad_out = torch.randn_like(actual)
    actual.backward(grad_out)
    expected.backward(grad_out.double())
    torch.testing.assert_close(actual.double(), expected, atol=1e-3, rtol=1e-3)
    largest = max(float(leaf.grad.norm()) for leaf in exact)
    for one, other in zip(leaves, exact, strict=True):
        error = (one.grad.double() - other.grad).norm()
        # The norm subtracts a bias again: the gradient of bias_in may be 0.
        assert error < 1e-3 * other.grad.norm() or error < 1e-5 * largest
    for one, other in zip(block.parameters(), twin.parameters(), strict=True):
        error = (one.grad.double() - other.grad).norm() / other.grad.norm()
        assert error < 1e-3
    for one, other in zip(block.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(one.double(), other.double(), atol=1e-4, rtol=1e-4)


def test_dropout_has_its_rate_and_the_same_mask_in_backward():
    torch.manual_seed(0)
    block = NormActDrop(nn.BatchNorm1d(64), 0.3, relu="none").cuda()
    x = torch.randn(4000, 64, device="cuda", requires_grad=True)
    out = block(x)
    mask = out != 0
    assert abs(float(mask.float().mean()) - 0.7) < 0.005
    assert (mask.float().mean(0) - 0.7).abs().max() < 0.05
    normed = nn.BatchNorm1d(64).cuda()(x.detach())
    torch.testing.assert_close(out[mask], normed[mask] / 0.7, atol=1e-4, rtol=1e-4)
    (grad,) = torch.autograd.grad(out, x, torch.ones_like(out))
    exact = x.detach().double().requires_grad_()
    again = nn.BatchNorm1d(64).cuda().double()(exact) * mask / 0.7
    (expected,) = torch.autograd.grad(again, exact, torch.ones_like(again))
    torch.testing.assert_close(grad.double(), expected, atol=1e-4, rtol=1e-3)
    assert not torch.equal(mask, block(x) != 0)


def test_runs_under_vmap_are_independent():
    torch.manual_seed(0)
    block = NormActDrop(nn.BatchNorm1d(16), 0.5).cuda()
    x = torch.randn(900, 3, 16, device="cuda")
    buffers = {n: torch.stack([b] * 3) for n, b in block.named_buffers()}
    params = dict(block.named_parameters())

    def forward(x, buffers):
        return torch.func.functional_call(block, (params, buffers), (x,))

    out = torch.func.vmap(forward, (1, 0), 1, randomness="different")(x, buffers)
    same_mask = (out[:, 0] == 0) == (out[:, 1] == 0)
    assert 0.3 < float(same_mask.float().mean()) < 0.75
    torch.testing.assert_close(buffers["norm.running_mean"], 0.1 * x.mean(0))
    positive = torch.relu(nn.BatchNorm1d(16).cuda()(x[:, 1]))
    mask = out[:, 1] != 0
    torch.testing.assert_close(
        out[:, 1][mask], 2 * positive[mask], atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(7, 3), (3, 1500, 64), (2, 40, 200)])
def test_bias_relu_equals_that_of_the_cpu(shape, dtype):
    cuda = backend(torch.device("cuda"))
    torch.manual_seed(0)
    total, grad_out = (torch.randn(shape).to(dtype) for _ in range(2))
    bias = torch.randn(*shape[:-2], shape[-1])
    expected = cpu.bias_relu_(total.clone(), bias)
    actual = cuda.bias_relu_(total.cuda(), bias.cuda())
    torch.testing.assert_close(actual.cpu(), expected)
    layouts = [grad_out.movedim(0, -1).contiguous().movedim(-1, 0), grad_out]
    for layout in layouts:
        grad, grad_bias = cuda.bias_relu_backward(layout.cuda(), expected.cuda())
        cpu_grad, cpu_grad_bias = cpu.bias_relu_backward(grad_out, expected)
        assert torch.equal(grad.cpu(), cpu_grad)
        close = {"rtol": 1e-2, "atol": 1e-2} if dtype == torch.bfloat16 else {}
        torch.testing.assert_close(grad_bias.cpu(), cpu_grad_bias.float(), **close)
