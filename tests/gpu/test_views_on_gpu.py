"""Views on a GPU: the columns of the CPU, and no bit of a row from its own label."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unalike import Graph
from unalike.data.metrics import ACCURACY
from unalike.data.task import Task
from unalike.views.folds import Folds
from unalike.views.table import SharedViews, ViewTable

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

GROUPS = ("structure", "features", "labels", "duplicates", "spectrum")


def random_graph(directed):
    rng = np.random.default_rng(0)
    return Graph.from_edges(
        *torch.from_numpy(rng.integers(0, 400, (2, 3000))),
        num_nodes=400,
        features=torch.from_numpy(rng.integers(0, 2, (400, 40))).float(),
        labels=torch.from_numpy(rng.integers(0, 3, 400)),
        num_classes=3,
        directed=directed,
    )


def table_of(graph, device, groups=GROUPS):
    task = Task(graph, torch.arange(0, 400, 2), torch.arange(0), ACCURACY)
    shared = SharedViews.of(graph, groups, 3, device)
    return ViewTable.of(shared, task, Folds.draw(400, 3, 0))


@pytest.mark.parametrize("directed", [False, True])
def test_views_on_a_gpu_are_those_of_the_cpu(directed):
    graph, everyone = random_graph(directed), torch.arange(400)
    expected, actual = (
        table_of(graph, device, GROUPS[:4]).rows(everyone) for device in ("cpu", "cuda")
    )
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("directed", [False, True])
def test_flipping_a_label_changes_no_bit_of_its_row_on_a_gpu(directed):
    graph = random_graph(directed)
    expected = table_of(graph, "cuda")
    for node in (0, 2, 100, 398):
        labels = graph.labels.clone()
        labels[node] = (labels[node] + 1) % 3
        flipped = table_of(replace(graph, labels=labels), "cuda")
        row = torch.tensor([node])
        assert torch.equal(flipped.rows(row), expected.rows(row))
