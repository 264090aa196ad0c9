"""Scores in an engine are those of `predict`, and a sample is a stored graph."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from engines import as_arrow, each_engine, frames, random_tables

from unalike import (
    GCN,
    LINKX,
    MLP,
    ImportOptions,
    Task,
    Training,
    UserError,
    Views,
    import_graph,
    load_model,
    open_graph,
    warehouse,
)
from unalike.cli.main import main
from unalike.data.metrics import ACCURACY
from unalike.inference.model import fit_model


def trained(tables, folder, method, *, directed, **columns):
    options = ImportOptions(label="kind", split="part", directed=directed, **columns)
    import_graph(*tables, out=folder / "graph", options=options)
    stored = open_graph(folder / "graph")
    [split] = stored.splits()
    task = Task.from_split(stored.load(), split, ACCURACY, 0)
    model, _ = fit_model(method, task, stored=stored)
    model.save(folder / "model.safetensors")
    return folder / "model.safetensors"


def new_tables(tables):
    """Edges of new nodes to known and unknown ones, both ways, and the new nodes."""
    known = tables[0]["source"].to_pylist()
    text = isinstance(known[0], str)
    new = [f"new {n}" if text else 5000 + n for n in range(12)]
    absent = "absent" if text else 9999
    pairs = [(new[n % 11], known[7 * n % len(known)]) for n in range(40)]
    pairs += (
        [(b, a) for a, b in pairs[::3]]
        + pairs[:2]
        + [(new[0], new[1]), (new[2], absent)]
    )
    edges = pa.table({"source": [a for a, _ in pairs], "target": [b for _, b in pairs]})
    numbers = [float(n % 5) for n in range(12)]
    return edges, pa.table({"id": new, "x": numbers, "y": numbers[::-1]})


def predicted(model, tables, folder):
    """The scores of the command, by id."""
    for name, table in zip(("edges", "nodes"), tables, strict=True):
        pq.write_table(table, folder / f"{name}.parquet")
    words = ["predict", str(model), "--edges", str(folder / "edges.parquet"), "--nodes"]
    words += [str(folder / "nodes.parquet"), "--out", str(folder / "scores.parquet")]
    assert main(words) == 0
    return pd.read_parquet(folder / "scores.parquet").set_index("id").sort_index()


def rows_of(scores):
    table = (
        scores.read_all()
        if isinstance(scores, pa.RecordBatchReader)
        else as_arrow(scores)
    )
    return pd.DataFrame(table.to_pydict()).set_index("id").sort_index()


def quick(kind):
    return kind(hidden=4, training=Training(epochs=10, lr=0.05))


@each_engine
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_engine_scores_new_nodes_as_predict_does(engine, directed, tmp_path):
    tables = random_tables(20, text=directed)
    model = trained(tables, tmp_path, quick(LINKX), directed=directed)
    new = new_tables(tables)
    expected = predicted(model, new, tmp_path)
    found = rows_of(warehouse.score(model, *frames(engine, *new)))
    assert list(found.columns) == list(expected.columns)
    assert found["class"].tolist() == expected["class"].tolist()
    for name in expected.columns[1:]:
        assert found[name].to_numpy() == pytest.approx(
            expected[name].to_numpy(), abs=1e-6
        )


@pytest.mark.parametrize("method", [quick(LINKX), quick(MLP)], ids=["linkx", "mlp"])
def test_known_nodes_are_scored_by_their_rows(method, tmp_path):
    tables = random_tables(21)
    path = trained(tables, tmp_path, method, directed=False)
    model, graph = load_model(path), open_graph(tmp_path / "graph").load()
    expected = model.to_prediction(model.scores(graph)).probabilities
    found = rows_of(warehouse.score(model, *tables))
    probabilities = torch.tensor(found.filter(like="p_").to_numpy())
    assert torch.allclose(probabilities.double(), expected, atol=1e-6)


def test_scores_are_written_to_a_file_or_not_at_all(tmp_path):
    tables = random_tables(22)
    model = trained(tables, tmp_path, quick(LINKX), directed=False)
    edges, nodes = new_tables(tables)
    out = tmp_path / "all.parquet"
    assert warehouse.score(model, edges, nodes, out=out) == out
    assert pq.read_table(out).num_rows == 12
    broken = pa.table({**{n: nodes[n] for n in ("id", "x")}, "y": ["text"] * 12})
    with pytest.raises(UserError):
        warehouse.score(model, edges, broken, out=tmp_path / "none.parquet")
    assert not list(tmp_path.glob("*none*"))


def test_mistakes_of_scoring_are_one_line(tmp_path):
    tables = random_tables(23)
    model = trained(tables, tmp_path, quick(LINKX), directed=False)
    edges, nodes = new_tables(tables)
    with pytest.raises(UserError, match="has no column 'y'"):
        warehouse.score(model, edges, nodes.drop_columns(["y"]))
    with pytest.raises(UserError, match="'5000' is a duplicate"):
        warehouse.score(model, edges, pa.concat_tables([nodes, nodes[:1]]))
    weighted = tables[0].append_column("w", pa.array([2.0] * len(tables[0])))
    (tmp_path / "w").mkdir()
    path = trained(
        (weighted, tables[1]), tmp_path / "w", quick(LINKX), directed=False, weight="w"
    )
    with pytest.raises(UserError, match="weighted edges"):
        warehouse.score(path, edges, nodes)
    (tmp_path / "gcn").mkdir()
    gcn = trained(tables, tmp_path / "gcn", quick(GCN), directed=False)
    with pytest.raises(UserError, match="gcn cannot score new nodes"):
        warehouse.score(gcn, edges, nodes)


def test_views_score_new_nodes_alone(tmp_path):
    tables = random_tables(24, nodes=60, edges=400)
    method = Views(bases=(), head="trees", rounds=1, views=("structure", "labels"))
    path = trained(tables, tmp_path, method, directed=False)
    new = new_tables(tables)
    expected = predicted(path, new, tmp_path)
    found = rows_of(warehouse.score(path, *new))
    assert found["class"].tolist() == expected["class"].tolist()
    with pytest.raises(UserError, match="predict --graph"):
        warehouse.score(path, *tables).read_all()


@each_engine
def test_a_sample_has_all_edges_of_its_labelled_nodes(engine, tmp_path):
    tables = random_tables(25, nodes=200, edges=500)
    edges, nodes = frames(engine, *tables)
    summary = warehouse.sample(
        edges,
        nodes,
        20,
        out=tmp_path / "s",
        label="kind",
        id="id",
        options=ImportOptions(ignore=("part",)),
    )
    stored = open_graph(tmp_path / "s")
    graph, [split] = stored.load(), stored.splits()
    core = torch.cat([split.valid, split.test])
    assert summary.nodes == graph.num_nodes < 200
    assert graph.num_features == 2
    names = stored.names.to_pylist()
    neighbours = {}
    for u, v in zip(
        *(tables[0][end].to_pylist() for end in ("source", "target")), strict=True
    ):
        neighbours.setdefault(u, set()).add(v)
        neighbours.setdefault(v, set()).add(u)
    for node in core.tolist():
        own = {names[i] for i in graph.adjacency[node : node + 1].indices.tolist()}
        assert own == neighbours.get(names[node], set())
    assert len(split.train) > len(core)
    again = warehouse.sample(
        edges,
        nodes,
        20,
        out=tmp_path / "again",
        label="kind",
        id="id",
        options=ImportOptions(ignore=("part",)),
    )
    assert again.nodes == summary.nodes


def test_a_sample_that_fails_leaves_nothing(tmp_path):
    edges, nodes = random_tables(26)
    with pytest.raises(UserError, match="no column 'kinds'"):
        warehouse.sample(edges, nodes, 5, out=tmp_path / "s", label="kinds")
    assert not list(tmp_path.iterdir())
