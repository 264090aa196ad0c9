"""`unalike predict`: new nodes from files, known nodes, explanations, mistakes."""

import json
import random
import re

import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from unalike import load_model
from unalike.cli.main import main
from unalike.inference import new_node_tables
from unalike.inference import predict as scoring

QUICK = ["--epochs", "20", "--splits", "0"]
COUNTS = (
    "edges",
    "unknown_neighbours",
    "edges_without_new_nodes",
    "nodes_without_neighbours",
)
NEW = "id,age,city\nann,45,Rome\nbob,22,Paris\ncy,30,Oslo\n"
NEW_EDGES = "source,target\nann,p1\nann,p2\np3,bob\nann,zed\nann,bob\np1,p2\nann,p1\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with an imported graph of people, some models, and new people."""
    folder = tmp_path_factory.mktemp("shop")
    rng = random.Random(1)
    jobs = [rng.choice(["buyer", "seller"]) for _ in range(80)]
    rows = [
        f"p{i},{job},{rng.gauss(40 if job == 'buyer' else 30, 5):.1f},"
        f"{rng.choice(['Rome', 'Oslo'])}"
        for i, job in enumerate(jobs)
    ]
    pairs = [rng.sample(range(80), 2) for _ in range(900)]
    edges = [f"p{a},p{b}" for a, b in pairs if jobs[a] != jobs[b]]
    write(folder / "people.csv", "id,job,age,city", *rows)
    write(folder / "edges.csv", "source,target", *edges)
    (folder / "new.csv").write_text(NEW)
    (folder / "new-edges.csv").write_text(NEW_EDGES)
    for graph, direction in (("people", []), ("directed", ["--directed"])):
        tables = (folder / "edges.csv", "--nodes", folder / "people.csv")
        arguments = ("--label", "job", "--out", folder / graph, *direction)
        arguments = (*arguments, "--scale", "none")
        assert not run("import", *tables, *arguments)
    for name in ("linkx", "gcn", "mlp"):
        train(folder, "people", name, name)
    train(folder, "directed", "linkx", "both", "--directions", "both")
    return folder


@pytest.fixture(scope="module")
def views(shop):
    """The name of a saved model of views with trees and a logistic base."""
    groups = ("--views", "structure", "features", "labels", "bases")
    options = ("--bases", "logistic", "--rounds", "1", "--head", "trees")
    saved = ("--splits", "0", "--save", shop / "views.safetensors")
    assert not run("train", shop / "directed", "views", *groups, *options, *saved)
    return "views"


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")


def run(*arguments):
    return main([str(word) for word in arguments])


def train(folder, graph, method, name, *more):
    saved = folder / f"{name}.safetensors"
    assert not run("train", folder / graph, method, *QUICK, *more, "--save", saved)


def predict(shop, capsys, model="linkx", *arguments):
    capsys.readouterr()
    assert not run("predict", shop / f"{model}.safetensors", *arguments, "--json")
    return json.loads(capsys.readouterr().out)


def new(shop):
    return "--edges", shop / "new-edges.csv", "--nodes", shop / "new.csv"


def counts(document):
    return [document["nodes"], *(document[name] for name in COUNTS)]


@pytest.mark.long
def test_new_nodes_are_scored_under_the_ids_of_the_user(shop, capsys):
    document = predict(shop, capsys, "linkx", *new(shop))
    assert counts(document) == [3, 4, 3, 1, 1]
    assert [row["id"] for row in document["scores"]] == ["ann", "bob", "cy"]
    assert {row["class"] for row in document["scores"]} <= {"buyer", "seller"}
    model = load_model(shop / "linkx.safetensors")
    # Paris is no city that the model knows: both columns of cities are 0.
    columns = [column.name for column in model.encoder.columns]
    assert columns == ["age", "city"]
    features = torch.tensor([[45.0, 0, 1], [22, 0, 0], [30, 1, 0]])
    edges = [(0, "p1"), (0, "p2"), (1, "p3")]
    probabilities = model.predict(edges, features).probabilities
    for row, expected in zip(document["scores"], probabilities.tolist(), strict=True):
        assert [row["p_buyer"], row["p_seller"]] == pytest.approx(expected)


def test_edge_directions_count_where_they_did_in_training(shop, capsys):
    document = predict(shop, capsys, "both", *new(shop))
    model = load_model(shop / "both.safetensors")
    features = torch.tensor([[45.0, 0, 1], [22, 0, 0], [30, 1, 0]])
    probabilities = model.predict(
        [(0, "p1"), (0, "p2")], features, entering=[(1, "p3")]
    ).probabilities
    for row, expected in zip(document["scores"], probabilities.tolist(), strict=True):
        assert [row["p_buyer"], row["p_seller"]] == pytest.approx(expected)


def test_views_score_new_nodes_by_their_edges_and_columns(shop, views, capsys):
    document = predict(shop, capsys, views, *new(shop))
    assert counts(document) == [3, 4, 3, 1, 1]
    model = load_model(shop / "views.safetensors")
    features = torch.tensor([[45.0, 0, 1], [22, 0, 0], [30, 1, 0]])
    probabilities = model.predict(
        [(0, "p1"), (0, "p2")], features, entering=[(1, "p3")]
    ).probabilities
    for row, expected in zip(document["scores"], probabilities.tolist(), strict=True):
        assert [row["p_buyer"], row["p_seller"]] == pytest.approx(expected)


def test_views_explain_new_nodes_by_groups_and_neighbours(shop, views, capsys):
    document = predict(
        shop, capsys, views, *new(shop), "--explain", "--ids", "ann", "--top", "20"
    )
    (why,) = document["explanations"]
    names = {(push["kind"], push["name"]) for push in why["pushes"]}
    groups = {("views", name) for name in ("structure", "features", "labels", "bases")}
    # What changes nothing is left out.
    assert {kind for kind, _ in names} == {"views", "points at"}
    assert names <= groups | {("points at", "p1"), ("points at", "p2")}
    total = why["rest"] + sum(push["share"] for push in why["pushes"])
    assert total == pytest.approx(why["log_odds"], abs=1e-4)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_score_files_hold_every_node(shop, capsys, tmp_path, ending, monkeypatch):
    monkeypatch.setattr(scoring, "BATCH_SIZE", 7)
    out = tmp_path / f"scores.{ending}"
    document = predict(shop, capsys, "linkx", "--graph", shop / "people", "--out", out)
    assert document["nodes"] == 80
    assert document["bytes"] == out.stat().st_size
    read = pyarrow.csv.read_csv if ending == "csv" else pyarrow.parquet.read_table
    table = read(out)
    assert table.column_names == ["id", "class", "p_buyer", "p_seller"]
    assert table["id"].to_pylist() == [f"p{i}" for i in range(80)]
    assert [one.name for one in tmp_path.iterdir()] == [out.name]


@pytest.mark.long
def test_batches_of_new_nodes_give_what_one_gives(shop, capsys, tmp_path, monkeypatch):
    out = tmp_path / "scores.csv"
    assert not run("train", shop / "people", "link", *QUICK, "--save", tmp_path / "m")
    text = "".join(f"n{i},p{i % 80}\np{i % 7},n{i}\n" for i in range(50))
    (tmp_path / "edges.csv").write_text("source,target\n" + text)
    monkeypatch.setattr(new_node_tables, "BATCH_SIZE", 7)
    arguments = ["--edges", tmp_path / "edges.csv"]
    few = tmp_path / "few.csv"
    few.write_text("id\n" + "".join(f"n{i}\n" for i in range(50)))
    # LINK does not look at features, but its graph had some.
    assert run("predict", tmp_path / "m", *arguments) == 1
    assert "name the table of the new nodes" in capsys.readouterr().err
    columns = [f"n{i},3{i % 10},Rome" for i in range(50)]
    write(few, "id,age,city", *columns)
    assert not run("predict", tmp_path / "m", *arguments, "--nodes", few, "--out", out)
    model = load_model(tmp_path / "m")
    pairs = [(i, f"p{i % 80}") for i in range(50)] + [
        (i, f"p{i % 7}") for i in range(50)
    ]
    probabilities = model.predict(pairs, torch.zeros(50, 3)).probabilities[:, 0]
    found = pyarrow.csv.read_csv(out)["p_buyer"].to_pylist()
    assert found == pytest.approx(probabilities.tolist(), abs=1e-6)


def test_explanations_use_the_ids_and_columns_of_the_user(shop, capsys):
    document = predict(
        shop, capsys, "linkx", *new(shop), "--explain", "--ids", "ann", "--top", "20"
    )
    (why,) = document["explanations"]
    names = {(push["kind"], push["name"]) for push in why["pushes"]}
    assert names == {
        ("neighbour", "p1"),
        ("neighbour", "p2"),
        ("feature", "age"),
        ("feature", "city = Rome"),
    }
    total = why["rest"] + sum(push["share"] for push in why["pushes"])
    assert total == pytest.approx(why["log_odds"])
    assert document["nodes"] == 1
    known = predict(
        shop, capsys, "both", "--graph", shop / "directed", "--ids", "p7", "--explain"
    )
    assert len(known["explanations"][0]["pushes"]) == 5
    kinds = {push["kind"] for push in known["explanations"][0]["pushes"]}
    assert kinds <= {"points at", "pointed at by", "feature"}


def test_printed_scores_and_explanations(shop, capsys):
    model = shop / "linkx.safetensors"
    assert not run("predict", model, *new(shop), "--explain", "--ids", "ann")
    printed = capsys.readouterr()
    assert "ann: " in printed.out
    assert "neighbour" in printed.out
    assert "neighbours that the model does not know, left out: 3" in printed.err
    assert not run("predict", model, *new(shop))
    assert "p_seller" in capsys.readouterr().out


def test_methods_without_edges_need_no_edge_table(shop, capsys):
    document = predict(shop, capsys, "mlp", "--nodes", shop / "new.csv")
    assert len(document["scores"]) == 3


def test_message_passing_scores_only_known_nodes(shop, capsys):
    document = predict(
        shop, capsys, "gcn", "--graph", shop / "people", "--ids", "p1", "p2"
    )
    assert [row["id"] for row in document["scores"]] == ["p1", "p2"]
    for more in (new(shop), ("--graph", shop / "people", "--explain")):
        assert run("predict", shop / "gcn.safetensors", *more) == 1
        assert "error: gcn cannot" in capsys.readouterr().err


MISTAKES = {
    "no rows": ({"new-edges.csv": "source,target\n"}, "has no rows"),
    "empty": ({"new-edges.csv": ""}, "is empty"),
    "twice": (
        {"new.csv": NEW + "ann,1,Rome\n"},
        "row 4 .*'ann' is there a second time",
    ),
    "known": ({"new.csv": NEW + "p1,1,Rome\n"}, "'p1' is known to the model already"),
    "missing": ({"new.csv": NEW + "dan,,Rome\n"}, "'age' is missing."),
    "nan": ({"new.csv": NEW + "dan,nan,Rome\n"}, "'age' is nan, not a finite number."),
    "word": ({"new.csv": NEW + "dan,old,Rome\n"}, "'age' is not numeric"),
    "column": ({"new.csv": "id,agee,city\nann,1,Rome\n"}, "no column 'age'.*'agee'"),
    "strangers": (
        {"new-edges.csv": "source,target\nann,x\n"},
        "another graph 'people'",
    ),
    "aside": ({"new-edges.csv": "source,target\np1,p2\n"}, "none of 1 edges has a new"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_in_tables_give_one_line(shop, tmp_path, capsys, case):
    files, match = MISTAKES[case]
    for name, text in {"new.csv": NEW, "new-edges.csv": NEW_EDGES, **files}.items():
        (tmp_path / name).write_text(text)
    out = tmp_path / "scores.parquet"
    capsys.readouterr()
    model = shop / "linkx.safetensors"
    assert run("predict", model, *new(tmp_path), "--out", out) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert printed.startswith("error: ")
    assert re.search(match, printed)
    assert {one.name for one in tmp_path.iterdir()} == {"new.csv", "new-edges.csv"}


def test_other_mistakes_give_one_line(shop, tmp_path, capsys):
    model = shop / "linkx.safetensors"
    existing = tmp_path / "scores.csv"
    existing.write_text("mine")
    for arguments, message in [
        ([model], "Name tables of new nodes"),
        ([model, *new(shop), "--graph", "x"], "Name tables of new nodes"),
        ([model, *new(shop), "--out", existing], "exists already"),
        ([model, *new(shop), "--out", tmp_path / "a.xls"], "known are .parquet"),
        ([model, *new(shop), "--out", tmp_path / "no" / "a.csv"], "There is no folder"),
        ([model, *new(shop), "--ids", "anne"], "no node 'anne'"),
        ([model, "--graph", shop / "directed", "--ids", "q"], "no node 'q'"),
        ([tmp_path / "none", *new(shop)], "There is no file"),
        ([existing, *new(shop)], "is no model of unalike"),
        ([shop / "both.safetensors", "--graph", shop / "people"], "another graph"),
    ]:
        capsys.readouterr()
        assert run("predict", *arguments) == 1, arguments
        printed = capsys.readouterr().err
        assert message in printed
        assert printed.count("\n") == 1
    assert existing.read_text() == "mine"


def test_saving_is_refused_before_training(shop, tmp_path, capsys):
    (tmp_path / "m").write_text("mine")
    for arguments, message in [
        (["linkx", "--save", tmp_path / "m"], "exists already"),
        (["label-propagation", "--save", tmp_path / "n"], "leaves no model to save"),
    ]:
        assert run("train", shop / "people", *arguments) == 1
        assert message in capsys.readouterr().err


def test_the_model_of_the_best_split_is_saved_and_its_size_printed(
    shop, tmp_path, capsys
):
    saved = tmp_path / "m"
    arguments = ["link", "--epochs", "3", "--save", saved]
    capsys.readouterr()
    assert not run("train", shop / "people", *arguments, "--json")
    document = json.loads(capsys.readouterr().out)
    best = max(row["valid"] for row in document["splits"])
    assert document["splits"][document["model"]["split"]]["valid"] == best
    assert document["model"]["bytes"] == saved.stat().st_size
    saved.unlink()
    assert not run("train", shop / "people", *arguments)
    assert f"{saved.stat().st_size:,} bytes" in capsys.readouterr().out
