"""Minibatches on a GPU: made on it or copied to it, the same curve as on the CPU."""

import pytest
import torch

from unalike import Adjacency, Graph, Task, random_splits
from unalike.data.csr import transpose
from unalike.data.metrics import ACCURACY
from unalike.methods.gcn import GCN
from unalike.methods.linkx import LINKX
from unalike.samplers.base import RandomPartSampler
from unalike.samplers.clusters import ClusterSampler
from unalike.samplers.graphsaint import GraphSAINTRandomWalkSampler
from unalike.samplers.rows import RowSampler
from unalike.training import memory, minibatch
from unalike.training.state import Training

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def random_task():
    torch.manual_seed(0)
    labels = torch.randint(3, (500,))
    source, target = torch.randint(500, (2, 7000))
    mask = (labels[source] != labels[target]) | (torch.rand(7000) < 0.2)
    graph = Graph.from_edges(
        source[mask],
        target[mask],
        num_nodes=500,
        features=torch.randn(500, 20) + labels[:, None] / 3,
        labels=labels,
    )
    return Task.from_split(graph, random_splits(graph.labels, count=1)[0], ACCURACY, 0)


def assert_same_on_gpu_and_cpu(method, task):
    gpu, cpu = (method.solve(task, device=device) for device in ("cuda", "cpu"))
    assert gpu.curve.losses == pytest.approx(cpu.curve.losses, rel=1e-3, abs=1e-4)
    # A bias before a batch norm follows rounding errors and changes little else.
    assert (gpu.scores - cpu.scores).abs().mean() < 0.1


@pytest.mark.parametrize("share", [memory.MAX_GRAPH_SHARE, 0.0])
@pytest.mark.parametrize("tables", ["adamw", "lazy", "adagrad"])
@pytest.mark.parametrize("style", ["shuffled", "paper"])
def test_row_batches_made_on_the_gpu_or_copied(style, tables, share, monkeypatch):
    monkeypatch.setattr(memory, "MAX_GRAPH_SHARE", share)
    batching = RowSampler(size=60, style=style, tables=tables)
    method = LINKX(batching=batching, training=Training(epochs=8))
    assert_same_on_gpu_and_cpu(method, random_task())


@pytest.mark.parametrize(
    "batching",
    [
        RandomPartSampler(parts=4),
        GraphSAINTRandomWalkSampler(roots=50),
        ClusterSampler(parts=4),
        ClusterSampler(parts=4, at_once=2),
    ],
)
def test_subgraphs_are_copied_to_the_gpu(batching):
    if isinstance(batching, ClusterSampler):
        pytest.importorskip("pymetis")
    method = GCN(dropout=0.0, batching=batching, training=Training(epochs=8))
    assert_same_on_gpu_and_cpu(method, random_task())


@pytest.mark.parametrize("weighted", [False, True])
def test_transpose(weighted):
    torch.manual_seed(0)
    source, target = torch.randint(300, (5000,)), torch.randint(700, (5000,))
    values = torch.rand(5000) if weighted else None
    rows = Adjacency.from_edges(source, target, shape=(300, 700), values=values)
    actual, expected = transpose(rows.to("cuda")), transpose(rows)
    assert torch.equal(actual.indptr.cpu(), expected.indptr)
    assert torch.equal(actual.indices.cpu(), expected.indices)
    assert actual.num_cols == expected.num_cols
    assert (actual.values is None) == (expected.values is None)
    if actual.values is not None:
        assert torch.equal(actual.values.cpu(), expected.values)


def test_prediction_falls_back_to_the_cpu_where_gpu_memory_is_short(monkeypatch):
    task, predict_into = random_task(), minibatch.predict_into

    def out_of_memory(state, batches, scores, **options):
        if state.stack.params.weight.is_cuda:
            raise torch.OutOfMemoryError
        return predict_into(state, batches, scores, **options)

    method = GCN(batching=RandomPartSampler(parts=4), training=Training(epochs=8))
    on_gpu = method.solve(task, device="cuda")
    monkeypatch.setattr(minibatch, "predict_into", out_of_memory)
    on_cpu = method.solve(task, device="cuda")
    assert on_cpu.curve.losses == on_gpu.curve.losses
    assert (on_cpu.scores - on_gpu.scores).abs().max() < 1e-3
