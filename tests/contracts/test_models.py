"""Models of every method: same scores from a file, new nodes, explanations."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from graphs import suiting, tasks_of
from scipy.sparse import block_array, csr_array, hstack

from unalike import METHODS, Adjacency, Graph, UserError, load_model
from unalike.inference.explain import explain
from unalike.inference.model import fit_model
from unalike.methods.base import RowWiseMethod, TrainedMethod
from unalike.options import options_of, with_options

TRAINED = [name for name, kind in METHODS.items() if issubclass(kind, TrainedMethod)]
ROW_WISE = [name for name in TRAINED if issubclass(METHODS[name], RowWiseMethod)]
DIRECTED = [
    (name, directions)
    for name in ROW_WISE
    for directions in ("out", "in", "both", "undirected")
    if directions == "out" or "directions" in options_of(METHODS[name]())
]
VIEWS = ("views", "views-trees")
"""Their models are tested in tests/unit/views/test_views_model.py."""
LEFT_OUT = torch.arange(5, 60, 7)


def some(name, **options):
    quick = {"epochs": 5, "layers": 2, "hidden": 8, **options}
    usual = METHODS[name]()
    known = options_of(usual)
    return with_options(usual, {k: v for k, v in quick.items() if k in known}, name)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_a_saved_model_gives_the_same_scores(name, features, tmp_path):
    (task,) = tasks_of(suiting(nodes=60, features=features, directed=True))
    model, solution = fit_model(some(name), task)
    size = model.save(tmp_path / "a.safetensors")
    loaded = load_model(tmp_path / "a.safetensors")
    assert size == (tmp_path / "a.safetensors").stat().st_size
    assert loaded.method == model.method
    torch.testing.assert_close(loaded.scores(task.graph), solution.scores)
    assert torch.equal(loaded.scores(task.graph), model.scores(task.graph))


@pytest.mark.parametrize(
    ("name", "option"), [("appnp", "alpha"), ("gcnii", "alpha"), ("gcnii", "theta")]
)
def test_options_are_not_stored_among_the_weights(name, option):
    (task,) = tasks_of(suiting(nodes=60))
    model, _ = fit_model(some(name), task)
    other = replace(model, method=replace(model.method, **{option: 0.9}))
    parts = dict(model.network.named_parameters())
    norms = (".p", "running_mean", "running_var", "num_batches_tracked")
    assert all(part in parts or part.endswith(norms) for part in model.weights)
    assert not torch.allclose(other.scores(task.graph), model.scores(task.graph))


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(TRAINED) - set(VIEWS)))
def test_untrained_methods_have_no_model(name):
    (task,) = tasks_of(suiting(nodes=60))
    with pytest.raises(UserError, match=f"{name} leaves no model to save.*linkx"):
        fit_model(METHODS[name](), task)


def apart(graph):
    """The nodes that stay, and the rows of those that leave, cut down to them."""
    stays = torch.ones(graph.num_nodes, dtype=torch.bool)
    stays[LEFT_OUT] = False
    here = graph.subgraph(stays.nonzero()[:, 0])
    rows = graph.adjacency.to_scipy().tocsr()
    kept = stays.nonzero()[:, 0].numpy()
    out = rows[LEFT_OUT.numpy()][:, kept]
    into = rows.T.tocsr()[LEFT_OUT.numpy()][:, kept]
    return Graph.build(
        here.adjacency,
        features=here.features,
        labels=here.labels,
        num_classes=graph.num_classes,
        directed=graph.directed,
    ), (out, into)


def inside(graph, rows):
    """The graph that stays and, behind it, nodes that nobody else knows of."""
    out, into = rows
    nobody = csr_array((len(LEFT_OUT), len(LEFT_OUT)), dtype=np.int8)
    return block_array([[graph.adjacency.to_scipy(), into.T], [out, nobody]]).tocsr()


@pytest.mark.parametrize(("name", "directions"), DIRECTED)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("features", ["dense", "sparse", "none"])
@pytest.mark.long
def test_new_nodes_score_like_rows_of_the_graph(name, directions, directed, features):
    whole = suiting(nodes=60, features=features, directed=directed)
    graph, (out, into) = apart(whole)
    (task,) = tasks_of(graph)
    model, _ = fit_model(some(name, directions=directions, binarised=False), task)
    own = whole.features[LEFT_OUT]
    found = model.predict(out, own, entering=into if directed else None)
    prepared = model.method.prepare(
        Graph.from_scipy(inside(graph, (out, into)), labels=torch.zeros(60).long())
    )
    known = graph.num_nodes
    rows = prepared.adjacency[known:].to_scipy().tocsc()
    # Columns of nodes that are not known hold nothing that was learned.
    blocks = [rows[:, first : first + known] for first in range(0, rows.shape[1], 60)]
    cut = Adjacency.from_scipy(hstack(blocks).tocsr(), weighted=False)
    batch = Graph.build(cut, features=own, num_classes=2, directed=directed)
    with torch.no_grad():
        expected = model.network(batch).double().softmax(1)
    torch.testing.assert_close(found.probabilities, expected)
    assert found.unknown == 0


@pytest.mark.parametrize("name", sorted(set(TRAINED) - set(ROW_WISE)))
def test_message_passing_refuses_new_nodes(name):
    (task,) = tasks_of(suiting(nodes=60))
    model, _ = fit_model(some(name), task)
    with pytest.raises(UserError, match=f"{name} cannot score new nodes.*linkx"):
        model.predict([(0, 1)], torch.zeros(1, 2))


@pytest.mark.parametrize("name", ROW_WISE)
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.long
def test_contributions_add_up_and_leave_one_out_is_exact(name, features):
    (task,) = tasks_of(suiting(nodes=60, features=features))
    model, _ = fit_model(some(name, epochs=30, edge_layers=2, binarised=False), task)
    rows = model.method.prepare(task.graph).select_rows(torch.tensor([3]))
    (why,) = explain(model, rows)
    scores = model.score_rows(rows)[0].double()
    best, other = (model.classes.index(one) for one in (why.label, why.against))
    odds = float(scores[best] - scores[other])
    assert why.log_odds == pytest.approx(odds, abs=1e-5)
    assert sum(p.share for p in why.pushes) + why.rest == pytest.approx(odds, abs=1e-5)
    pushed = [push for push in why.pushes if push.kind == "neighbour"]
    assert len(pushed) == (rows.adjacency.nnz if model.reads_edges else 0)
    for push in pushed[:2]:
        left = rows.adjacency.to_scipy().tolil()
        left[0, push.name] = 0
        without, _ = model.new_nodes(left.tocsr(), rows.features)
        after = model.score_rows(without)[0].double()
        change = odds - float(after[best] - after[other])
        assert push.change == pytest.approx(change, abs=1e-5)
