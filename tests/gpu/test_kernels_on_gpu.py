"""Every kernel of a card against the plain path, over shapes and kinds of numbers."""

import pytest
import torch

from unalike import Adjacency
from unalike.nn import reference
from unalike.nn.optim import AdamWState, AdamWStep
from unalike.nn.sparse import (
    MIN_COLUMNS,
    MIN_COLUMNS_PROPAGATION,
    NormalizedCSR,
    backend,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

CARD = torch.device("cuda")
SHAPES = [(1, 1), (7, 5), (300, 200), (1000, 4000)]
WIDTHS = [1, 3, 16, 33, 130, 640]


def random_rows(shape, *, weighted):
    """Rows with empty, ordinary and very long ones, fresh each time."""
    rows, columns = shape
    share = torch.rand(rows, 1) ** 4
    share[0] = 0
    share[-1] = 1
    source, target = (torch.rand(rows, columns) < share).nonzero().T
    values = torch.randn(len(source)) if weighted else None
    return Adjacency.from_edges(source, target, shape=shape, values=values)


def relative_error(found, wanted):
    return float(
        (found.double().cpu() - wanted).norm() / wanted.norm().clamp(min=1e-30)
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_gather(shape, width, weighted):
    rows = random_rows(shape, weighted=weighted)
    dense = torch.randn(shape[1], width)
    wanted = reference.spmm(rows, dense.double())
    card = rows.to("cuda")
    for kind, bound in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
        found = backend(CARD).gather(card, dense.to("cuda", kind))
        assert found.dtype == kind
        assert relative_error(found, wanted) < bound
    half = dense.to(torch.bfloat16)
    found = backend(CARD).gather(card, half.cuda())
    assert found.dtype == torch.bfloat16
    assert relative_error(found, reference.spmm(rows, half.double())) < 3e-3
    offset = torch.randn(width)
    wanted = reference.spmm(rows, dense.double(), offset.double())
    found = backend(CARD).gather(card, dense.cuda(), offset.cuda())
    assert relative_error(found, wanted) < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_take(weighted):
    rows = random_rows((300, 200), weighted=weighted)
    ids = torch.randint(300, (1000,))
    found = rows.to("cuda").rows(ids.cuda())
    assert found.columns.dtype == rows.columns.dtype
    assert torch.equal(found.to("cpu").to_dense(), rows.rows(ids).to_dense())


def test_gather_gives_the_same_bits_again():
    rows = random_rows((1000, 4000), weighted=True).to("cuda")
    dense = torch.randn(4000, 128, device="cuda")
    first = rows @ dense
    assert all(torch.equal(first, rows @ dense) for _ in range(10))


def spread_on_card(spread):
    ends = (spread.scale.cuda(), spread.self_loop_weight.cuda())
    return NormalizedCSR(spread.rows.to("cuda"), *ends)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nodes", [1, 7, 300, 1000])
@pytest.mark.parametrize("width", WIDTHS)
def test_propagate(nodes, width, weighted):
    rows = random_rows((nodes, nodes), weighted=weighted)
    spread = NormalizedCSR(rows, torch.rand(nodes), (torch.rand(nodes) < 0.5).float())
    wide = torch.randn(2, nodes, width + 3).double()
    card, propagate = spread_on_card(spread), backend(CARD).propagate
    kinds = ((torch.float32, 1e-6), (torch.float64, 1e-12), (torch.bfloat16, 4e-3))
    for kind, bound in kinds:
        # A slice of a wider matrix, as layers give it.
        given = wide.to(kind)[:, :, 1 : width + 1]
        rounded, begun = given.double()
        shares = torch.linspace(0.1, 1, width, dtype=torch.float64)
        for keep, first in ((None, None), (None, begun), (shares, begun)):
            wanted = reference.normalized_spmm(spread, rounded, keep, first)
            placed = None if first is None else wide[1].to("cuda", kind)[:, 1:-2]
            there = None if keep is None else keep.cuda()
            found = propagate(card, wide[0].to("cuda", kind)[:, 1:-2], there, placed)
            assert found.dtype == kind
            assert relative_error(found, wanted) < bound


@pytest.mark.parametrize("width", [2, 64])
def test_propagate_gives_the_same_bits_again(width):
    rows = random_rows((1000, 1000), weighted=False)
    spread = spread_on_card(NormalizedCSR(rows, torch.rand(1000), torch.ones(1000)))
    dense = torch.randn(1000, width, device="cuda")
    propagate = backend(CARD).propagate
    first = propagate(spread, dense)
    assert all(torch.equal(first, propagate(spread, dense)) for _ in range(10))


def stacked(rows, runs, width, *, half):
    now = torch.randn(rows, runs, width)
    fresh = AdamWState.create(now, half=half)
    fresh.first.normal_()
    fresh.exp_avg_sq.uniform_(0.1, 1)
    return fresh


def on_card(weights):
    parts = vars(weights).items()
    return AdamWState(**{name: None if t is None else t.cuda() for name, t in parts})


def some_step(runs):
    count = torch.tensor([3.0], dtype=torch.float64)
    rates = (torch.rand(runs) / 10, torch.rand(runs), torch.rand(runs) < 0.5)
    return AdamWStep(count, *rates)


def step_on_card(step):
    return AdamWStep(*(tensor.cuda() for tensor in vars(step).values()))


def assert_same(card, wanted):
    for name in ("now", "first", "second", "best"):
        found = getattr(card, name)
        assert relative_error(found, getattr(wanted, name).double()) < 1e-5, name
    if wanted.half is not None:
        assert torch.equal(card.half, card.now.to(torch.bfloat16))


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("runs", [1, 3, 10])
@pytest.mark.parametrize("width", [1, 5, 64, 130])
def test_adamw(runs, width, half):
    weights, step = stacked(50, runs, width, half=half), some_step(runs)
    slope = torch.randn_like(weights.now)
    card = on_card(weights)
    backend(CARD).adamw(card, slope.cuda(), step_on_card(step))
    reference.adamw(weights, slope, step)
    assert_same(card, weights)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("runs", [1, 3, 10])
@pytest.mark.parametrize("width", [1, 5, 64, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_gather_adamw(runs, width, half, weighted):
    rows = random_rows((300, 200), weighted=weighted)
    weights, step = stacked(300, runs, width, half=half), some_step(runs)
    slope = torch.randn(200, runs, width)
    if half:
        slope = slope.to(torch.bfloat16)
    card = on_card(weights)
    backend(CARD).gather_adamw(card, rows.to("cuda"), slope.cuda(), step_on_card(step))
    reference.spmm_adamw(weights, rows, slope, step)
    assert_same(card, weights)


@pytest.fixture
def rounding():
    usual = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(usual)


@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_crowded_rows(half, weighted):
    kind = torch.bfloat16 if half else torch.float32
    bound = 3e-3 if half else 1e-3
    rows, card = random_rows((300, 200), weighted=weighted), backend(CARD)
    there = rows.to("cuda")
    dense, offset = torch.randn(200, MIN_COLUMNS).to(kind), torch.randn(MIN_COLUMNS)
    for told in (None, offset):
        wanted = reference.spmm(
            rows, dense.double(), None if told is None else told.double()
        )
        found = card.gather(there, dense.cuda(), None if told is None else told.cuda())
        assert found.dtype == kind
        assert relative_error(found, wanted) < bound
    weights, step = stacked(300, 4, MIN_COLUMNS // 4, half=half), some_step(4)
    stepped, slope = on_card(weights), dense.view(200, 4, -1)
    card.gather_adamw(stepped, there, slope.cuda(), step_on_card(step))
    reference.spmm_adamw(weights, rows, slope, step)
    assert relative_error(stepped.first, weights.first.double()) < bound
    assert ("filled", kind) in there.flows


@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_propagation_along_crowded_rows(half, weighted):
    kind = torch.bfloat16 if half else torch.float32
    rows = random_rows((300, 300), weighted=weighted)
    scale, added = torch.rand(300), (torch.rand(300) < 0.5).float()
    dense, start = torch.randn(2, 300, MIN_COLUMNS_PROPAGATION).to(kind)
    keep = torch.linspace(0.1, 1, MIN_COLUMNS_PROPAGATION)
    there = rows.to("cuda")
    found = backend(CARD).propagate(
        NormalizedCSR(there, scale.cuda(), added.cuda()),
        dense.cuda(),
        keep.cuda(),
        start.cuda(),
    )
    wanted = reference.normalized_spmm(
        NormalizedCSR(rows, scale, added), dense.double(), keep, start.double()
    )
    assert found.dtype == kind
    assert relative_error(found, wanted) < (5e-3 if half else 1e-3)
    assert ("filled", kind) in there.flows


@pytest.mark.parametrize("weighted", [False, True])
def test_loops(weighted):
    rows = random_rows((300, 300), weighted=weighted)
    assert rows.diagonal.any()
    assert torch.equal(rows.to("cuda").diagonal.cpu(), rows.diagonal)


@pytest.mark.parametrize("weighted", [False, True])
def test_induced(weighted):
    rows = random_rows((300, 300), weighted=weighted)
    assert rows.to_undirected().to("cuda").is_symmetric
    ids = torch.randperm(300)[:120]
    cut = rows.to("cuda").subgraph(ids.cuda())
    assert cut.columns.is_cuda
    assert torch.equal(cut.to_dense(), rows.to_dense()[ids][:, ids])
    part = ids % 3
    cut = rows.to("cuda").subgraph(ids.cuda(), part.cuda())
    apart = rows.to_dense()[ids][:, ids] * (part[:, None] == part)
    assert torch.equal(cut.to_dense(), apart)
