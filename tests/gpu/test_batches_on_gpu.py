"""Batches on a card: cut there or carried there, the same curve as on a CPU."""

import pytest
import torch

from unalike import Adjacency, Graph, Task, random_splits
from unalike.data.csr import transpose
from unalike.data.metrics import ACCURACY
from unalike.methods.gcn import GCN
from unalike.methods.linkx import LINKX
from unalike.samplers.clusters import ClusterSampler
from unalike.samplers.graphsaint import GraphSAINTRandomWalkSampler
from unalike.samplers.random_parts import RandomPartSampler
from unalike.samplers.rows import RowSampler
from unalike.training import memory, minibatch
from unalike.training.settings import Training

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def some_task():
    torch.manual_seed(0)
    labels = torch.randint(3, (500,))
    source, target = torch.randint(500, (2, 7000))
    kept = (labels[source] != labels[target]) | (torch.rand(7000) < 0.2)
    graph = Graph.from_edges(
        source[kept],
        target[kept],
        num_nodes=500,
        features=torch.randn(500, 20) + labels[:, None] / 3,
        labels=labels,
    )
    return Task.from_split(graph, random_splits(graph.labels, count=1)[0], ACCURACY, 0)


def assert_like_on_cores(method, task):
    card, cores = (method.solve(task, device=place) for place in ("cuda", "cpu"))
    assert card.curve.losses == pytest.approx(cores.curve.losses, rel=1e-3, abs=1e-4)
    # Offsets before a batch norm follow rounding errors: they change little else.
    assert (card.scores - cores.scores).abs().mean() < 0.1


@pytest.mark.parametrize("room", [memory.MAX_GRAPH_SHARE, 0.0])
@pytest.mark.parametrize("tables", ["adamw", "lazy", "adagrad"])
@pytest.mark.parametrize("style", ["shuffled", "paper"])
def test_rows_cut_there_or_carried_there(style, tables, room, monkeypatch):
    monkeypatch.setattr(memory, "MAX_GRAPH_SHARE", room)
    batching = RowSampler(size=60, style=style, tables=tables)
    method = LINKX(batching=batching, training=Training(epochs=8))
    assert_like_on_cores(method, some_task())


@pytest.mark.parametrize(
    "batching",
    [
        RandomPartSampler(parts=4),
        GraphSAINTRandomWalkSampler(roots=50),
        ClusterSampler(parts=4),
        ClusterSampler(parts=4, at_once=2),
    ],
)
def test_subgraphs_are_carried_there(batching):
    if isinstance(batching, ClusterSampler):
        pytest.importorskip("pymetis")
    method = GCN(dropout=0.0, batching=batching, training=Training(epochs=8))
    assert_like_on_cores(method, some_task())


@pytest.mark.parametrize("weighted", [False, True])
def test_transposition(weighted):
    torch.manual_seed(0)
    source, target = torch.randint(300, (5000,)), torch.randint(700, (5000,))
    values = torch.rand(5000) if weighted else None
    rows = Adjacency.from_edges(source, target, shape=(300, 700), values=values)
    found, wanted = transpose(rows.to("cuda")), transpose(rows)
    assert torch.equal(found.starts.cpu(), wanted.starts)
    assert torch.equal(found.columns.cpu(), wanted.columns)
    assert found.width == wanted.width
    assert (found.values is None) == (wanted.values is None)
    if found.values is not None:
        assert torch.equal(found.values.cpu(), wanted.values)


def test_what_a_card_cannot_score_is_scored_in_main_memory(monkeypatch):
    task, scored = some_task(), minibatch.predict_into

    def short_of_memory(state, pieces, scores, *, best):
        if state.stack.rest.now.is_cuda:
            raise torch.OutOfMemoryError
        return scored(state, pieces, scores, best=best)

    method = GCN(batching=RandomPartSampler(parts=4), training=Training(epochs=8))
    calm = method.solve(task, device="cuda")
    monkeypatch.setattr(minibatch, "predict_into", short_of_memory)
    crowded = method.solve(task, device="cuda")
    assert crowded.curve.losses == calm.curve.losses
    assert (crowded.scores - calm.scores).abs().max() < 1e-3
