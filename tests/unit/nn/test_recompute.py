"""GCNII with activation checkpointing equals GCNII without."""

from functools import partial

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import GCNII, Training
from unalike.data.metrics import ACCURACY
from unalike.methods import gcnii
from unalike.methods.base import train_stacks

close = torch.testing.assert_close


@pytest.fixture(params=[True, False], ids=["norm", "no norm"])
def method(request):
    return partial(GCNII, hidden=8, batch_norm=request.param)


@pytest.fixture
def scarce(monkeypatch):
    """A function that makes memory scarce and returns a list of calls of segments."""
    calls = []

    def counted(*arguments):
        calls.append(1)
        return run_segment(*arguments)

    run_segment = gcnii.GCNIIModule.run_segment

    def start():
        monkeypatch.setattr(gcnii, "free_memory", lambda device: 0)
        monkeypatch.setattr(gcnii.GCNIIModule, "run_segment", counted)
        return calls

    return start


def gradients(method, graph):
    """Logits, gradients and buffers of a network after one training pass."""
    torch.manual_seed(0)
    network = method.network(method.prepare(graph)).train()
    logits = network(graph)
    ACCURACY.loss(logits, graph.labels, (graph.labels >= 0).float()).backward()
    grads = {name: p.grad for name, p in network.named_parameters()}
    return logits.detach(), grads, dict(network.named_buffers())


@pytest.mark.parametrize("layers", [1, 2, 7, 16])
def test_logits_gradients_and_running_statistics_are_the_same(method, layers, scarce):
    graph = suiting(nodes=60)
    stored = gradients(method(layers=layers), graph)
    calls = scarce()
    recomputed = gradients(method(layers=layers), graph)
    close(recomputed, stored, rtol=1e-4, atol=1e-6)
    passes = {1: 1, 2: 2, 7: 7, 16: 9}[layers]
    assert len(calls) == 2 * passes


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.long
def test_stacked_runs_train_the_same(method, directed, scarce):
    tasks = tasks_of(suiting(nodes=60, directed=directed), 3)
    options = [
        {"dropout": 0.0, "alpha": 0.1, "theta": 0.5},
        {"dropout": 0.3, "alpha": 0.5, "theta": 0.5},
        {"dropout": 0.6, "alpha": 0.1, "theta": 1.5},
    ]
    methods = [method(layers=9, training=Training(epochs=3), **own) for own in options]
    stored = train_stacks(methods, tasks)
    calls = scarce()
    recomputed = train_stacks(methods, tasks)
    assert calls
    for actual, expected in zip(recomputed, stored, strict=True):
        assert actual.curve.losses == pytest.approx(expected.curve.losses, rel=1e-4)
        close(actual.scores, expected.scores, rtol=1e-3, atol=1e-3)


def test_passes_without_gradients_are_not_checkpointed(method, scarce):
    calls = scarce()
    graph = suiting(nodes=60)
    network = method(layers=4).network(graph)
    network.eval()(graph)
    with torch.no_grad():
        network.train()(graph)
    assert not calls


def saved_bytes(method, *, half=False):
    """Bytes that a deep network saves for the backward pass."""
    graph = suiting(nodes=600)
    network = method(layers=64).network(graph).train()
    sizes = {}

    def record(tensor):
        sizes[tensor.untyped_storage().data_ptr()] = tensor.nbytes
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=half),
    ):
        logits = network(graph)
    assert logits.requires_grad
    return sum(sizes.values())


def test_less_is_saved_for_backward(method, scarce):
    stored = saved_bytes(method)
    scarce()
    assert saved_bytes(method) < stored / 3


def test_bfloat16_activations_are_saved_as_bfloat16(method, scarce):
    scarce()
    assert saved_bytes(method, half=True) < 0.8 * saved_bytes(method)
