"""What saves memory gives the same on a card."""

import subprocess
import sys

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import GCNII, H2GCN, LINK, MLP, CorrectAndSmooth, Training
from unalike.methods import base, gcnii
from unalike.methods.base import train_stacks
from unalike.system import free_memory, memory_used_by_others

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

CARD = torch.device("cuda", 0)
HOLD = """
import time, torch
free, _ = torch.cuda.mem_get_info()
held = torch.empty(int(0.8 * free), dtype=torch.uint8, device="cuda")
print("held", flush=True)
time.sleep(3)
"""


def test_a_run_waits_for_memory_that_another_process_holds(monkeypatch):
    (task,) = tasks_of(suiting())
    method = LINK(training=Training(epochs=2))
    wanted = method.solve(task, device="cuda")
    needed, fit = int(0.5 * free_memory(CARD)), base.fit

    def fit_with_more_memory(runs, **options):
        torch.empty(needed, dtype=torch.uint8, device=CARD)
        return fit(runs, **options)

    monkeypatch.setattr(base, "fit", fit_with_more_memory)
    torch.cuda.empty_cache()
    holds = [sys.executable, "-c", HOLD]
    with subprocess.Popen(holds, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        assert memory_used_by_others(CARD) > needed
        found = method.solve(task, device="cuda")
    torch.testing.assert_close(found.scores, wanted.scores)


def test_a_process_plans_with_its_share_of_a_card():
    whole = free_memory(CARD)
    torch.cuda.set_per_process_memory_fraction(0.01, CARD)
    try:
        assert free_memory(CARD) < 0.02 * whole
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, CARD)


@pytest.mark.parametrize(("precision", "error"), [("float32", 1e-3), ("bf16", 0.05)])
@pytest.mark.parametrize("runs", [1, 2])
def test_recomputed_layers_train_the_same(runs, precision, error, monkeypatch):
    tasks = tasks_of(suiting(), runs)
    training = Training(epochs=6, precision=precision)
    # What is dropped is drawn otherwise by one pass than by many.
    methods = [GCNII(layers=9, dropout=0.0, training=training)] * runs
    stored = train_stacks(methods, tasks, device="cuda")
    monkeypatch.setattr(gcnii, "free_memory", lambda device: 0)
    recomputed = train_stacks(methods, tasks, device="cuda")
    for ours, wanted in zip(recomputed, stored, strict=True):
        assert ours.curve.losses == pytest.approx(wanted.curve.losses, rel=error)


@pytest.mark.parametrize("directed", [False, True])
def test_two_hops_are_found_once_and_moved(directed):
    rows = suiting(directed=directed).adjacency
    moved = rows.to("cuda")
    assert torch.equal(moved.two_hop.columns.cpu(), rows.two_hop.columns)
    assert moved.home is rows
    assert moved.is_symmetric == rows.is_symmetric
    mirror = moved.two_hop.T.to("cpu")
    assert torch.equal(mirror.to_dense(), rows.two_hop.to_dense().T)


@pytest.mark.parametrize("directed", [False, True])
def test_methods_agree_with_the_processor(directed):
    (task,) = tasks_of(suiting(directed=directed))
    quick = Training(epochs=5)
    base = MLP(hidden=8, dropout=0.0, training=quick)
    for method in (
        CorrectAndSmooth(base=base, flow_hops=2),
        CorrectAndSmooth(base=base, scaling="fixed", correct_by="rows"),
        H2GCN(dropout=0.0, training=quick),
    ):
        card, cpu = (method.solve(task, device=one).scores for one in ("cuda", "cpu"))
        torch.testing.assert_close(card, cpu, rtol=1e-2, atol=1e-2)
