"""Memory on a GPU: waiting for it, its limits, and what saves it."""

import subprocess
import sys

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import GCNII, H2GCN, LINK, MLP, CorrectAndSmooth, Training
from unalike.methods import base, gcnii
from unalike.methods.base import train_stacks
from unalike.system import free_memory, memory_used_by_others
from unalike.training.memory import move_if_fits

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

CUDA = torch.device("cuda", 0)
HOLD_MEMORY = """
import time, torch
free, _ = torch.cuda.mem_get_info()
held = torch.empty(int(0.8 * free), dtype=torch.uint8, device="cuda")
print("held", flush=True)
time.sleep(3)
"""


def test_a_run_waits_for_memory_that_another_process_holds(monkeypatch):
    (task,) = tasks_of(suiting())
    method = LINK(training=Training(epochs=2))
    expected = method.solve(task, device="cuda")
    needed, fit = int(0.5 * free_memory(CUDA)), base.fit

    def fit_with_much_memory(runs, **options):
        torch.empty(needed, dtype=torch.uint8, device=CUDA)
        return fit(runs, **options)

    monkeypatch.setattr(base, "fit", fit_with_much_memory)
    torch.cuda.empty_cache()
    command = [sys.executable, "-c", HOLD_MEMORY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        assert memory_used_by_others(CUDA) > needed
        actual = method.solve(task, device="cuda")
    torch.testing.assert_close(actual.scores, expected.scores)


def test_free_memory_knows_the_fraction_of_a_process():
    total = free_memory(CUDA)
    torch.cuda.set_per_process_memory_fraction(0.01, CUDA)
    try:
        assert free_memory(CUDA) < 0.02 * total
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, CUDA)


def test_a_graph_larger_than_the_fraction_of_a_process_stays_on_the_cpu():
    graph = suiting()
    assert move_if_fits(graph, CUDA) is not None
    torch.cuda.empty_cache()
    _, total = torch.cuda.mem_get_info(CUDA)
    fraction = (torch.cuda.memory_allocated(CUDA) + graph.nbytes) / total
    torch.cuda.set_per_process_memory_fraction(fraction, CUDA)
    try:
        assert move_if_fits(graph, CUDA) is None
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, CUDA)


@pytest.mark.parametrize(("precision", "error"), [("float32", 1e-3), ("bf16", 0.05)])
@pytest.mark.parametrize("runs", [1, 2])
def test_checkpointed_layers_train_the_same(runs, precision, error, monkeypatch):
    tasks = tasks_of(suiting(), runs)
    training = Training(epochs=6, precision=precision)
    # The fused kernel and checkpointed layers sample different dropout masks.
    methods = [GCNII(layers=9, dropout=0.0, training=training)] * runs
    stored = train_stacks(methods, tasks, device="cuda")
    monkeypatch.setattr(gcnii, "free_memory", lambda device: 0)
    recomputed = train_stacks(methods, tasks, device="cuda")
    for actual, expected in zip(recomputed, stored, strict=True):
        assert actual.curve.losses == pytest.approx(expected.curve.losses, rel=error)


@pytest.mark.parametrize("directed", [False, True])
def test_two_hop_adjacency_is_computed_on_the_cpu_and_copied(directed):
    rows = suiting(directed=directed).adjacency
    on_gpu = rows.to("cuda")
    assert torch.equal(on_gpu.two_hop.indices.cpu(), rows.two_hop.indices)
    assert on_gpu.cpu_copy is rows
    assert on_gpu.is_symmetric == rows.is_symmetric
    transpose = on_gpu.two_hop.T.to("cpu")
    assert torch.equal(transpose.to_dense(), rows.two_hop.to_dense().T)


@pytest.mark.parametrize("directed", [False, True])
def test_methods_agree_with_the_cpu(directed):
    (task,) = tasks_of(suiting(directed=directed))
    quick = Training(epochs=5)
    base = MLP(hidden=8, dropout=0.0, training=quick)
    for method in (
        CorrectAndSmooth(base=base, flow_hops=2),
        CorrectAndSmooth(base=base, scaling="fixed", correct_by="rows"),
        H2GCN(dropout=0.0, training=quick),
    ):
        gpu, cpu = (
            method.solve(task, device=device).scores for device in ("cuda", "cpu")
        )
        torch.testing.assert_close(gpu, cpu, rtol=1e-2, atol=1e-2)
