"""CPU kernels and CSR operations against the reference, and AdamW against torch."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import reference_kernels as reference
import torch

from unalike import Adjacency
from unalike.data import csr
from unalike.data.csr import diagonal
from unalike.nn import cpu
from unalike.nn.optim import AdamWState, AdamWStep

FIELDS = ("weight", "exp_avg", "exp_avg_sq", "best_weight")


def random_rows(shape, *, weighted):
    """A matrix with empty first and last rows and one full row."""
    mask = torch.rand(shape) < 0.3
    mask[[0, -1]] = False
    mask[shape[0] // 2] = True
    source, target = mask.nonzero().T
    values = torch.randn(len(source)) if weighted else None
    return Adjacency.from_edges(source, target, shape=shape, values=values)


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("width", [0, 1, 33])
def test_spmm(width, dtype, weighted):
    rows = random_rows((9, 14), weighted=weighted)
    dense, bias = torch.randn(14, width).to(dtype), torch.randn(width).to(dtype)
    tolerance = {"rtol": 2**-7, "atol": 1e-5} if dtype == torch.bfloat16 else {}
    for options in ((), (bias,)):
        actual, expected = (
            kernels.spmm(rows, dense, *options) for kernels in (cpu, reference)
        )
        assert actual.dtype == dtype
        torch.testing.assert_close(actual, expected, **tolerance)


@pytest.mark.parametrize("kernels", [cpu, reference])
def test_spmm_writes_to_out(kernels):
    rows, dense = random_rows((9, 14), weighted=True), torch.randn(14, 4)
    out = torch.full((9, 4), torch.nan)
    result = kernels.spmm(rows, dense, None, out)
    assert result.data_ptr() == out.data_ptr()
    assert torch.equal(out, kernels.spmm(rows, dense))


@pytest.fixture(params=["small", "large"])
def size_path(request, monkeypatch):
    """Index work by torch and SciPy, as for small inputs, or by compiled loops."""
    if request.param == "large":
        monkeypatch.setattr(csr, "SMALL_NNZ", -1)


@pytest.mark.usefixtures("size_path")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
@pytest.mark.parametrize("ids", [[], [0], [4, 4, 0, 8, 4], range(9), [-1, -5]])
def test_select_rows(ids, kind, weighted):
    rows = random_rows((9, 14), weighted=weighted)
    rows = replace(rows, indices=rows.indices.to(kind))
    ids = torch.tensor(list(ids), dtype=torch.int64)
    indptr, indices, num_cols, values = csr.select_rows(rows, ids)
    assert num_cols == rows.num_cols
    assert indices.dtype == kind
    selected = Adjacency(indptr, indices, 14, values)
    assert torch.equal(selected.to_dense(), rows.to_dense()[ids])


@pytest.mark.usefixtures("size_path")
@pytest.mark.parametrize("wrong", [9, -10])
def test_ids_of_missing_rows_are_refused(wrong):
    with pytest.raises(IndexError):
        csr.select_rows(random_rows((9, 14), weighted=False), torch.tensor([0, wrong]))


@pytest.mark.usefixtures("size_path")
def test_rows_are_selected_in_several_threads_at_once():
    rows = random_rows((500, 90), weighted=True)
    wanted = rows.to_dense()

    def right(seed):
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(500, (200,), generator=generator)
        return torch.equal(rows.select_rows(ids).to_dense(), wanted[ids])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(40)))


def random_state(rows, runs, width, *, bf16):
    state = AdamWState.create(torch.randn(rows, runs, width), bf16=bf16)
    state.exp_avg.normal_()
    state.exp_avg_sq.uniform_(0.1, 1)
    state.best_weight.normal_()
    return state


def copied(state):
    fields = vars(state).items()
    return AdamWState(
        **{name: None if field is None else field.clone() for name, field in fields}
    )


def random_step(runs):
    count = torch.tensor([3.0], dtype=torch.float64)
    improved = torch.arange(runs) % 2 == 0
    return AdamWStep(count, torch.rand(runs) / 10, torch.rand(runs), improved)


def assert_same(actual, expected):
    for name in FIELDS:
        torch.testing.assert_close(getattr(actual, name), getattr(expected, name))
    assert (actual.weight_bf16 is None) == (expected.weight_bf16 is None)
    if actual.weight_bf16 is not None:
        assert torch.equal(actual.weight_bf16, actual.weight.to(torch.bfloat16))


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("width", [1, 17])
def test_adamw(width, runs, bf16):
    state, step = random_state(12, runs, width, bf16=bf16), random_step(runs)
    grad, same = torch.randn_like(state.weight), copied(state)
    weight, best_weight = state.weight.clone(), state.best_weight.clone()
    cpu.adamw(state, grad, step)
    reference.adamw(same, grad, step)
    assert_same(state, same)
    better = step.improved
    assert torch.equal(state.best_weight[:, better], weight[:, better])
    assert torch.equal(state.best_weight[:, ~better], best_weight[:, ~better])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("runs", [1, 3])
def test_spmm_adamw(runs, bf16, weighted):
    rows = random_rows((12, 20), weighted=weighted)
    state, step = random_state(12, runs, 5, bf16=bf16), random_step(runs)
    grad_out, same = torch.randn(20, runs, 5), copied(state)
    cpu.spmm_adamw(state, rows, grad_out, step)
    reference.spmm_adamw(same, rows, grad_out, step)
    assert_same(state, same)


@pytest.mark.parametrize("kernels", [cpu, reference])
def test_adamw_steps_are_those_of_torch(kernels):
    lrs, decays = torch.tensor([0.1, 0.003]), torch.tensor([0.0, 0.5])
    state = AdamWState.create(torch.randn(6, 2, 4), bf16=False)
    weights = [state.weight[:, run].clone().requires_grad_() for run in range(2)]
    optimizers = [
        torch.optim.AdamW([weight], lr=float(lr), weight_decay=float(decay))
        for weight, lr, decay in zip(weights, lrs, decays, strict=True)
    ]
    for count in range(1, 8):
        grad = torch.randn(6, 2, 4)
        improved = torch.tensor([count == 3, False])
        step = AdamWStep(torch.tensor([count]), lrs, decays, improved)
        kernels.adamw(state, grad, step)
        for run, (weight, optimizer) in enumerate(
            zip(weights, optimizers, strict=True)
        ):
            weight.grad = grad[:, run].clone()
            optimizer.step()
            torch.testing.assert_close(state.weight[:, run], weight.detach())


@pytest.mark.usefixtures("size_path")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1, 2, 30])
def test_diagonal(size, weighted):
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
def test_subgraph(ids, wide, weighted, parts):
    rows = random_rows((10, 10), weighted=weighted)
    if wide:
        rows = Adjacency(rows.indptr, rows.indices.long(), 10, rows.values)
    ids = torch.tensor(ids, dtype=torch.int64)
    part = None if parts is None else ids % parts
    wanted = rows.to_dense()[ids][:, ids]
    if part is not None:
        wanted *= part[:, None] == part
    for subgraph in (csr.subgraph_cpu, csr.subgraph_torch):
        found = subgraph(rows, ids, part)
        assert torch.equal(Adjacency(*found).to_dense(), wanted)
        assert found.indices.dtype == rows.indices.dtype
        row = found.indptr[:-1].repeat_interleave(found.indptr.diff())
        assert (found.indices.diff() > 0)[row.diff() == 0].all()
