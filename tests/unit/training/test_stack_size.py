"""The number of stacked runs follows the free memory of a device."""

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import LINKX, MLP, Adjacency, Graph, Training
from unalike.nn.weights_on_disk import empty_weights
from unalike.system import free_memory
from unalike.training import stack


@pytest.mark.parametrize(("fits", "runs"), [(0.1, 1), (1.5, 1), (10.1, 7), (100.1, 70)])
def test_a_stack_leaves_some_gpu_memory_free(fits, runs, monkeypatch):
    graph = suiting()
    network = LINKX().network(graph)
    free = int(fits * stack.memory_per_run(network, graph, row_wise=True))
    monkeypatch.setattr(stack, "free_memory", lambda device: free)
    device = torch.device("cuda")
    assert stack.max_stacked_runs(network, graph, device, row_wise=True) == runs


def test_a_stack_of_dense_mlps_fits_into_main_memory():
    nodes = 3_000_000
    rows = Adjacency(torch.zeros(nodes + 1).long(), torch.zeros(0).int(), nodes)
    graph = Graph.build(rows, features=torch.zeros(nodes, 2), num_classes=2)
    module, cpu = MLP(hidden=256).network_on_meta(graph), torch.device("cpu")
    runs = stack.max_stacked_runs(module, graph, cpu, row_wise=True)
    needed = stack.memory_per_run(module, graph, row_wise=True)
    assert needed > 4 * nodes * 256
    assert runs == 1 or runs * needed < free_memory(cpu)


def test_the_estimate_of_a_stack_builds_no_weights(monkeypatch):
    build, devices = LINKX.build_module, []

    def noted(method, graph):
        module = build(method, graph)
        devices.append({weight.device.type for weight in module.parameters()})
        return module

    monkeypatch.setattr(LINKX, "build_module", noted)
    (task,) = tasks_of(suiting())
    LINKX(hidden=4, training=Training(epochs=1)).solve(task)
    assert devices == [{"meta"}, {"cpu"}]


def test_weights_on_the_meta_device_are_in_no_file():
    with torch.device("meta"):
        assert empty_weights((10**12, 1000)).is_meta
