"""Bridges on a card: batch norm, ReLU and dropout as torch takes them one by one."""

import pytest
import torch
from bridges import one_by_one
from torch import nn

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
    bridge = NormActDrop(nn.BatchNorm1d(width), 0.0, relu=relu).cuda()
    nn.init.normal_(bridge.norm.weight)
    nn.init.normal_(bridge.norm.bias)
    x = torch.randn(nodes, width, device="cuda") * 3 + 10 * torch.rand(width).cuda()
    square = (width, width)
    sizes = {"weight_in": square, "bias_in": (width,), "weight_out": square}
    names = sizes if products else ()
    given = [x, *(torch.randn(sizes[name]).cuda() / 10 for name in names)]
    leaves = [tensor.detach().requires_grad_() for tensor in given]
    exact = [tensor.detach().double().requires_grad_() for tensor in given]
    twin = NormActDrop(nn.BatchNorm1d(width), 0.0, relu=relu).cuda()
    twin.load_state_dict(bridge.state_dict())
    twin.double()
    found = bridge._between(leaves[0], **dict(zip(names, leaves[1:], strict=True)))
    wanted = one_by_one(twin, exact[0], *exact[1:])
    slope = torch.randn_like(found)
    found.backward(slope)
    wanted.backward(slope.double())
    torch.testing.assert_close(found.double(), wanted, atol=1e-3, rtol=1e-3)
    largest = max(float(one.grad.norm()) for one in exact)
    for one, other in zip(leaves, exact, strict=True):
        gap = (one.grad.double() - other.grad).norm()
        # A norm takes away what was added: the slope of an offset may be 0.
        assert gap < 1e-3 * other.grad.norm() or gap < 1e-5 * largest
    for one, other in zip(bridge.parameters(), twin.parameters(), strict=True):
        gap = (one.grad.double() - other.grad).norm() / other.grad.norm()
        assert gap < 1e-3
    for one, other in zip(bridge.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(one.double(), other.double(), atol=1e-4, rtol=1e-4)


def test_dropout_drops_its_share_and_the_same_in_both_directions():
    torch.manual_seed(0)
    bridge = NormActDrop(nn.BatchNorm1d(64), 0.3, relu="none").cuda()
    x = torch.randn(4000, 64, device="cuda", requires_grad=True)
    out = bridge(x)
    kept = out != 0
    assert abs(float(kept.float().mean()) - 0.7) < 0.005
    assert (kept.float().mean(0) - 0.7).abs().max() < 0.05
    normed = nn.BatchNorm1d(64).cuda()(x.detach())
    torch.testing.assert_close(out[kept], normed[kept] / 0.7, atol=1e-4, rtol=1e-4)
    (slope,) = torch.autograd.grad(out, x, torch.ones_like(out))
    exact = x.detach().double().requires_grad_()
    again = nn.BatchNorm1d(64).cuda().double()(exact) * kept / 0.7
    (wanted,) = torch.autograd.grad(again, exact, torch.ones_like(again))
    torch.testing.assert_close(slope.double(), wanted, atol=1e-4, rtol=1e-3)
    assert not torch.equal(kept, bridge(x) != 0)


def test_runs_of_a_stack_are_apart():
    torch.manual_seed(0)
    bridge = NormActDrop(nn.BatchNorm1d(16), 0.5).cuda()
    x = torch.randn(900, 3, 16, device="cuda")
    buffers = {n: torch.stack([b] * 3) for n, b in bridge.named_buffers()}
    params = dict(bridge.named_parameters())

    def one(x, buffers):
        return torch.func.functional_call(bridge, (params, buffers), (x,))

    out = torch.func.vmap(one, (1, 0), 1, randomness="different")(x, buffers)
    alike = (out[:, 0] == 0) == (out[:, 1] == 0)
    assert 0.3 < float(alike.float().mean()) < 0.75
    torch.testing.assert_close(buffers["norm.running_mean"], 0.1 * x.mean(0))
    positive = torch.relu(nn.BatchNorm1d(16).cuda()(x[:, 1]))
    kept = out[:, 1] != 0
    torch.testing.assert_close(
        out[:, 1][kept], 2 * positive[kept], atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(7, 3), (3, 1500, 64), (2, 40, 200)])
def test_sums_are_cut_as_on_processor_cores(shape, kind):
    cuda = backend(torch.device("cuda"))
    torch.manual_seed(0)
    total, slope = (torch.randn(shape).to(kind) for _ in range(2))
    offset = torch.randn(*shape[:-2], shape[-1])
    wanted = cpu.bias_relu_(total.clone(), offset)
    found = cuda.rectify(total.cuda(), offset.cuda())
    torch.testing.assert_close(found.cpu(), wanted)
    sides = [slope.movedim(0, -1).contiguous().movedim(-1, 0), slope]
    for given in sides:
        change, sums = cuda.rectify_back(given.cuda(), wanted.cuda())
        other, total_of = cpu.bias_relu_backward(slope, wanted)
        assert torch.equal(change.cpu(), other)
        close = {"rtol": 1e-2, "atol": 1e-2} if kind == torch.bfloat16 else {}
        torch.testing.assert_close(sums.cpu(), total_of.float(), **close)
