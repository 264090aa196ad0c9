"""Attention on a card against the plain path: values, slopes, bits."""

import pytest
import torch

from unalike import Adjacency
from unalike.nn import reference
from unalike.nn.attention import gat_aggregate

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

SHAPES = [(1, 1), (1, 5), (2, 8), (9, 12), (3, 33), (8, 32), (40, 8), (1, 300)]
BOUNDS = {torch.float64: 1e-9, torch.float32: 5e-5, torch.bfloat16: 5e-2}


def random_rows(nodes):
    """Directed rows with empty, ordinary and very long ones, and some loops."""
    share = torch.rand(nodes, 1) ** 4
    share[0] = 0
    share[-1] = 1
    ends = (torch.rand(nodes, nodes) < share).nonzero().T
    return Adjacency.from_edges(*ends, shape=(nodes, nodes))


def both_ways(attend, inputs, pull):
    """What is gathered, and the slopes of all inputs."""
    given = [one.clone().requires_grad_() for one in inputs]
    found = attend(*given)
    return found.detach(), *torch.autograd.grad(found, given, pull)


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("nodes", [1, 7, 300])
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_is_that_of_the_plain_path(shape, nodes, kind):
    torch.manual_seed(nodes)
    rows = random_rows(nodes)
    card = rows.to("cuda")
    sizes = [(nodes, *shape), (nodes, shape[0]), (nodes, shape[0]), (nodes, *shape)]
    *inputs, pull = (torch.randn(size).to(kind) for size in sizes)
    wanted = both_ways(
        lambda *given: reference.gat_forward(rows, *given)[0],
        [one.double() for one in inputs],
        pull.double(),
    )
    found = both_ways(
        lambda *given: gat_aggregate(card, *given),
        [one.cuda() for one in inputs],
        pull.cuda(),
    )
    scale = max(float(one.norm()) for one in wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype == kind
        error = (mine.double().cpu() - theirs).norm()
        assert float(error) <= BOUNDS[kind] * max(float(theirs.norm()), 0.01 * scale)


def test_scoring_gives_what_training_does():
    rows = random_rows(300).to("cuda")
    shapes = [(300, 3, 12), (300, 3), (300, 3)]
    inputs = [torch.randn(shape, device="cuda") for shape in shapes]
    trained = gat_aggregate(rows, *(one.clone().requires_grad_() for one in inputs))
    with torch.no_grad():
        torch.testing.assert_close(gat_aggregate(rows, *inputs), trained)


def test_scores_far_apart_stay_finite():
    rows = random_rows(50).to("cuda")
    x = torch.randn(50, 2, 4, device="cuda", requires_grad=True)
    source, target = (1000 * torch.randn(50, 2, device="cuda") for _ in range(2))
    source[:25] -= 20_000
    source, target = (one.requires_grad_() for one in (source, target))
    found = gat_aggregate(rows, x, source, target)
    assert torch.isfinite(found).all()
    for slope in torch.autograd.grad(found.sum(), (x, source, target)):
        assert torch.isfinite(slope).all()


def test_the_same_bits_again():
    rows = random_rows(1000).to("cuda")
    shapes = [(1000, 8, 16), (1000, 8), (1000, 8)]
    inputs = [torch.randn(shape, device="cuda") for shape in shapes]
    pull = torch.randn(shapes[0], device="cuda")

    def once():
        return both_ways(lambda *given: gat_aggregate(rows, *given), inputs, pull)

    first = once()
    for _ in range(5):
        assert all(map(torch.equal, first, once()))
