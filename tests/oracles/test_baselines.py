"""Baselines of the benchmarks have the size and shape of our methods and train."""

import pyg_models as pyg
import pytest
import torch
from graphs import suiting
from torch.nn import functional as F

from unalike import random_splits
from unalike.bench.baselines import METHOD_BASELINES
from unalike.bench.epochs import EngineEpoch, MethodsBenchmark
from unalike.methods import METHODS

assert pyg.Data  # imported with its warnings silenced

CPU = torch.device("cpu")
FORMS = [
    (name, form)
    for name, baseline in METHOD_BASELINES.items()
    if name in METHODS
    for form in baseline.edge_formats
]
every_form = pytest.mark.parametrize(("name", "form"), FORMS)


def pair(name, form, graph, *, layers=None):
    """A method of ours and the network of others, with its edges."""
    torch.manual_seed(0)
    baseline = METHOD_BASELINES[name]
    method = MethodsBenchmark(layers=layers, device=CPU).method(name, baseline, 16)
    return method, baseline.make(baseline.edge_formats[form], method, graph)


@every_form
@pytest.mark.parametrize("layers", [None, 1, 3])
def test_both_have_as_many_parameters_and_outputs_of_one_shape(name, form, layers):
    graph = suiting(classes=3)
    method, (theirs, edges) = pair(name, form, graph, layers=layers)
    ours = method.network(method.prepare(graph))
    assert sum(p.numel() for p in ours.parameters()) == sum(
        p.numel() for p in theirs.parameters()
    )
    wanted = ours(graph).shape
    assert theirs(graph.features, *edges).shape == wanted


@every_form
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.long
def test_both_reduce_the_loss(name, form, directed):
    graph = suiting(directed=directed)
    (split,) = random_splits(graph.labels, count=1)
    method, (theirs, edges) = pair(name, form, graph)
    ours = EngineEpoch.begin(graph, [split], method, device=CPU)
    advance = ours.epoch()
    optimiser = torch.optim.AdamW(theirs.parameters(), lr=0.01)
    losses = []
    for _ in range(15):
        advance()
        optimiser.zero_grad()
        scores = theirs(graph.features, *edges)[split.train]
        loss = F.cross_entropy(scores, graph.labels[split.train])
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert ours.state.losses[14] < ours.state.losses[0]


@pytest.mark.parametrize("name", sorted({name for name, _ in FORMS}))
def test_edge_formats_give_the_same_output(name):
    graph = suiting(directed=True)
    scores = []
    for form in METHOD_BASELINES[name].edge_formats:
        _, (theirs, edges) = pair(name, form, graph)
        scores.append(theirs.eval()(graph.features, *edges))
    for other in scores[1:]:
        torch.testing.assert_close(other, scores[0], rtol=1e-4, atol=1e-5)
