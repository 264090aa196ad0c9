"""The number of stacked runs follows the free memory of a GPU."""

import pytest
import torch
from graphs import suiting

from unalike import LINKX
from unalike.training import stack


@pytest.mark.parametrize(("fits", "runs"), [(0.1, 1), (1.5, 1), (10.1, 7), (100.1, 70)])
def test_a_stack_leaves_some_gpu_memory_free(fits, runs, monkeypatch):
    graph = suiting()
    network = LINKX().network(graph)
    free = int(fits * stack.memory_per_run(network, graph, row_wise=True))
    monkeypatch.setattr(stack, "free_memory", lambda device: free)
    device = torch.device("cuda")
    assert stack.max_stacked_runs(network, graph, device, row_wise=True) == runs
