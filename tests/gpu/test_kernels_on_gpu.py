"""Every CUDA kernel against the reference, over shapes and dtypes."""

import pytest
import reference_kernels as reference
import torch

from unalike import Adjacency
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

CUDA = torch.device("cuda")
SHAPES = [(1, 1), (7, 5), (300, 200), (1000, 4000)]
WIDTHS = [1, 3, 16, 33, 130, 640]


def random_rows(shape, *, weighted):
    """A matrix with empty, ordinary and very long rows."""
    rows, columns = shape
    density = torch.rand(rows, 1) ** 4
    density[0] = 0
    density[-1] = 1
    source, target = (torch.rand(rows, columns) < density).nonzero().T
    values = torch.randn(len(source)).abs() if weighted else None
    return Adjacency.from_edges(source, target, shape=shape, values=values)


def relative_error(actual, expected):
    return float(
        (actual.double().cpu() - expected).norm() / expected.norm().clamp(min=1e-30)
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_spmm(shape, width, weighted):
    rows = random_rows(shape, weighted=weighted)
    dense = torch.randn(shape[1], width)
    expected = reference.spmm(rows, dense.double())
    on_gpu = rows.to("cuda")
    for dtype, bound in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
        actual = backend(CUDA).spmm(on_gpu, dense.to("cuda", dtype))
        assert actual.dtype == dtype
        assert relative_error(actual, expected) < bound
    half = dense.to(torch.bfloat16)
    actual = backend(CUDA).spmm(on_gpu, half.cuda())
    assert actual.dtype == torch.bfloat16
    assert relative_error(actual, reference.spmm(rows, half.double())) < 3e-3
    bias = torch.randn(width)
    expected = reference.spmm(rows, dense.double(), bias.double())
    actual = backend(CUDA).spmm(on_gpu, dense.cuda(), bias.cuda())
    assert relative_error(actual, expected) < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_select_rows(weighted):
    rows = random_rows((300, 200), weighted=weighted)
    ids = torch.randint(300, (1000,))
    selected = rows.to("cuda").select_rows(ids.cuda())
    assert selected.indices.dtype == rows.indices.dtype
    assert torch.equal(selected.to("cpu").to_dense(), rows.select_rows(ids).to_dense())


def test_spmm_gives_the_same_bits_again():
    rows = random_rows((1000, 4000), weighted=True).to("cuda")
    dense = torch.randn(4000, 128, device="cuda")
    first = rows @ dense
    assert all(torch.equal(first, rows @ dense) for _ in range(10))


def normalized_to_gpu(adjacency):
    scales = (adjacency.scale.cuda(), adjacency.self_loop_weight.cuda())
    return NormalizedCSR(adjacency.csr.to("cuda"), *scales)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nodes", [1, 7, 300, 1000])
@pytest.mark.parametrize("width", WIDTHS)
def test_normalized_spmm(nodes, width, weighted):
    rows = random_rows((nodes, nodes), weighted=weighted)
    self_loops = (torch.rand(nodes) < 0.5).float()
    adjacency = NormalizedCSR(rows, torch.rand(nodes), self_loops)
    wide = torch.randn(2, nodes, width + 3).double()
    on_gpu, normalized_spmm = (
        normalized_to_gpu(adjacency),
        backend(CUDA).normalized_spmm,
    )
    # The roundings of many nodes average out; those of one node may add up.
    rounding = 4e-3 if nodes > 1 else 3 * 2**-8
    dtypes = ((torch.float32, 1e-6), (torch.float64, 1e-12), (torch.bfloat16, rounding))
    for dtype, bound in dtypes:
        # A slice of a wider matrix, as layers pass it.
        x, residual = wide.to(dtype)[:, :, 1 : width + 1].double()
        x_gpu, residual_gpu = wide.to("cuda", dtype)[:, :, 1:-2]
        scale = torch.linspace(0.1, 1, width, dtype=torch.float64)
        for has_scale, has_residual in ((False, False), (False, True), (True, True)):
            expected = reference.normalized_spmm(
                adjacency,
                x,
                scale if has_scale else None,
                residual if has_residual else None,
            )
            actual = normalized_spmm(
                on_gpu,
                x_gpu,
                scale.cuda() if has_scale else None,
                residual_gpu if has_residual else None,
            )
            assert actual.dtype == dtype
            assert relative_error(actual, expected) < bound


@pytest.mark.parametrize("width", [1, 3, 33])
def test_normalized_spmm_of_column_major_matrices(width):
    rows = random_rows((300, 300), weighted=False)
    adjacency = NormalizedCSR(rows, torch.rand(300), torch.ones(300))
    x, residual = torch.randn(2, width, 300).mT
    expected = reference.normalized_spmm(adjacency, x.double(), None, residual.double())
    actual = backend(CUDA).normalized_spmm(
        normalized_to_gpu(adjacency), x.cuda(), None, residual.cuda()
    )
    assert relative_error(actual, expected) < 1e-6


@pytest.mark.parametrize("width", [2, 64])
def test_normalized_spmm_gives_the_same_bits_again(width):
    rows = random_rows((1000, 1000), weighted=False)
    adjacency = NormalizedCSR(rows, torch.rand(1000), torch.ones(1000))
    adjacency = normalized_to_gpu(adjacency)
    dense = torch.randn(1000, width, device="cuda")
    normalized_spmm = backend(CUDA).normalized_spmm
    first = normalized_spmm(adjacency, dense)
    assert all(torch.equal(first, normalized_spmm(adjacency, dense)) for _ in range(10))


def random_state(rows, runs, width, *, bf16):
    state = AdamWState.create(torch.randn(rows, runs, width), bf16=bf16)
    state.exp_avg.normal_()
    state.exp_avg_sq.uniform_(0.1, 1)
    return state


def state_to_gpu(state):
    fields = vars(state).items()
    return AdamWState(**{name: None if t is None else t.cuda() for name, t in fields})


def random_step(runs):
    count = torch.tensor([3.0], dtype=torch.float64)
    settings = (torch.rand(runs) / 10, torch.rand(runs), torch.rand(runs) < 0.5)
    return AdamWStep(count, *settings)


def step_to_gpu(step):
    return AdamWStep(*(tensor.cuda() for tensor in vars(step).values()))


def assert_same(on_gpu, expected):
    for name in ("weight", "exp_avg", "exp_avg_sq", "best_weight"):
        actual = getattr(on_gpu, name)
        assert relative_error(actual, getattr(expected, name).double()) < 1e-5, name
    if expected.weight_bf16 is not None:
        assert torch.equal(on_gpu.weight_bf16, on_gpu.weight.to(torch.bfloat16))


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("runs", [1, 3, 10])
@pytest.mark.parametrize("width", [1, 5, 64, 130])
def test_adamw(runs, width, bf16):
    state, step = random_state(50, runs, width, bf16=bf16), random_step(runs)
    grad = torch.randn_like(state.weight)
    on_gpu = state_to_gpu(state)
    backend(CUDA).adamw(on_gpu, grad.cuda(), step_to_gpu(step))
    reference.adamw(state, grad, step)
    assert_same(on_gpu, state)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("runs", [1, 3, 10])
@pytest.mark.parametrize("width", [1, 5, 64, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_spmm_adamw(runs, width, bf16, weighted):
    rows = random_rows((300, 200), weighted=weighted)
    state, step = random_state(300, runs, width, bf16=bf16), random_step(runs)
    grad_out = torch.randn(200, runs, width)
    if bf16:
        grad_out = grad_out.to(torch.bfloat16)
    on_gpu = state_to_gpu(state)
    backend(CUDA).spmm_adamw(
        on_gpu, rows.to("cuda"), grad_out.cuda(), step_to_gpu(step)
    )
    reference.spmm_adamw(state, rows, grad_out, step)
    assert_same(on_gpu, state)


@pytest.fixture
def tf32():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_spmm_by_a_dense_copy(bf16, weighted):
    dtype = torch.bfloat16 if bf16 else torch.float32
    bound = 3e-3 if bf16 else 1e-3
    rows, cuda = random_rows((300, 200), weighted=weighted), backend(CUDA)
    on_gpu = rows.to("cuda")
    dense = torch.randn(200, MIN_COLUMNS).to(dtype)
    for bias in (None, torch.randn(MIN_COLUMNS)):
        expected = reference.spmm(
            rows, dense.double(), None if bias is None else bias.double()
        )
        actual = cuda.spmm(on_gpu, dense.cuda(), None if bias is None else bias.cuda())
        assert actual.dtype == dtype
        assert relative_error(actual, expected) < bound
    state, step = random_state(300, 4, MIN_COLUMNS // 4, bf16=bf16), random_step(4)
    stepped, grad_out = state_to_gpu(state), dense.view(200, 4, -1)
    cuda.spmm_adamw(stepped, on_gpu, grad_out.cuda(), step_to_gpu(step))
    reference.spmm_adamw(state, rows, grad_out, step)
    assert relative_error(stepped.exp_avg, state.exp_avg.double()) < bound
    assert ("padded dense", dtype) in on_gpu.cache


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_normalized_spmm_by_a_dense_copy(bf16, weighted):
    dtype = torch.bfloat16 if bf16 else torch.float32
    rows = random_rows((300, 300), weighted=weighted)
    scale, self_loops = torch.rand(300), (torch.rand(300) < 0.5).float()
    x, residual = torch.randn(2, 300, MIN_COLUMNS_PROPAGATION).to(dtype)
    column_scale = torch.linspace(0.1, 1, MIN_COLUMNS_PROPAGATION)
    on_gpu = rows.to("cuda")
    actual = backend(CUDA).normalized_spmm(
        NormalizedCSR(on_gpu, scale.cuda(), self_loops.cuda()),
        x.cuda(),
        column_scale.cuda(),
        residual.cuda(),
    )
    expected = reference.normalized_spmm(
        NormalizedCSR(rows, scale, self_loops),
        x.double(),
        column_scale,
        residual.double(),
    )
    assert actual.dtype == dtype
    assert relative_error(actual, expected) < (5e-3 if bf16 else 1e-3)
    assert ("padded dense", dtype) in on_gpu.cache


@pytest.mark.parametrize("weighted", [False, True])
def test_diagonal(weighted):
    rows = random_rows((300, 300), weighted=weighted)
    assert rows.diagonal.any()
    assert torch.equal(rows.to("cuda").diagonal.cpu(), rows.diagonal)


@pytest.mark.parametrize("weighted", [False, True])
def test_subgraph(weighted):
    rows = random_rows((300, 300), weighted=weighted)
    assert rows.to_undirected().to("cuda").is_symmetric
    ids = torch.randperm(300)[:120]
    subgraph = rows.to("cuda").subgraph(ids.cuda())
    assert subgraph.indices.is_cuda
    assert torch.equal(subgraph.to_dense(), rows.to_dense()[ids][:, ids])
    part = ids % 3
    subgraph = rows.to("cuda").subgraph(ids.cuda(), part.cuda())
    within = rows.to_dense()[ids][:, ids] * (part[:, None] == part)
    assert torch.equal(subgraph.to_dense(), within)
