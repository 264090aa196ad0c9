"""What saves memory gives the same on a card."""

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import GCNII, H2GCN, MLP, CorrectAndSmooth, Training
from unalike.methods import gcnii
from unalike.methods.method import solve_stack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def test_recomputed_layers_train_the_same(monkeypatch):
    tasks = tasks_of(suiting(), 2)
    # What is dropped is drawn otherwise by one pass than by many.
    methods = [GCNII(layers=9, dropout=0.0, training=Training(epochs=6))] * 2
    stored = solve_stack(methods, tasks, device="cuda")
    monkeypatch.setattr(gcnii, "free_memory", lambda device: 0)
    recomputed = solve_stack(methods, tasks, device="cuda")
    for ours, wanted in zip(recomputed, stored, strict=True):
        assert ours.curve.losses == pytest.approx(wanted.curve.losses, rel=1e-3)


@pytest.mark.parametrize("directed", [False, True])
def test_two_hops_are_found_once_and_moved(directed):
    rows = suiting(directed=directed).adjacency
    moved = rows.to("cuda")
    assert torch.equal(moved.two_hop.columns.cpu(), rows.two_hop.columns)
    assert moved.home is rows
    assert moved.is_symmetric == rows.is_symmetric
    mirror = moved.two_hop.transposed.to("cpu")
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
