"""The kernels of processor cores against the plain ones, and those against torch."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from unalike import Adjacency
from unalike.data import csr as loops_module
from unalike.data.csr import diagonal
from unalike.nn import cpu, reference
from unalike.nn.optim import AdamWState, AdamWStep

PARTS = ("now", "first", "second", "best")


def random_rows(shape, *, weighted):
    """Rows of which the first and the last are empty and one is full."""
    there = torch.rand(shape) < 0.3
    there[[0, -1]] = False
    there[shape[0] // 2] = True
    source, target = there.nonzero().T
    values = torch.randn(len(source)) if weighted else None
    return Adjacency.from_edges(source, target, shape=shape, values=values)


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("width", [0, 1, 33])
def test_gather(width, kind, weighted):
    rows = random_rows((9, 14), weighted=weighted)
    dense, offset = torch.randn(14, width).to(kind), torch.randn(width).to(kind)
    tolerance = {"rtol": 2**-7, "atol": 1e-5} if kind == torch.bfloat16 else {}
    for given in ((), (offset,)):
        found, wanted = (
            kernel.gather(rows, dense, *given) for kernel in (cpu, reference)
        )
        assert found.dtype == kind
        torch.testing.assert_close(found, wanted, **tolerance)


@pytest.mark.parametrize("kernels", [cpu, reference])
def test_gather_writes_where_it_is_told(kernels):
    rows, dense = random_rows((9, 14), weighted=True), torch.randn(14, 4)
    out = torch.full((9, 4), torch.nan)
    found = kernels.gather(rows, dense, None, out)
    assert found.data_ptr() == out.data_ptr()
    assert torch.equal(out, kernels.gather(rows, dense))


@pytest.fixture(params=["small", "large"])
def size_path(request, monkeypatch):
    """Index work by torch and SciPy, as for small inputs, or by compiled loops."""
    if request.param == "large":
        for module in (cpu, loops_module):
            monkeypatch.setattr(module, "SMALL", -1)


@pytest.mark.usefixtures("size_path")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
@pytest.mark.parametrize("ids", [[], [0], [4, 4, 0, 8, 4], range(9), [-1, -5]])
def test_take(ids, kind, weighted):
    rows = random_rows((9, 14), weighted=weighted)
    rows = replace(rows, columns=rows.columns.to(kind))
    ids = torch.tensor(list(ids), dtype=torch.int64)
    for kernels in (cpu, reference):
        starts, columns, width, values = kernels.take(rows, ids)
        assert width == rows.width
        assert columns.dtype == kind
        taken = Adjacency(starts, columns, 14, values)
        assert torch.equal(taken.to_dense(), rows.to_dense()[ids])


@pytest.mark.parametrize("kernels", [cpu, reference])
@pytest.mark.parametrize("wrong", [9, -10])
def test_take_refuses_rows_that_are_not_there(kernels, wrong):
    with pytest.raises(IndexError):
        kernels.take(random_rows((9, 14), weighted=False), torch.tensor([0, wrong]))


@pytest.mark.usefixtures("size_path")
def test_rows_are_taken_in_several_threads_at_once():
    rows = random_rows((500, 90), weighted=True)
    wanted = rows.to_dense()

    def right(seed):
        chance = torch.Generator().manual_seed(seed)
        ids = torch.randint(500, (200,), generator=chance)
        return torch.equal(rows.rows(ids).to_dense(), wanted[ids])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(40)))


def stacked(rows, runs, width, *, half):
    weights = AdamWState.create(torch.randn(rows, runs, width), half=half)
    weights.first.normal_()
    weights.exp_avg_sq.uniform_(0.1, 1)
    weights.best.normal_()
    return weights


def copied(weights):
    parts = vars(weights).items()
    return AdamWState(
        **{name: None if part is None else part.clone() for name, part in parts}
    )


def some_step(runs):
    count = torch.tensor([3.0], dtype=torch.float64)
    improved = torch.arange(runs) % 2 == 0
    return AdamWStep(count, torch.rand(runs) / 10, torch.rand(runs), improved)


def assert_same(found, wanted):
    for part in PARTS:
        torch.testing.assert_close(getattr(found, part), getattr(wanted, part))
    assert (found.half is None) == (wanted.half is None)
    if found.half is not None:
        assert torch.equal(found.half, found.now.to(torch.bfloat16))


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("width", [1, 17])
def test_adamw(width, runs, half):
    weights, step = stacked(12, runs, width, half=half), some_step(runs)
    slope, same = torch.randn_like(weights.now), copied(weights)
    before = weights.now.clone()
    kept = weights.best.clone()
    cpu.adamw(weights, slope, step)
    reference.adamw(same, slope, step)
    assert_same(weights, same)
    better = step.improved
    assert torch.equal(weights.best[:, better], before[:, better])
    assert torch.equal(weights.best[:, ~better], kept[:, ~better])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("runs", [1, 3])
def test_gather_adamw(runs, half, weighted):
    rows = random_rows((12, 20), weighted=weighted)
    weights, step = stacked(12, runs, 5, half=half), some_step(runs)
    slope, same = torch.randn(20, runs, 5), copied(weights)
    cpu.spmm_adamw(weights, rows, slope, step)
    reference.spmm_adamw(same, rows, slope, step)
    assert_same(weights, same)


@pytest.mark.parametrize("kernels", [cpu, reference])
def test_steps_are_those_of_torch(kernels):
    rates, decays = torch.tensor([0.1, 0.003]), torch.tensor([0.0, 0.5])
    weights = AdamWState.create(torch.randn(6, 2, 4), half=False)
    runs = [weights.now[:, run].clone().requires_grad_() for run in range(2)]
    optimisers = [
        torch.optim.AdamW([run], lr=float(rate), weight_decay=float(decay))
        for run, rate, decay in zip(runs, rates, decays, strict=True)
    ]
    for count in range(1, 8):
        slope = torch.randn(6, 2, 4)
        improved = torch.tensor([count == 3, False])
        step = AdamWStep(torch.tensor([count]), rates, decays, improved)
        kernels.adamw(weights, slope, step)
        for place, (run, optimiser) in enumerate(zip(runs, optimisers, strict=True)):
            run.grad = slope[:, place].clone()
            optimiser.step()
            torch.testing.assert_close(weights.now[:, place], run.detach())


@pytest.mark.usefixtures("size_path")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1, 2, 30])
def test_loops(size, weighted):
    dense = torch.randn(size, size) * (torch.rand(size, size) < 0.4)
    dense.fill_diagonal_(0)
    dense[::2, ::2] += torch.diag(torch.full((len(dense[::2]),), -1.5))
    source, target = dense.nonzero().T
    values = dense[source, target] if weighted else None
    rows = Adjacency.from_edges(source, target, shape=(size, size), values=values)
    assert torch.equal(diagonal(rows), rows.to_dense().diagonal())


@pytest.mark.parametrize("parts", [None, 1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ids", [[], [3], [0, 4, 9], [9, 0, 4, 8, 2], range(10)])
def test_induced(ids, wide, weighted, parts):
    rows = random_rows((10, 10), weighted=weighted)
    if wide:
        rows = Adjacency(rows.starts, rows.columns.long(), 10, rows.values)
    ids = torch.tensor(ids, dtype=torch.int64)
    part = None if parts is None else ids % parts
    wanted = rows.to_dense()[ids][:, ids]
    if part is not None:
        wanted *= part[:, None] == part
    for kernels in (cpu, reference):
        cut = kernels.subgraph(rows, ids, part)
        assert torch.equal(Adjacency(*cut).to_dense(), wanted)
        assert cut.columns.dtype == rows.columns.dtype
        inside = cut.starts[:-1].repeat_interleave(cut.starts.diff())
        rises = cut.columns.diff() > 0
        assert rises[inside.diff() == 0].all()
