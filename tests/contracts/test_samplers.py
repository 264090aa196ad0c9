"""What every batching promises, on graphs of every kind."""

import inspect
from dataclasses import fields, replace
from importlib import import_module

import jaxtyping
import pytest
import torch
from graphs import HAND_DRAWN, suiting
from sources import modules

from unalike import UserError
from unalike.samplers import SAMPLERS
from unalike.samplers import base as batching_module
from unalike.samplers.base import Sampler

SMALL = {
    "size": 3,
    "parts": 4,
    "at_once": 2,
    "budget": 6,
    "roots": 4,
    "steps": 3,
    "fan_out": (2, 2),
}
"""Settings that make batches of small graphs."""

SCORINGS = [
    (name, scoring)
    for name, kind in SAMPLERS.items()
    for scoring in ("graph", "batches", "parts", None)
    if (scoring is None) != any(field.name == "scoring" for field in fields(kind))
    and not (scoring == "batches" and name.startswith("saint"))
]


def small(name, **settings):
    """A batching of a kind with small settings, where it has them."""
    kind = SAMPLERS[name]
    known = {field.name for field in fields(kind)}
    wanted = {key: value for key, value in SMALL.items() if key in known}
    return kind(**wanted | settings)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Partitions are kept away from real data."""
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path))


def learned(batching, graph, train, seed=0):
    return list(batching.epoch(graph, train, seeded(seed)))


GRAPHS = HAND_DRAWN | {
    "undirected": suiting(nodes=40),
    "of sparse features": suiting(nodes=40, features="sparse", directed=True),
}


def may_draw(name, graph):
    """Can this kind of batch be drawn from the graph?"""
    return graph.adjacency.nnz or name not in ("saint-nodes", "saint-edges")


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_batch_is_part_of_the_graph(name, kind):
    graph = GRAPHS[kind]
    if not may_draw(name, graph):
        pytest.skip("it draws edges, and there are none")
    train = torch.arange(0, graph.num_nodes, 2)
    dense, features = graph.adjacency.to_dense(), graph.features.to_dense()
    for batch in learned(small(name), graph, train):
        cut, ids = batch.graph, batch.graph.ids
        assert len(ids.unique()) == len(ids) == cut.num_nodes == len(batch.loss_weight)
        inside = dense[ids] if name == "rows" else dense[ids][:, ids]
        assert cut.adjacency.shape == inside.shape
        assert (cut.adjacency.to_dense() * (inside == 0) == 0).all()
        assert torch.equal(cut.features.to_dense(), features[ids])
        assert torch.equal(cut.labels, graph.labels[ids])
        assert cut.num_classes == graph.num_classes
        assert torch.equal(
            batch.loss_weight > 0, torch.isin(ids, train) & (batch.loss_weight > 0)
        )
        assert batch.loss_weight.any()


@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"neighbours", "rows"}))
def test_a_batch_of_pieces_is_induced_and_learns_from_all_train_nodes(name):
    graph = suiting(nodes=40)
    train = torch.arange(0, 40, 3)
    dense = graph.adjacency.to_dense()
    for batch in learned(small(name), graph, train):
        ids = batch.graph.ids
        assert torch.equal(batch.graph.adjacency.to_dense(), dense[ids][:, ids])
        assert batch.graph.adjacency.is_symmetric
        assert torch.equal(batch.loss_weight, torch.isin(ids, train).float())


@pytest.mark.parametrize("name", ["full", "clusters", "random-parts", "neighbours"])
def test_every_train_node_is_learned_from_once_an_epoch(name):
    graph = suiting(nodes=40)
    train = torch.tensor([5, 0, 17, 39, 20, 21, 22, 3])
    batches = learned(small(name), graph, train)
    found = torch.cat([batch.graph.ids[batch.loss_weight > 0] for batch in batches])
    assert found.sort().values.tolist() == train.sort().values.tolist()


@pytest.mark.parametrize("name", SAMPLERS)
def test_without_train_nodes_there_is_nothing_to_learn(name):
    assert learned(small(name), suiting(nodes=20), torch.arange(0)) == []


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", SAMPLERS)
def test_same_seed_same_batches(name, directed):
    graph = suiting(nodes=60, directed=directed)
    train, batching = torch.arange(0, 60, 2), small(name)
    once, again, other = (
        [
            (batch.graph.ids.tolist(), batch.graph.adjacency.to_dense().tolist())
            for batch in learned(batching, graph, train, seed)
        ]
        for seed in (1, 1, 2)
    )
    assert once == again
    assert (once == other) == (name == "full")


@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"full"}))
def test_epochs_differ(name):
    graph, generator = suiting(nodes=60), seeded()
    train = torch.arange(60)
    first, second = (
        [
            batch.graph.ids.tolist()
            for batch in small(name).epoch(graph, train, generator)
        ]
        for _ in range(2)
    )
    assert first != second


@pytest.mark.parametrize("name", SAMPLERS)
def test_no_other_chance_is_used(name):
    graph, before = suiting(nodes=40), torch.random.get_rng_state()
    learned(small(name), graph, torch.arange(40))
    list(small(name).inference_batches(graph, seeded()))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.fixture
def one_by_one(monkeypatch):
    """Pieces are scored each by itself, as those of large graphs are."""
    monkeypatch.setattr(batching_module, "MAX_GROUPED_NNZ", 0)


def covering(name, scoring, graph):
    batching = small(name) if scoring is None else small(name, scoring=scoring)
    return list(batching.inference_batches(graph, seeded()))


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize(("name", "scoring"), SCORINGS)
def test_a_cover_holds_every_node_once(name, scoring, kind, one_by_one):
    graph = GRAPHS[kind]
    pieces = covering(name, scoring, graph)
    found = torch.cat([piece.ids for piece in pieces])
    assert found.sort().values.tolist() == list(range(graph.num_nodes))
    dense = graph.adjacency.to_dense()
    for piece in pieces:
        assert torch.equal(piece.adjacency.to_dense(), dense[piece.ids][:, piece.ids])


def as_one(pieces, nodes):
    """The edges of all pieces, between the nodes of the graph."""
    dense = torch.zeros(nodes, nodes)
    for piece in pieces:
        dense[piece.ids[:, None], piece.ids] = piece.adjacency.to_dense()
    return dense


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize(("name", "scoring"), SCORINGS)
def test_small_pieces_are_scored_side_by_side(name, scoring, kind, monkeypatch):
    graph = GRAPHS[kind]
    (joined,) = covering(name, scoring, graph)
    assert graph.directed or joined.adjacency.is_symmetric
    monkeypatch.setattr(batching_module, "MAX_GROUPED_NNZ", 0)
    alone = covering(name, scoring, graph)
    assert torch.equal(joined.ids, torch.arange(graph.num_nodes))
    assert torch.equal(joined.features.to_dense(), graph.features.to_dense())
    assert torch.equal(joined.labels, graph.labels)
    nodes = graph.num_nodes
    assert torch.equal(as_one([joined], nodes), as_one(alone, nodes))


@pytest.mark.parametrize(("name", "scoring"), SCORINGS)
def test_inference_uses_the_full_graph_by_default(name, scoring, one_by_one):
    graph = suiting(nodes=100)
    assert next(small(name).inference_batches(graph, seeded())) is graph
    counts = {"parts": 10, "batches": {"clusters": 2}.get(name, 4)}
    assert len(covering(name, scoring, graph)) == counts.get(scoring, 1)


def test_as_many_pieces_side_by_side_as_have_so_many_entries(monkeypatch):
    graph = suiting(nodes=100)
    monkeypatch.setattr(batching_module, "MAX_GROUPED_NNZ", 400)
    pieces = covering("random-parts", "parts", graph)
    loads = [int(graph.adjacency.degrees[piece.ids].sum()) for piece in pieces]
    assert 1 < len(pieces) < 10
    assert max(loads) <= 400


@pytest.fixture
def no_type_checks():
    """Values of another type than the annotated one, as users may give them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("no_type_checks")
@pytest.mark.parametrize(("name", "scoring"), [one for one in SCORINGS if one[1]])
def test_unknown_scoring_is_refused(name, scoring):
    with pytest.raises(UserError, match=rf"No scoring 'x{scoring}'. Did you mean"):
        small(name, scoring=f"x{scoring}")


@pytest.mark.parametrize("name", ["saint-nodes", "saint-edges"])
def test_edges_cannot_be_drawn_where_there_are_none(name):
    with pytest.raises(UserError, match="The graph has no edges"):
        learned(small(name), HAND_DRAWN["no edges"], torch.arange(3))


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        (name, field.name, 0)
        for name, kind in SAMPLERS.items()
        for field in fields(kind)
        if field.type == "int"
    ]
    + [("neighbours", "fan_out", ()), ("neighbours", "fan_out", (5, 0))],
)
def test_settings_out_of_range_are_refused(name, setting, value):
    with pytest.raises(UserError, match=f"{setting} is .*at least 1"):
        SAMPLERS[name](**{setting: value})


def test_every_batching_is_in_the_table():
    found = {
        one
        for name in modules("samplers")
        for one in vars(import_module(f"unalike.samplers.{name}")).values()
        if inspect.isclass(one)
        and issubclass(one, Sampler)
        and not inspect.isabstract(one)
    }
    assert found == set(SAMPLERS.values())


@pytest.mark.parametrize("name", SAMPLERS)
def test_settings_are_compared_by_value(name):
    assert small(name) == replace(small(name))
    assert hash(small(name)) == hash(replace(small(name)))
