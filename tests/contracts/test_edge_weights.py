"""Edge weights: imported, used by every method that can, refused by the others."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from graphs import suiting

from unalike import (
    Adjacency,
    ImportOptions,
    NodeClassifier,
    Training,
    UserError,
    import_graph,
    load_model,
    open_graph,
    run,
    save_graph,
)
from unalike.cli.main import main
from unalike.methods import METHODS
from unalike.methods.base import TrainedMethod
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.methods.gat import GAT

IGNORE_WEIGHTS = {"gat", "gat-jk", "h2gcn", "polynormer", "views", "views-trees"}
SHORT = Training(epochs=3, lr=0.1)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def weighted(graph, seed=0):
    """The graph with a random weight for each undirected edge."""
    rows = graph.adjacency.to_scipy().astype(np.float32)
    upper = scipy.sparse.triu(rows, 1).tocsr()
    upper.data = np.random.default_rng(seed).exponential(size=upper.nnz) + 0.01
    adjacency = Adjacency.from_scipy(scipy.sparse.csr_array(upper + upper.T))
    return replace(graph, adjacency=adjacency)


def without_weights(graph):
    rows = graph.adjacency.to_scipy()
    return replace(graph, adjacency=Adjacency.from_scipy(rows, weighted=False))


def short(name):
    kind = METHODS[name]
    if issubclass(kind, TrainedMethod):
        return kind(training=SHORT)
    return (
        kind(base=METHODS["link"](training=SHORT)) if name.startswith("c") else kind()
    )


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"mlp"}))
def test_a_method_uses_edge_weights_or_refuses_them(name):
    graph = weighted(suiting(nodes=80))
    if name in IGNORE_WEIGHTS:
        with pytest.raises(UserError, match=f"{name} ignores edge weights"):
            run(graph, short(name), splits=[0])
        return
    results = [
        NodeClassifier(short(name)).fit(one).predict_proba()
        for one in (graph, without_weights(graph))
    ]
    assert not np.allclose(*results)


def test_what_is_smoothed_uses_weights_if_its_base_does():
    graph = weighted(suiting(nodes=80))
    with pytest.raises(UserError, match="correct-and-smooth ignores edge weights"):
        run(graph, CorrectAndSmooth(base=GAT(training=SHORT)), splits=[0])


def test_a_classifier_refuses_weights_that_it_would_ignore():
    with pytest.raises(UserError, match="gat ignores edge weights"):
        NodeClassifier("gat").fit(weighted(suiting(nodes=80)))


@pytest.mark.parametrize("directed", [False, True])
def test_imported_weights_are_those_of_a_sparse_matrix(directed):
    rng = np.random.default_rng(1)
    source, target = rng.integers(0, 40, (2, 3000))  # rows of more than 64 entries
    weight = rng.exponential(size=3000).astype(np.float32)
    lines = [f"{u},{w},{v}" for u, w, v in zip(source, weight, target, strict=True)]
    Path("edges.csv").write_text("u,strength,v\n" + "\n".join(lines))
    options = ImportOptions(weight="strength", directed=directed)
    import_graph("edges.csv", out="g", options=options)
    expected = np.zeros((40, 40))
    np.add.at(expected, (source, target), weight)
    if not directed:
        mirrored = np.zeros((40, 40))
        np.add.at(mirrored, (target, source), weight * (source != target))
        expected = expected + mirrored
    adjacency = open_graph("g").graph.adjacency
    assert np.allclose(adjacency.to_dense().numpy(), expected, rtol=1e-5)
    assert main(["import", "--verify", "g"]) == 0


def test_weights_of_one_are_those_of_an_import_without():
    Path("edges.csv").write_text("u,v,w\n0,1,1\n1,2,1\n2,0,1\n")
    import_graph("edges.csv", out="g", options=ImportOptions(weight="w"))
    assert open_graph("g").graph.adjacency.to_dense().sum() == 6


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("-2", "row 2 .line 3.: the weight .column 'w'. -2 is not above 0"),
        ("0", "0 is not above 0"),
        ("inf", "inf is not above 0 and finite"),
        ("", "the weight .column 'w'. is missing"),
        ("heavy", "the weight 'heavy' .column 'w'. is no number"),
        ('"3,5"', "the weight '3,5' .column 'w'. is no number"),
    ],
)
def test_a_weight_that_is_no_positive_number_is_an_error(value, message):
    Path("edges.csv").write_text(f"u,v,w\n0,1,1\n1,2,{value}\n")
    with pytest.raises(UserError, match=message):
        import_graph("edges.csv", out="g", options=ImportOptions(weight="w"))


def test_weights_of_a_repeated_edge_may_not_add_up_to_infinity():
    Path("edges.csv").write_text("u,v,w\n0,1,3e38\n1,0,3e38\n1,2,1\n")
    with pytest.raises(UserError, match="repeated edge add up to more"):
        import_graph("edges.csv", out="g", options=ImportOptions(weight="w"))
    assert not Path("g").exists()


def saved(graph):
    save_graph("g", graph, splits=[])
    NodeClassifier(METHODS["linkx"](training=SHORT)).fit(open_graph("g")).save(
        "model.safetensors"
    )
    return load_model("model.safetensors")


def test_new_nodes_are_scored_by_the_weights_of_their_edges(capsys):
    graph = replace(weighted(suiting(nodes=80)), features=torch.zeros(80, 0))
    model = saved(graph)
    Path("new.csv").write_text("u,v,w\nnew,3,0.5\nnew,9,2.5\nother,4,1\n")
    command = ["predict", "model.safetensors", "--edges", "new.csv", "--json"]
    assert main(command) == 1
    assert "name the column of weights by --weight" in capsys.readouterr().err
    assert main([*command, "--weight", "w"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = scipy.sparse.coo_array(([0.5, 2.5, 1.0], ([0, 0, 1], [3, 9, 4])), (2, 80))
    prepared, _ = model.new_nodes(rows)
    expected = model.to_prediction(model.score_rows(prepared)).probabilities
    triples = [(0, 3, 0.5), (0, 9, 2.5), (1, 4, 1.0)]
    from_triples, _ = model.new_nodes(triples)
    assert torch.equal(from_triples.adjacency.values, prepared.adjacency.values)
    assert np.allclose(probabilities(document), expected.numpy(), atol=1e-5)


def probabilities(document):
    names = sorted(key for key in document["scores"][0] if key.startswith("p_"))
    return [[node[name] for name in names] for node in document["scores"]]


def test_edges_without_weights_need_no_column(capsys):
    graph = replace(suiting(nodes=80), features=torch.zeros(80, 0))
    saved(graph)
    Path("new.csv").write_text("u,v,w\nnew,3,0.5\n")
    command = ["predict", "model.safetensors", "--edges", "new.csv"]
    assert main([*command, "--weight", "w"]) == 1
    assert "without weights; omit --weight" in capsys.readouterr().err
